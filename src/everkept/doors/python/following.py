"""`memory.follow`: every change one after the other, each acknowledged after it was worked."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import secrets
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Final

from everkept.api import views as v
from everkept.api.service import Service
from everkept.doors.python.loop_thread import LoopThread
from everkept.errors import Conflict, EverkeptError, LeaseLost, Unavailable

LEASE_S: Final = 60.0
WAIT_S: Final = 20.0
"""How long one question for new changes waits for an answer."""
PAUSE_FIRST_S: Final = 0.2
PAUSE_MAX_S: Final = 10.0
STAND_BY_S: Final = 5.0
"""How often somebody who is not the holder asks whether they may be."""
PAGE: Final = 200


class AsyncFollow:
    """`async for change in memory.follow(…)`. What was worked when the loop is left by `break` is given again."""

    def __init__(
        self, service: Service, consumer: str, *, kinds: Sequence[str] | None = None, subject: str | None = None,
        until_idle: bool = False, ack_every: int = 1, owner: str | None = None,
    ) -> None:  # fmt: skip
        self._service = service
        self._consumer = consumer
        self._kinds = None if kinds is None else list(kinds)
        self._subject = subject
        self._until_idle = until_idle
        self._ack_every = ack_every
        self._owner = owner or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"

    def __aiter__(self) -> AsyncGenerator[v.Change, None]:
        return self._follow()

    async def _follow(self) -> AsyncGenerator[v.Change, None]:
        pause_s = PAUSE_FIRST_S
        while True:
            try:
                async with self._held() as fence, aclosing(self._changes(fence)) as changes:
                    async for change in changes:
                        yield change
                        pause_s = PAUSE_FIRST_S
                    return
            except LeaseLost:  # somebody else works it, or we were frozen for too long: from its cursor on
                pause_s = PAUSE_FIRST_S
            except Conflict as held:
                if "holder" not in held.details:
                    raise
                pause_s = min(STAND_BY_S, PAUSE_FIRST_S + float(held.details["free_in_s"]))
            except Unavailable:  # it comes back, and nothing is lost meanwhile
                pause_s = min(PAUSE_MAX_S, 2 * pause_s)
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))

    async def _changes(self, fence: int) -> AsyncGenerator[v.Change, None]:
        """From the consumer's cursor on. A change was worked once the next one is asked for."""
        after, acknowledged = None, None
        while True:
            page = await self._service.changes(
                consumer=self._consumer, after=after, limit=PAGE, kinds=self._kinds, subject=self._subject,
                wait_s=0.0 if self._until_idle else WAIT_S,
            )  # fmt: skip
            worked = after
            try:
                for nth, change in enumerate(page.changes, 1):
                    yield change
                    worked = change.seq
                    if nth % self._ack_every == 0:
                        acknowledged = await self._service.ack(self._consumer, worked, fence=fence)
            except GeneratorExit:
                if worked not in (None, acknowledged):
                    with contextlib.suppress(EverkeptError):  # who leaves is let go: it is given again
                        await self._service.ack(self._consumer, worked, fence=fence)
                raise
            after = page.next_after
            if after != acknowledged:
                acknowledged = await self._service.ack(self._consumer, after, fence=fence)
            if self._until_idle and after >= page.head:
                return

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[int]:
        """Be the holder, however long a change is worked on. Raises Conflict where somebody else is."""
        lease = await self._service.lease_consumer(self._consumer, owner=self._owner, lease_s=LEASE_S)
        keeping = asyncio.create_task(self._keep(lease.fence))
        try:
            yield lease.fence
        finally:
            keeping.cancel()
            with contextlib.suppress(EverkeptError):  # it ends by itself
                await self._service.lease_consumer(self._consumer, owner=self._owner, lease_s=0.0, fence=lease.fence)

    async def _keep(self, fence: int) -> None:
        """Until it is lost, which the next acknowledgement tells."""
        while True:
            await asyncio.sleep(LEASE_S / 3)
            try:
                await self._service.lease_consumer(self._consumer, owner=self._owner, lease_s=LEASE_S, fence=fence)
            except LeaseLost:
                return
            except EverkeptError:  # the next one may reach it before the lease has ended
                continue


class Follow:
    """`for change in memory.follow(…)`. What was worked when the loop is left by `break` is given again."""

    def __init__(self, loop: LoopThread, follow: AsyncFollow) -> None:
        self._loop = loop
        self._follow = follow

    def __iter__(self) -> Iterator[v.Change]:
        changes = aiter(self._follow)
        try:
            while (change := self._loop.wait(_next(changes))) is not None:
                yield change
        finally:
            self._loop.wait(changes.aclose())


async def _next(changes: AsyncGenerator[v.Change, None]) -> v.Change | None:
    return await anext(changes, None)
