"""All rules, language by language; the first that reads a clause wins."""

from __future__ import annotations

import re
from collections.abc import Iterator

from everkept.derive.offline.rule import Rule
from everkept.derive.offline.rules_english import ENGLISH
from everkept.derive.offline.rules_german import GERMAN
from everkept.derive.offline.rules_japanese import JAPANESE
from everkept.derive.offline.rules_portuguese import PORTUGUESE
from everkept.derive.offline.rules_spanish import SPANISH

_LANGUAGES: tuple[tuple[re.Pattern[str], tuple[Rule, ...]], ...] = (
    (
        re.compile(
            r"\b(?:I|I'\w+|my|our|we|please|keep|is|are|has|wants|loves|likes|adores|hates|dislikes|can't)\b|'s\b",
            re.IGNORECASE,
        ),
        ENGLISH,
    ),
    (re.compile(r"\b(?:ich|mein\w*|ist|verträgt|bitte)\b", re.IGNORECASE), GERMAN),
    (re.compile(r"[a-z]", re.IGNORECASE), PORTUGUESE),
    (re.compile(r"[a-z]", re.IGNORECASE), SPANISH),
    (re.compile("[\u3040-\u30ff\u3400-\u9fff]"), JAPANESE),
)
"""What every sentence has that one of the rules could read, so that the others need not be tried."""


def rules_for(sentence: str) -> Iterator[Rule]:
    """The rules of the languages that the sentence may be in."""
    for gate, rules in _LANGUAGES:
        if gate.search(sentence):
            yield from rules
