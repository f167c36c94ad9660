"""Bugs of the engine, the journal and the timeline (G6 to G9, G13)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.mutation.bug import Planted
from tests.mutation.gate import Verdict
from tests.mutation.planted import WORKING

BUGS = WORKING


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.guarantee} {bug.name}")
def test_planted_bug_is_caught(bug: Planted, judge: Callable[[Planted], Verdict]) -> None:
    verdict = judge(bug)
    assert not verdict.why_not, f"{bug.layer}: {verdict.why_not}"
    assert verdict.caught_by
