"""Attending to NATS beside a server or a worker: a connection, what stands on it, and another one when it breaks.

Without NATS nothing is missing here: the program goes on, says what it cannot reach, and tries again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
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
        owner = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        publisher = ChangePublisher(parts.store, link, parts.clock, owner=owner)
        work.append(asyncio.create_task(ChangeRelay(parts.store, publisher, parts.clock, owner=owner).run(stop)))
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
