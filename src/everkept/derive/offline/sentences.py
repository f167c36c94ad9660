"""Where the sentences of a turn begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from everkept.domain.date_words import MONTHS

_PASTED = re.compile(r"```.*?(?:```|\Z)|^[>|][^\n]*$", re.DOTALL | re.MULTILINE)
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_ABBREVIATED = "|".join(
    rf"(?<=\b{word})"
    for word in ("St", "Dr", "Dra", "Mr", "Ms", "Mrs", "Sr", "Sra", "Nr", "No", "Prof", "ca", "bzw", "vs")
)
_AFTER_DETERMINER = "|".join(
    rf"(?<=\b{word}\s{digits})"
    for word in ("am", "im", "vom", "zum", "dem", "den", "der", "die", "das", "bis", "ab", "beim", "seit")
    for digits in (r"\d", r"\d\d")
)
_INNER_STOP = (
    rf"\.(?=\w)|(?:{_ABBREVIATED})\.(?=\s)|(?:{_AFTER_DETERMINER})\.(?=\s\w)"
    rf"|(?:(?<=\b\d)|(?<=\b\d\d))\.(?=\s+(?:{_MONTH}|(?-i:[a-zäöüß]))\b)"
)
"""A full stop that ends nothing: inside a number or a name, after an abbreviation, and of an ordinal (19. Mai)."""
_SENTENCE = re.compile(rf"[^.!?。！？\n]+(?:(?:{_INNER_STOP})[^.!?。！？\n]+)*[.!?。！？]*", re.IGNORECASE)


def split_sentences(text: str) -> Iterator[str]:
    """The sentences as they are written, in their order, without what was pasted (code, quotes of a mail, tables)."""
    for match in _SENTENCE.finditer(_PASTED.sub("\n", text)):
        if sentence := match[0].strip():
            yield sentence
