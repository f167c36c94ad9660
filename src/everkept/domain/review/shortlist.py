"""Which texts can hold enough of some word stems at all: a look at the letters, which is far cheaper than reading."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Final

from everkept.domain.text import fold

_ROUNDING: Final = 1e-9


def letters_of(text: str) -> str:
    """What stems are looked for in: folded, and without what is left out of words ("don't", "1,000")."""
    return fold(text).replace("'", "").replace(",", "")


class Shortlist:
    """Stems of which a text must hold some. A stem may end otherwise than its word, and by one letter at most
    ("happi" of "happy"); of scripts other than Latin nothing is known by letters, and such a stem counts as held."""

    def __init__(self, stems: Collection[str], least: float) -> None:
        """`least`: how many of the stems, at least."""
        self._least = math.ceil(least - _ROUNDING)
        self._beginnings = [stem[:-1] for stem in stems if stem.isascii()]
        self._unknown = len(stems) - len(self._beginnings)

    def may_hold(self, letters: str) -> bool:
        """Whether a text of these letters (`letters_of`) may hold so many; False is certain."""
        held = self._unknown
        return held >= self._least or held + sum(each in letters for each in self._beginnings) >= self._least
