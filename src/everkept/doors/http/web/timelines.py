"""Bars of when facts hold, on one scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from everkept.api import views as v

WIDTH = 1000
"""Of the drawing, in its own units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifeline:
    """One fact's bar: `start` and `width` in units of `WIDTH`; `open_ended` where it still holds."""

    fact: v.Fact
    start: int
    width: int
    open_ended: bool


SLID_S = 365 * 86_400
"""How far back a day can be slid to at least."""


def first_day(times: Iterable[datetime]) -> str:
    """The earliest, or a year ago: where the slider of a day begins."""
    now = datetime.now(UTC)
    return f"{min((now - timedelta(seconds=SLID_S), *times)).astimezone(UTC):%Y-%m-%d}"


def lifelines(facts: Sequence[v.Fact]) -> list[Lifeline]:
    """From the earliest beginning to now (or the latest end, where that lies ahead)."""
    if not facts:
        return []
    begins = [fact.valid_from or fact.said_at for fact in facts]
    ends = [fact.valid_until or fact.retired_at for fact in facts]
    first, last = min(begins), max(datetime.now(UTC), *(end for end in ends if end is not None), *begins)
    whole = (last - first).total_seconds() or 1.0

    def place(at: datetime) -> int:
        return round(WIDTH * (at - first).total_seconds() / whole)

    return [
        Lifeline(
            fact=fact, start=min(place(begin), WIDTH - 6), open_ended=end is None,
            width=max(6, place(last if end is None else max(end, begin)) - place(begin)),
        )
        for fact, begin, end in zip(facts, begins, ends, strict=True)
    ]  # fmt: skip
