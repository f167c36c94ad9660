"""Periodic backstops. Work is event-driven; a sweep that finds something to repair says so, because it should not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from everkept.ports.clock import Clock
from everkept.store.connection import Connection
from everkept.store.periodic import end_periodic, register_periodic, take_periodic
from everkept.store.store import Store
from everkept.store.wall_clock import SLACK_US, follow_clock
from everkept.work.job import error_text

log = structlog.get_logger("everkept.work")
CHUNK = 100
Chunk = Callable[[Connection, int, int], tuple[int, int]]
"""f(conn, after, limit) → (rows repaired, where to go on; 0 is the end)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicTask:
    """One backstop: a chunk at a time, each a transaction of its own."""

    name: str
    every_s: float
    chunk: Chunk
    expected: bool = False
    """Its rows are routine (pruning); others are repairs, and are warned of."""


class Maintenance:
    """Runs each task when its row in the database says it is due."""

    def __init__(self, store: Store, tasks: Sequence[PeriodicTask], clock: Clock) -> None:
        self._store = store
        self._tasks = tasks
        self._clock = clock
        self._registered = False
        self._next_s: dict[str, float] = {}
        self._difference_us: int | None = None
        """By how much the wall clock was ahead of the one that never steps, at the last look."""

    async def step(self) -> int:
        """Run what is due; the number of rows repaired."""
        await self._follow_clock()
        if not self._registered:
            await self._store.write(register_periodic, {t.name: t.every_s for t in self._tasks})
            self._registered = True
        repaired = 0
        for task in self._tasks:
            if self._clock.monotonic_s() < self._next_s.get(task.name, 0.0):
                continue
            cursor = await self._store.write(take_periodic, task.name)
            self._next_s[task.name] = self._clock.monotonic_s() + task.every_s / 4
            if cursor is not None:
                repaired += await self._run(task, cursor)
        return repaired

    async def _follow_clock(self) -> None:
        """Where the wall clock was set back (or may have been, before this process began), what waits follows it."""
        difference_us = self._clock.now_us() - int(self._clock.monotonic_s() * 1e6)
        known = self._difference_us
        if known is None or known - difference_us > SLACK_US:
            back_s = await self._store.write(follow_clock)
            if back_s:
                log.warning("the clock was set back; what waits was moved along", seconds=round(back_s))
        self._difference_us = difference_us

    async def _run(self, task: PeriodicTask, cursor: int) -> int:
        """From where the last run stopped to the end; a failure keeps the place for the next run."""
        repaired, error = 0, None
        try:
            while True:
                rows, cursor = await self._store.write(task.chunk, cursor, CHUNK)
                repaired += rows
                if cursor == 0:
                    break
        except Exception as failed:  # noqa: BLE001  (a backstop's failure is shown in status; the worker goes on)
            error = error_text(failed)
            log.error("periodic task failed", task=task.name, error=error)
        if repaired and not task.expected:
            log.warning("a sweep repaired what the normal path should have done", task=task.name, rows=repaired)
        await self._store.write(end_periodic, task.name, error, repaired, cursor)
        return repaired
