"""The life of a launch around its agent: leased, kept alive, its transcripts taken in, finished.

The memory is looked for afresh each time: a server that is stopped, killed or started meanwhile changes nothing, the
store of this home answers in its place. What cannot be told now is told at the next beat; what was not told when this
process dies, a later launch tells (`pick_up`).
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import getpass
import socket
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

from everkept.api import workstream_views as w
from everkept.api.service import Service
from everkept.capture.identity import Checkout, look_at
from everkept.doors.cli import launches_left, screen
from everkept.doors.cli.launch_tail import Tail
from everkept.doors.cli.launches_left import Running
from everkept.errors import Conflict, EverkeptError, LeaseLost, NotFound

BEAT_S: Final = 30.0
"""Between two heartbeats; a lease lasts 90 s."""
T = TypeVar("T")
Reach = Callable[[str], AbstractAsyncContextManager[Service]]
"""Opens the memory of a project, wherever it is found."""


def owner_here() -> str:
    """Who holds a launch, for whoever finds it held."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container without names
        user = "somebody"
    return f"{user}@{socket.gethostname()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a launch is prepared by; asked again in the same words it is the same launch."""

    workstream: str | None
    agent: str | None
    available: list[str] = field(default_factory=list)
    owner: str = field(default_factory=owner_here)
    key: str = field(default_factory=lambda: f"run-{uuid.uuid4().hex}")

    async def prepare(self, memory: Service, checkout: Checkout) -> w.Launch:
        """Raises Conflict where another launch holds the workstream, NotFound."""
        return await memory.prepare_launch(
            self.owner, checkout=checkout, workstream=self.workstream, agent=self.agent, available=self.available,
            key=self.key,
        )  # fmt: skip


class Launching:
    """One launch, from its lease on."""

    def __init__(
        self, reach: Reach, home: Path, running: Running, mark: launches_left.Mark, checkout: Checkout
    ) -> None:
        self._reach = reach
        self._running = running
        self._mark = mark
        self._checkout = checkout
        self._tail = Tail(running.launch, running.agent, checkout, running.started_at_us, home)
        self.trouble: EverkeptError | None = None
        """Why the memory could not be told when it was tried last."""
        self.taken_over = False

    @classmethod
    def of(
        cls, launch: w.Launch, asked: Asked, *, project: str, checkout: Checkout, home: Path, reach: Reach
    ) -> Launching:  # fmt: skip
        """Of a launch that was prepared just now. Raises OSError where the home cannot be written."""
        running = Running(
            launch=launch.id, project=project, agent=launch.agent, owner=asked.owner, key=asked.key,
            asked_workstream=asked.workstream, asked_agent=asked.agent, available=asked.available, fence=launch.fence,
            directory=checkout.cwd, started_at_us=time.time_ns() // 1_000, pid=0,
        )  # fmt: skip
        return cls(reach, home, running, launches_left.mark(home, running), checkout)

    @property
    def launch(self) -> str:
        return self._running.launch

    def agent_is(self, pid: int) -> None:
        """The agent was started."""
        self._note(replace(self._running, pid=pid))

    @contextlib.contextmanager
    def kept_alive(self, *, every_s: float = BEAT_S) -> Iterator[None]:
        """Within, a thread sends heartbeats and what the transcripts tell."""
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(every_s):
                asyncio.run(self.beat())

        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: context.run(beat), name="everkept-launch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(every_s)

    async def beat(self) -> None:
        """One heartbeat, and what is new in the transcripts. What fails is tried at the next."""

        async def tell(memory: Service) -> None:
            if not self.taken_over:
                await self._hold(memory)
            await self._tail.send(memory)

        await self._try(tell)

    async def _hold(self, memory: Service) -> None:
        """Renew the lease; one that ended meanwhile, as after a sleep, is taken again where nobody else has it."""
        running = self._running
        try:
            await memory.heartbeat_launch(running.launch, fence=running.fence)
        except LeaseLost:
            try:
                again = await _asked(running).prepare(memory, self._checkout)
            except (Conflict, LeaseLost):
                self.taken_over = True
            else:
                self._note(replace(running, fence=again.fence))

    async def finish(self, exit_code: int | None) -> bool:
        """The agent has ended: the rest of its transcripts, and its end; whether the memory was told."""

        async def tell(memory: Service) -> None:
            await self._tail.send(memory)
            await memory.finish_launch(
                self._running.launch, fence=self._running.fence, native_session=self._tail.session,
                source_cursor=self._tail.cursor, exit_code=exit_code,
            )  # fmt: skip

        told = await self._try(tell)
        if told:
            self._mark.remove()
        return told

    async def tell_tail(self) -> None:
        """What the transcripts have told by now; the launch stays as it is."""
        await self._try(self._tail.send)
        self._mark.release()

    async def cancel(self) -> None:
        """The agent could not be started."""
        await self._try(lambda memory: memory.cancel_launch(self._running.launch, fence=self._running.fence))
        self._mark.remove()

    async def _try(self, tell: Callable[[Service], Awaitable[object]]) -> bool:
        """Whether it was told. A launch that is no more, as after an erase, has nothing to be told.

        A project that is no more may only be called otherwise by now: that is told to the person.
        """
        try:
            async with self._reach(self._running.project) as memory:
                with contextlib.suppress(NotFound):
                    await tell(memory)
            self.trouble = None
        except LeaseLost:
            self.trouble, self.taken_over = None, True
        except EverkeptError as error:
            self.trouble = error
            return False
        except Exception as error:  # noqa: BLE001 - the lease and the exit code outlive an unreadable transcript, a full disk
            self.trouble = EverkeptError(f"{type(error).__name__}: {error}")
            return False
        return True

    def _note(self, running: Running) -> None:
        self._running = running
        with contextlib.suppress(OSError):  # it is for who comes after us: the launch goes on
            self._mark.write(running)


def _asked(running: Running) -> Asked:
    return Asked(
        workstream=running.asked_workstream, agent=running.asked_agent, available=running.available,
        owner=running.owner, key=running.key,
    )  # fmt: skip


async def pick_up(home: Path, reach: Reach) -> int:
    """Tell what launches left whose process was killed; of how many. One whose agent still works is not finished."""
    count = 0
    for mark, running in launches_left.left_behind(home):
        try:
            checkout = await asyncio.to_thread(look_at, Path(running.directory))
        except Exception as error:  # noqa: BLE001 - of one that is left: it must not hold up the next launch
            screen.warn(f"what {running.launch} left cannot be told now: {type(error).__name__}: {error}")
            mark.release()
            continue
        launching = Launching(reach, home, running, mark, checkout)
        if launches_left.lives(running.pid):
            await launching.tell_tail()
        elif not await launching.finish(None):
            assert launching.trouble is not None
            screen.warn(f"what {running.launch} left cannot be told now: {launching.trouble.message}")
            mark.release()
            continue
        count += 1
    return count
