"""What models cost, as the pages say it: a call without a known price is not shown as one that was free."""

from __future__ import annotations

import pytest

from everkept.api import views as v
from everkept.doors.http.web.render import cost
from everkept.doors.http.web.spending import Spent, bars, summed


def row(day: str, *, calls: int = 1, tokens: int = 10, usd: float = 0.0, unpriced: int = 0) -> v.UsageRow:
    return v.UsageRow(
        day=day, project="app", stage="facts", model="m", calls=calls, tokens_in=tokens, tokens_out=0, usd=usd,
        unpriced=unpriced,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("calls", "usd", "unpriced", "said"),
    [
        (0, 0.0, 0, "$0.00"), (3, 0.0, 0, "$0.00"), (3, 1.25, 0, "$1.25"), (3, 0.0012, 0, "$0.0012"),
        (3, 0.0, 3, "price unknown"), (3, 0.0, 1, "$0.00 + 1 call of unknown price"),
        (3, 1.25, 2, "$1.25 + 2 calls of unknown price"),
    ],
)  # fmt: skip
def test_a_cost_says_what_it_does_not_know(calls: int, usd: float, unpriced: int, said: str) -> None:
    assert cost(Spent(calls=calls, tokens=9, usd=usd, unpriced=unpriced)) == said


def test_days_are_drawn_by_money_and_by_tokens_where_a_price_is_unknown() -> None:
    priced = [row("2026-03-01", usd=1.0, tokens=40), row("2026-03-02", usd=3.0), row("2026-03-02", usd=1.0)]
    assert [(bar.day, bar.share) for bar in bars(priced)] == [("2026-03-01", 0.25), ("2026-03-02", 1.0)]
    unknown = [*priced, row("2026-03-02", unpriced=1)]
    assert [(bar.day, bar.share) for bar in bars(unknown)] == [("2026-03-01", 1.0), ("2026-03-02", 0.75)]
    assert [bar.share for bar in bars([row("2026-03-01", tokens=0)])] == [0.0]
    assert bars([]) == []


def test_rows_are_summed_with_what_has_no_price() -> None:
    rows = [row("2026-03-01", calls=2, usd=0.5), row("2026-03-02", calls=3, unpriced=3)]
    assert summed(rows) == Spent(calls=5, tokens=20, usd=0.5, unpriced=3)
