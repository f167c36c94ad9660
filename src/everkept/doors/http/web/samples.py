"""How the figures of `status` went since this server started: a bounded ring of samples in memory, for the charts."""

from __future__ import annotations

import asyncio
import time
from collections import deque

import structlog

from everkept.api import views as v
from everkept.api.service import Application
from everkept.errors import EverkeptError

log = structlog.get_logger("everkept.web")
EVERY_S = 10.0
KEPT = 8640
"""Samples: a day."""
SERIES = ("messages", "due", "armed", "running", "failed", "p50_s", "p95_s")


class Sampler:
    """Fed by `run`, read by the charts. What could not be read leaves a gap."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._taken: deque[tuple[float | None, ...]] = deque(maxlen=KEPT)

    async def run(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            try:
                await self.take()
            except Exception as error:  # noqa: BLE001  (nobody awaits this before the server stops: charts end nothing)
                log.error("the figures for the charts could not be taken", error=str(error))
            try:
                async with asyncio.timeout(EVERY_S):
                    await stopping.wait()
            except TimeoutError:
                continue

    async def take(self) -> None:
        try:
            status = await (await self._application.service()).status()
        except EverkeptError:
            self._taken.append((time.time(), *(None for _ in SERIES)))
            return
        self._taken.append((time.time(), *_figures(status)))

    def columns(self) -> dict[str, list[float | None]]:
        """`at` (seconds since 1970) and each of `SERIES`, oldest first."""
        return {name: [row[place] for row in self._taken] for place, name in enumerate(("at", *SERIES))}


def _figures(status: v.Status) -> tuple[float | None, ...]:
    facts = next((t for t in status.timings if t.stage == "facts"), None)
    failures = sum(c.value for c in status.checks if c.name in ("episode_failures", "fact_failures"))
    return (
        status.messages, status.backlog_due, status.backlog_armed, sum(w.running for w in status.workers), failures,
        None if facts is None else facts.p50_s, None if facts is None else facts.p95_s,
    )  # fmt: skip
