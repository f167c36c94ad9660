"""Bugs of erasing, delivery, status, scope and deriving again (G10 to G12, G14 to G16)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.mutation.bug import Planted
from tests.mutation.gate import Verdict
from tests.mutation.planted import REMEMBERING

BUGS = REMEMBERING


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.guarantee} {bug.name}")
def test_planted_bug_is_caught(bug: Planted, judge: Callable[[Planted], Verdict]) -> None:
    verdict = judge(bug)
    assert not verdict.why_not, f"{bug.layer}: {verdict.why_not}"
    assert verdict.caught_by
