"""Relaying the outbox of every project, a batch of each in turn: no project waits for all that another one has."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from everkept.deliver.nats_publisher import ChangePublisher
from everkept.domain.changes import NATS_CONSUMER
from everkept.errors import CursorExpired
from everkept.ports.clock import Clock
from everkept.store.relays import PROJECTS_MAX, Waiting, due_relays
from everkept.store.store import Store

LOOK_S: Final = 1.0
"""Longest time between two looks: what another process commits is found then."""
GATHER_S: Final = 0.01
"""What is committed close together is looked for once."""
EXPIRED_S: Final = 300.0
"""How long a project is left alone of which some changes are no longer kept: a hand decides where it goes on."""
_log = structlog.get_logger("everkept.nats")


class ChangeRelay:
    """Beside a server or a worker. Several processes may run it: each project is published by the one that holds it."""

    def __init__(self, store: Store, publisher: ChangePublisher, clock: Clock, *, owner: str) -> None:
        self._store = store
        self._publisher = publisher
        self._clock = clock
        self._owner = owner
        self._left_alone: dict[int, float] = {}
        """{project: until when, on this process's clock}"""

    async def run(self, stop: asyncio.Event) -> None:
        """Until told to stop. Raises StoreUnavailable, Unavailable."""
        with self._store.bell.listening() as heard:
            while not stop.is_set():
                heard.clear()
                if not await self.step():
                    await _first(stop, heard)
                    await asyncio.sleep(GATHER_S)

    async def step(self) -> bool:
        """One turn of every project in which something waits; whether there may be more."""
        after, more = 0, False
        while True:
            due = await self._store.read(due_relays, NATS_CONSUMER, self._owner, after)
            for project in due:
                more |= await self._turn(project)
            if len(due) < PROJECTS_MAX:
                return more
            after = due[-1].id

    async def _turn(self, project: Waiting) -> bool:
        now_s = self._clock.monotonic_s()
        if self._left_alone.get(project.id, now_s) > now_s:
            return False
        try:
            return await self._publisher.work(project)
        except CursorExpired as error:
            self._left_alone[project.id] = now_s + EXPIRED_S
            oldest = error.details["oldest"]
            _log.error(
                "changes that were never published are no longer kept", project=project.name, oldest=oldest,
                mend=f"everkept consumers replay {NATS_CONSUMER} --after {oldest - 1}",
            )  # fmt: skip
            return False


async def _first(*events: asyncio.Event) -> None:
    """Until one is set, or a while has gone by."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
