"""Attending to NATS beside a server or a worker: a connection, what stands on it, and another one when it breaks.

Without NATS nothing is missing here: the program goes on, says what it cannot reach, and tries again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import structlog

from everkept.api.base import Parts
from everkept.api.nats_intake import EventIntake
from everkept.api.nats_state import Counter, Take
from everkept.deliver.nats_link import NatsLink, connected
from everkept.deliver.nats_publisher import ChangePublisher
from everkept.deliver.nats_relay import ChangeRelay
from everkept.deliver.nats_streams import ensure_streams, look
from everkept.domain.jobs import Backoff
from everkept.work.job import error_text

LOOK_S: Final = 10.0
"""How often it is looked how much waits."""
EMPTY_S: Final = 1.0
"""A stream that gives nothing for so long has nothing more to give now."""
LEAVE_S: Final = 2.0
"""How long what is under way may take once the process is to end; it is done again elsewhere."""
STOOD_S: Final = 60.0
"""A connection that held for so long is tried again at once."""
_AGAIN: Final = Backoff(first_s=0.5, max_s=30.0)
_log = structlog.get_logger("everkept.nats")


async def attend_nats(parts: Parts, stop: asyncio.Event, take: Take | None) -> None:
    """Until told to stop; at once where no server is set. `take`: None where this process takes no events."""
    if parts.settings.nats.url is None:
        return
    failures = 0
    while not stop.is_set():
        begun_s = parts.clock.monotonic_s()
        try:
            async with connected(parts.settings.nats) as link:
                await ensure_streams(link)
                await _note(parts, link)
                await _stand_on(parts, link, stop, take)
        except Exception as error:  # noqa: BLE001  (whatever it is, the program goes on without NATS, and says so)
            _tell(parts, error_text(error))
            failures = 0 if parts.clock.monotonic_s() - begun_s > STOOD_S else failures
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _AGAIN.delay_s(failures, parts.clock.random()))
            failures += 1


class NatsForAWhile:
    """NATS for a process that ends when nothing is due: what waits there is taken, what waits here is published."""

    def __init__(self, parts: Parts, link: NatsLink, take: Take | None) -> None:
        self._intake = None if take is None or not parts.settings.nats.take else EventIntake(parts, link, take)
        self._relay = _relay(parts, link) if parts.settings.nats.publish else None

    async def take_events(self, stop: asyncio.Event) -> int:
        """How many there were; those that cannot be taken in yet are given again to whoever asks later.

        Raises Unavailable.
        """
        taken = 0
        while self._intake is not None and not stop.is_set():
            found = await self._intake.step(EMPTY_S)
            taken += found
            if not found:
                break
        return taken

    async def publish(self, stop: asyncio.Event) -> None:
        """But for projects that another process publishes now. Raises Unavailable."""
        while self._relay is not None and not stop.is_set() and await self._relay.step():
            pass


@asynccontextmanager
async def nats_for_a_while(parts: Parts, take: Take | None) -> AsyncIterator[NatsForAWhile | None]:
    """None where no server is set. Meanwhile jobs of this process may read messages again. Raises Unavailable."""
    if parts.settings.nats.url is None:
        yield None
        return
    async with connected(parts.settings.nats) as link:
        await ensure_streams(link)
        await _note(parts, link)
        if take is not None:
            parts.nats.counter = Counter(link=link, take=take, loop=asyncio.get_running_loop())
        try:
            yield NatsForAWhile(parts, link, take)
            await _note(parts, link)
        finally:
            parts.nats.counter = None


def _relay(parts: Parts, link: NatsLink) -> ChangeRelay:
    owner = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
    publisher = ChangePublisher(parts.store, link, parts.clock, owner=owner)
    return ChangeRelay(parts.store, publisher, parts.clock, owner=owner)


def _tell(parts: Parts, why: str) -> None:
    """In the log once, until something else is the matter."""
    before = parts.nats.seen
    if before is None or before.trouble != why:
        _log.warning("NATS fails; it is tried again", why=why)
    parts.nats.failed(parts.settings.nats, why, parts.clock.now_us())


async def _note(parts: Parts, link: NatsLink) -> None:
    parts.nats.seen = await look(link)


async def _stand_on(parts: Parts, link: NatsLink, stop: asyncio.Event, take: Take | None) -> None:
    """Until the process is to end, the connection breaks or something that stands on it fails; that is raised."""
    settings = parts.settings.nats
    work = [asyncio.create_task(_keep_looking(parts, link, stop))]
    if settings.take and take is not None:
        parts.nats.counter = Counter(link=link, take=take, loop=asyncio.get_running_loop())
        work.append(asyncio.create_task(EventIntake(parts, link, take).run(stop)))
    if settings.publish:
        work.append(asyncio.create_task(_relay(parts, link).run(stop)))
    ends = [asyncio.create_task(stop.wait()), asyncio.create_task(link.closed.wait())]
    _log.info("attending to NATS", server=link.server)
    try:
        await asyncio.wait([*work, *ends], return_when=asyncio.FIRST_COMPLETED)
        if stop.is_set():
            await asyncio.wait(work, timeout=LEAVE_S)
    finally:
        parts.nats.counter = None
        for task in (*work, *ends):
            task.cancel()
        results = await asyncio.gather(*work, *ends, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
    if not stop.is_set():
        raise ConnectionError("the connection to NATS broke")


async def _keep_looking(parts: Parts, link: NatsLink, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await _note(parts, link)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), LOOK_S)
