"""How fast events come in: a limit postpones what is too fast, and drops nothing.

A token bucket a project, in this process: each process that takes events in counts for itself, so that accepting costs
no write more. Whoever finds the bucket empty waits; whoever finds a token in it may take a batch of any size, and the
bucket goes below nothing, so that no batch is too large to ever come in. Only what is new costs: a replay is free.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from everkept.config import Settings
from everkept.errors import RateLimited

WAIT_MIN_S: Final = 1.0
"""Shorter waits would have a sender ask more often than it sends."""
PATIENCE_S: Final = 60.0
"""How long a client of ours waits in one call while it is postponed, all in all."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at_s: float


class Pace:
    """The buckets of one process; `clock` counts seconds and never goes back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[int, _Bucket] = {}

    def wait_s(self, project: int, settings: Settings) -> float:
        """0 where the project may take events in now; else seconds until half of its burst has come back."""
        rate = settings.intake.events_per_s_max
        if rate is None:
            return 0.0
        burst = float(settings.intake.burst_max)
        bucket = self._filled(project, rate, burst)
        if bucket.tokens >= 1:
            return 0.0
        return max(WAIT_MIN_S, (max(1.0, burst / 2) - bucket.tokens) / rate)

    async def admit(self, project: int, settings: Settings, *, patience_s: float = 0.0) -> None:
        """Come back once the project may take events in. Others may be faster, and empty the bucket again.

        Raises RateLimited, with how long to wait, where that is longer than what is left of the patience.
        """
        while wait_s := self.wait_s(project, settings):
            if wait_s > patience_s:
                raise _too_fast(settings, wait_s)
            patience_s -= wait_s
            await asyncio.sleep(wait_s)

    def spend(self, project: int, settings: Settings, events: int) -> None:
        """So many new events were taken in."""
        rate = settings.intake.events_per_s_max
        if rate is not None and events:
            self._filled(project, rate, float(settings.intake.burst_max)).tokens -= events

    def _filled(self, project: int, rate: float, burst: float) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.setdefault(project, _Bucket(burst, now))
        bucket.tokens = min(burst, bucket.tokens + (now - bucket.at_s) * rate)
        bucket.at_s = now
        return bucket


def _too_fast(settings: Settings, wait_s: float) -> RateLimited:
    most = settings.intake.events_per_s_max
    return RateLimited(
        f"events come faster than intake.events_per_s_max of this project allows ({most:g} a second); nothing is lost:"
        f" send them again in {wait_s:.0f} s",
        retry_after_s=wait_s, limit=most,
    )  # fmt: skip
