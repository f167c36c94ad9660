"""What comes too fast waits, whatever its size, and a project in a hurry holds up no other."""

from __future__ import annotations

import asyncio

import pytest

from everkept.api.pacing import Pace
from everkept.config import Settings, load
from everkept.errors import RateLimited


def limited(rate: float = 10, burst: int = 20) -> Settings:
    return load({"EVERKEPT_INTAKE__EVENTS_PER_S_MAX": str(rate), "EVERKEPT_INTAKE__BURST_MAX": str(burst)})


def test_without_a_limit_nobody_waits() -> None:
    pace, settings = Pace(lambda: 0.0), load({})
    pace.spend(1, settings, 10**6)
    assert pace.wait_s(1, settings) == 0


def test_a_batch_of_any_size_comes_in_and_the_next_one_waits_until_half_the_burst_is_back() -> None:
    now = 0.0
    pace, settings = Pace(lambda: now), limited()
    assert pace.wait_s(1, settings) == 0
    pace.spend(1, settings, 1_000)
    assert pace.wait_s(1, settings) == (1_000 - 20 + 10) / 10
    assert pace.wait_s(2, settings) == 0
    now = 98.5
    assert pace.wait_s(1, settings) == 0


def test_an_idle_project_saves_up_no_more_than_its_burst() -> None:
    now = 0.0
    pace, settings = Pace(lambda: now), limited()
    pace.spend(1, settings, 1)
    now = 10**6
    pace.spend(1, settings, 20)
    assert pace.wait_s(1, settings) == 1


def test_patience_waits_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        nonlocal now
        waits.append(seconds)
        now += seconds

    monkeypatch.setattr("everkept.api.pacing.asyncio.sleep", sleep)
    pace, settings = Pace(lambda: now), limited()
    pace.spend(1, settings, 40)
    asyncio.run(pace.admit(1, settings, patience_s=3))
    assert waits == [3]
    pace.spend(1, settings, 40)
    with pytest.raises(RateLimited) as caught:
        asyncio.run(pace.admit(1, settings, patience_s=2.9))
    assert caught.value.retry_after_s == 4
