"""What can be read off a question without a model: terms, pairs of them, whether it asks for a time, which month."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from everkept.domain import text as analyser
from everkept.errors import InvalidInput

TERMS_MAX: Final = 32
"""A longer question is reduced to its rarest terms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    text: str
    terms: tuple[str, ...]
    """Stems without stop words, each once."""
    pairs: frozenset[tuple[str, str]]
    """Adjacent stems once the stop words are out."""
    words: tuple[str, ...]
    """Folded words, in order."""
    asks_when: bool
    months: frozenset[int]
    years: frozenset[int]


def read_question(text: str) -> Question:
    """Raises InvalidInput where there is nothing to search for."""
    terms = analyser.query_terms(text)
    if not terms:
        raise InvalidInput("the query has no word, number or emoji to search for", field="query")
    stems = [analyser.stem(w) for w in analyser.content_words(text)]
    folded = analyser.fold(text)
    return Question(
        text=text,
        terms=tuple(terms),
        pairs=frozenset(pairwise(stems)),
        words=tuple(analyser.words(text)),
        asks_when=_WHEN.search(folded) is not None,
        months=_months(text, folded),
        years=frozenset(int(y) for y in _YEAR.findall(folded)),
    )


_WHEN = re.compile(
    r"\b(?:when|wann|quando|cuando|quand)\b|\b(?:which|what) (?:date|day|month|year)|how long ago"
    r"|in welche[mnr] (?:jahr|monat)"
    r"|什么时候|哪年|哪一年|几月|几号|いつ|何年|何月|何日|언제"
)
_YEAR = re.compile(r"(?<!\d)((?:19|20)\d\d)(?!\d)")
_CJK_MONTH = re.compile(r"(?<!\d)(1[0-2]|[1-9])(?:月|월)")
_MAY = re.compile(r"\bMay\b(?! (?:I|we|he|she|they|you|it)\b)")
_WORD = re.compile(r"[a-z]+")
_MONTH_OF: Final = {
    name: number
    for names in (
        "january february march april - june july august september october november december",
        "januar februar marz april - juni juli august september oktober november dezember",
        "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "janvier fevrier mars avril - juin juillet aout septembre octobre novembre decembre",
    )
    for number, name in enumerate(names.split(), 1)
    if name != "-"
}


def _months(text: str, folded: str) -> frozenset[int]:
    found = {_MONTH_OF[w] for w in _WORD.findall(folded) if w in _MONTH_OF}
    found |= {int(m) for m in _CJK_MONTH.findall(folded)}
    if _MAY.search(text):
        found.add(5)
    return frozenset(found)
