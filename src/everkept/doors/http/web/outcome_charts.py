"""Whether an approval helped, drawn: how often it came since, by how often before, with where that lies at 90 %."""

from __future__ import annotations

import math
from dataclasses import dataclass

from everkept.api import review_views as r

WIDTH = 160
"""Of the drawing, in its own units; its middle is "as often as before"."""
DOUBLINGS = 3
"""From the middle to either edge; what lies further out stands at the edge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Places in units of `WIDTH`, less often on the left."""

    low: int
    at: int
    high: int
    side: str
    """`good` where it is surely less often, `bad` where surely more often, else nothing."""


def mark_of(outcome: r.Outcome) -> Mark | None:
    """None where nothing is known of before."""
    if outcome.ratio is None or outcome.ratio_low is None or outcome.ratio_high is None:
        return None
    side = "good" if outcome.ratio_high < 1 else "bad" if outcome.ratio_low > 1 else ""
    return Mark(low=_place(outcome.ratio_low), at=_place(outcome.ratio), high=_place(outcome.ratio_high), side=side)


def _place(ratio: float) -> int:
    doublings = math.log2(ratio) if ratio > 0 else -math.inf
    return round(WIDTH / 2 * (1 + min(max(doublings / DOUBLINGS, -1), 1)))
