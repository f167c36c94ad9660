"""Whether an approval helped, drawn."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from everkept.api.review_views import Outcome
from everkept.doors.http.web.outcome_charts import Mark, mark_of

BEFORE = Outcome(
    proposal_id="prp_1", slug="use-pnpm", title="Use pnpm", approved_at=datetime(2026, 3, 1, tzinfo=UTC),
    times_before=4, with_it_before=4, sessions_before=8, times_since=1, with_it_since=1, sessions_since=8, shown_in=8,
    ratio=None, ratio_low=None, ratio_high=None, verdict="too_early", words="it is too early to tell",
)  # fmt: skip


@pytest.mark.parametrize(
    ("low", "ratio", "high", "mark"),
    [
        (0.25, 0.5, 0.9, Mark(low=27, at=53, high=76, side="good")),
        (0.5, 1.0, 2.0, Mark(low=53, at=80, high=107, side="")),
        (1.5, 4.0, 100.0, Mark(low=96, at=133, high=160, side="bad")),
        (0.0, 0.0, 2.0, Mark(low=0, at=0, high=107, side="")),
    ],
)
def test_less_often_stands_on_the_left_and_what_is_sure_has_a_side(
    low: float, ratio: float, high: float, mark: Mark
) -> None:
    outcome = BEFORE.model_copy(update={"ratio_low": low, "ratio": ratio, "ratio_high": high})
    assert mark_of(outcome) == mark


def test_nothing_is_drawn_where_nothing_is_known_of_before() -> None:
    assert mark_of(BEFORE) is None
