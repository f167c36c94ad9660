"""Being awake for the hooks of this machine: one process is, the one that holds its home's worker lock.

It is a worker that a hook started, or a server. It listens on `<home>/context.sock`, one line of JSON there and one
back.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import structlog

from everkept.api.draining import Drained
from everkept.capture.spool import Spool, WorkerLock
from everkept.errors import EverkeptError

REQUEST_BYTES_MAX: Final = 8 << 20
BUDGET_MAX_S: Final = 10.0
SHARE_OF_BUDGET: Final = 0.5
"""Of the time that a hook has, what draining may take before it is answered."""
NOTHING: Final[dict[str, Any]] = {"text": "", "offer": None, "age_s": 0}
"""The answer where there is nothing to tell."""

_log = structlog.get_logger("everkept.hooks")


def budget_s_of(question: Mapping[str, Any]) -> float:
    """How long the hook that asks is held."""
    return min(float(question.get("budget_ms") or 0) / 1e3, BUDGET_MAX_S)


class _Stopped(Exception):
    """The process is to end."""


class Desk(ABC):
    """Drains one home's spool and answers its hooks; who takes the records in, and who knows answers, is for others."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._spool = Spool(home)
        self._asked = 0

    @abstractmethod
    async def drain(self, within_s: float) -> Drained:
        """Take in what waits. Records that cannot be taken now wait on."""

    @abstractmethod
    async def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """{"text", "offer", "age_s"} for a hook's record; no text where there is nothing to tell."""

    async def tidy(self) -> None:  # noqa: B027 - most have nothing to do then
        """What may be done once nothing waits."""

    def waiting(self) -> int:
        return self._spool.state().waiting

    async def stay(self, idle_s: float, *, busy: Callable[[], Awaitable[bool]], stopped: Callable[[], bool]) -> bool:
        """Be awake until no hook came for `idle_s` and nothing is `busy`, or until it is `stopped`.

        False where another process is awake for this home.
        """
        lock = WorkerLock(self._home)
        loop = asyncio.get_running_loop()

        def look() -> int:
            return asyncio.run_coroutine_threadsafe(self._look(busy), loop).result()

        def pause(seconds: float) -> None:
            if stopped():
                raise _Stopped
            time.sleep(seconds)

        try:
            if not await asyncio.to_thread(lock.take):
                return False
            async with self._listening():
                return await asyncio.to_thread(lock.until_idle, look, idle_s, pause=pause)
        except _Stopped:
            return True
        finally:
            lock.close()

    async def _look(self, busy: Callable[[], Awaitable[bool]]) -> int:
        """One look at the spool; how much there was to do."""
        drained = await self.drain(60.0)
        asked, self._asked = self._asked, 0
        for name, why in drained.refused.items():
            _log.warning("a hook's record is not taken in", record=name, why=why)
        if drained.records:
            return drained.records
        if await busy():
            return 1
        await self.tidy()
        return asked

    @contextlib.asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        if not hasattr(asyncio, "start_unix_server"):
            yield
            return
        path = self._home / "context.sock"
        path.unlink(missing_ok=True)  # of one that died: whoever holds the lock is alone
        old = os.umask(0o177)
        try:
            server = await asyncio.start_unix_server(self._answer, path=str(path), limit=REQUEST_BYTES_MAX)
        except OSError as error:  # its path is too long, mostly: what hooks leave is taken in all the same
            _log.warning("hooks cannot ask for context", why=str(error))
            yield
            return
        finally:
            os.umask(old)
        try:
            yield
        finally:
            server.close()
            path.unlink(missing_ok=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            self._asked += 1
            answer = await self.answer(json.loads(line))
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        except (OSError, ValueError, EverkeptError) as error:
            _log.warning("a hook got no context", why=str(error))
        finally:
            writer.close()
