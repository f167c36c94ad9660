"""What a sentence wants and does not want, as word stems: the same wish in other words becomes equal, or alike.

"use pnpm, not npm", "pnpm instead of npm please" and "never npm, only pnpm" all want `pnpm` and do not want `npm`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from everkept.domain.review.wish_words import CONTRASTS, FILLERS, LEADS_IN, NEGATES_AFTER, NEGATES_BEFORE, PROHIBITS
from everkept.domain.text import STOP_WORDS, fold, stem, stop_words_of

TERMS_MAX: Final = 10
"""A sentence of more tells a task or a story."""
_ALIKE: Final = 0.65
_WITHIN_TERMS_MIN: Final = 2
_CLAUSES: Final = re.compile(
    r"[,;:!?()…、，。；：！？]+|[.](?=\s|$)|\s[—–-]+\s|\b(?:but|aber|sondern|pero|sino|mas|mais)\b"
    r"|\b(?:and|und|y|e|et)\b(?= (?:never|not|no|don'?t|do not|nie|nicht|keine?|nunca|nao|jamais|ne)\b)"
)
_WORDS: Final = re.compile(
    r"[a-z0-9_@+#][a-z0-9_@+#'./-]*|[\u4e00-\u9fff々]{2,}|[ァ-ヶー]{2,}|[^\W\d_\u3040-\u30ff\u4e00-\u9fff]{2,}"
)
"""Of scripts without spaces: runs of Han and of Katakana, in which their names are written."""
_SPACELESS: Final = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Wish:
    wanted: frozenset[str]
    unwanted: frozenset[str]

    @property
    def terms(self) -> frozenset[str]:
        return self.wanted | self.unwanted

    @property
    def shape(self) -> str:
        """`pnpm | npm`: what is wanted, and behind the bar what is not."""
        return f"{' '.join(sorted(self.wanted))} | {' '.join(sorted(self.unwanted))}".strip()

    @property
    def tells(self) -> bool:
        """It says enough to be known again: two words, or one that is refused; and it is no story."""
        return len(self.terms) <= TERMS_MAX and (len(self.terms) >= _WITHIN_TERMS_MIN or bool(self.unwanted))

    @property
    def common_least(self) -> int:
        """So many of its terms another one has at least, to overlap with it."""
        return min(len(self.terms), _WITHIN_TERMS_MIN)

    def is_like(self, other: Wish) -> bool:
        """The same wish in other words: neither wants what the other refuses."""
        return not self._opposed(other) and self._overlaps(other)

    def contradicts(self, other: Wish) -> bool:
        """About the same, and at odds in most of it."""
        opposed = self._opposed(other)
        return bool(opposed) and self._overlaps(other) and 2 * len(opposed) > len(self.terms & other.terms)

    def _opposed(self, other: Wish) -> frozenset[str]:
        return (self.wanted & other.unwanted) | (self.unwanted & other.wanted)

    def _overlaps(self, other: Wish) -> bool:
        common, all_terms = len(self.terms & other.terms), len(self.terms | other.terms)
        smaller = min(len(self.terms), len(other.terms))
        within = smaller >= _WITHIN_TERMS_MIN and common == smaller
        return bool(common) and (within or common >= _ALIKE * all_terms)


def wish_from(shape: str) -> Wish:
    """The wish that has this shape."""
    wanted, _, unwanted = shape.partition("|")
    return Wish(frozenset(wanted.split()), frozenset(unwanted.split()))


@lru_cache(maxsize=4096)
def wish_of(sentence: str) -> Wish:
    wanted: set[str] = set()
    unwanted: set[str] = set()
    told = without_lead_in(sentence)
    folded = unicodedata.normalize("NFKC", told).casefold() if _SPACELESS.search(told) else fold(told)
    negates = _negator(folded)
    for clause in _CLAUSES.split(folded):
        for part, refused in _parts(clause, negates):
            (unwanted if refused else wanted).update(_terms(part))
    return Wish(frozenset(wanted - unwanted), frozenset(unwanted))


def without_lead_in(sentence: str) -> str:
    """The sentence from its wish on, as written: without "No, " and "I told you: "."""
    return LEADS_IN.sub("", sentence.strip()) or sentence.strip()


def _negator(folded: str) -> re.Pattern[str]:
    """Of all languages, since they are mixed; but in Portuguese "no" is "in the"."""
    return _NEGATES_BUT_NO if stop_words_of(folded.split()) is STOP_WORDS["pt"] else _NEGATES


def _pattern(prohibits: Iterable[str]) -> re.Pattern[str]:
    one, other = ("|".join(sorted(words, key=len, reverse=True)) for words in (prohibits, CONTRASTS))
    return re.compile(rf"(?<![\w'-])(?:(?P<contrast>{other})|{one})(?![\w-])|(?<![\w'])n'(?=\w)")


_NEGATES: Final = _pattern(PROHIBITS)
_NEGATES_BUT_NO: Final = _pattern(word for word in PROHIBITS if word != "no")


def _parts(clause: str, negates: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """(words, whether they are refused) of one clause."""
    if _SPACELESS.search(clause):
        yield from _parts_without_spaces(clause)
        return
    found = negates.search(clause)
    if found is None:
        yield clause, False
        return
    before, after = clause[: found.start()], negates.sub(" ", clause[found.end() :])
    yield before, found["contrast"] is None or not _terms(after)
    yield after, True


def _parts_without_spaces(clause: str) -> Iterator[tuple[str, bool]]:
    if found := NEGATES_BEFORE.search(clause):
        yield clause[: found.start()], True
        yield clause[found.end() :], False
    elif found := NEGATES_AFTER.search(clause):
        yield clause[: found.start()], False
        yield clause[found.end() :], True
    else:
        yield clause, False


def _terms(text: str) -> set[str]:
    found = (word.partition("'")[0].strip("./-") for word in _WORDS.findall(text.replace("`", " ")))
    return {stem(word) for word in found if word and word not in FILLERS and len(word) + (not word.isascii()) > 1}
