"""Time, sleeping and randomness, so that tests own all three."""

from __future__ import annotations

import random
import time
from typing import Protocol


class Clock(Protocol):
    def now_us(self) -> int:
        """Wall time in microseconds since 1970, UTC: what the store writes and compares."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never step: for how long this process may trust something."""
        ...

    def random(self) -> float:
        """In [0, 1): for jitter and new names, never for a decision that must be repeatable."""
        ...


class SystemClock:
    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def now_us(self) -> int:
        return time.time_ns() // 1_000

    def monotonic_s(self) -> float:
        return time.monotonic()

    def random(self) -> float:
        return self._random.random()


class VirtualClock:
    """A clock that moves only when told; both hands move together unless the wall is stepped."""

    def __init__(self, start_us: int = 1_750_000_000_000_000, seed: int = 1) -> None:
        self._wall_us = start_us
        self._mono_us = 0
        self._random = random.Random(seed)

    def now_us(self) -> int:
        return self._wall_us

    def monotonic_s(self) -> float:
        return self._mono_us / 1e6

    def random(self) -> float:
        return self._random.random()

    def advance(self, seconds: float) -> None:
        assert seconds >= 0
        self._wall_us += int(seconds * 1e6)
        self._mono_us += int(seconds * 1e6)

    def step_wall(self, seconds: float) -> None:
        """The wall clock is set by somebody (backwards too); the monotonic one does not notice."""
        self._wall_us += int(seconds * 1e6)
