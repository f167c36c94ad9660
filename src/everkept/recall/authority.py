"""A page that is kept true goes before the logs of sessions that say no more of what is asked (F04). Pure.

It is a tie-break and no weight: a page is lifted only past what holds no more of the question's words than the page
itself does. Logs repeat each other, and are scored with what stands around them; however many there are, none of that
makes them tell more. Among pages, and against facts, nothing changes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from everkept.domain.passage import Traits
from everkept.recall.question import Question
from everkept.recall.rank import Array, Frequencies, Window, own_frequencies
from everkept.recall.table import FACT

LIFTED_MAX: Final = 5
"""The best pages only: what is asked may be in a log all the same."""
COVERED_MIN: Final = 0.5
"""Of the question's words, by rarity: a page that holds less of them is not about it."""
AHEAD: Final = 0.01
"""By how much of a score a tie is decided."""


def lifts(question: Question, window: Window, frequencies: Frequencies, scores: Array) -> Array:
    """What each candidate's score gains, shape (size,); all 0 where no page is kept true."""
    found = np.zeros_like(scores)
    mine = window.candidates
    kept = (mine.traits & Traits.MAINTAINED) > 0
    if not kept.any():
        return found
    covered = coverage(question, window, frequencies)
    logs = ~kept & (mine.kind != FACT)
    pages = np.flatnonzero(kept & (covered >= COVERED_MIN))
    best = pages[np.lexsort((-mine.id[pages], -scores[pages]))][:LIFTED_MAX]
    for place, page in enumerate(best.tolist()):
        passed: npt.NDArray[np.float32] = scores[logs & (covered <= covered[page])]
        if passed.size and passed.max() >= scores[page]:
            found[page] = passed.max() - scores[page] + AHEAD * (LIFTED_MAX - place)
    return found


def coverage(question: Question, window: Window, frequencies: Frequencies) -> Array:
    """Which share of the question's words each candidate itself holds, each word at its rarity; shape (size,)."""
    idf = np.array([frequencies.idf(term) for term in question.terms], np.float32)
    holds = own_frequencies(question.terms, window.words)[: window.size] > 0
    return np.asarray(holds @ idf / max(float(idf.sum()), 1e-9), np.float32)
