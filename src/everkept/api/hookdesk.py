"""Being awake for the hooks of this machine: take their records in, and answer those that ask for context.

One process is awake for a home, the one that holds its worker lock: a worker that a hook started, or a server. It
listens on `<home>/context.sock`, one line of JSON there and one back.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import structlog

from everkept.api.base import Parts
from everkept.api.contexts import AgentContext, ContextAsk, Contexts
from everkept.api.draining import Drain, Drained, drain_all
from everkept.capture.identity import checkout_of
from everkept.capture.spool import Spool, WorkerLock
from everkept.capture.start_packs import write_pack
from everkept.errors import EverkeptError
from everkept.hook.hook_script import SESSION_NAMES, find_text, kind_of, scope_key

AWAKE_S: Final = 900.0
"""How long a worker that a hook started stays after the last hook."""
RETRY_S: Final = 5.0
"""How often a server looks whether the lock has become free."""
REQUEST_BYTES_MAX: Final = 8 << 20
SHARE_OF_BUDGET: Final = 0.5
"""Of the time that a hook has, what draining may take before it is answered."""

_log = structlog.get_logger("everkept.hooks")


class _Stopped(Exception):
    """The process is to end."""


class HookDesk:
    """Drains one home's spool and answers its hooks."""

    def __init__(self, parts: Parts, home: Path) -> None:
        self._home = home
        self._spool = Spool(home)
        self._drain = Drain(parts, self._spool)
        self._contexts = Contexts(parts)
        self._draining = asyncio.Lock()
        self._asked = 0

    async def drain(self, within_s: float) -> Drained:
        """Take in what waits. Records that the store cannot take now wait on."""
        async with self._draining:
            return await drain_all(self._drain, within_s=within_s)

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
        await self._make_packs()
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
            answer = await self.answer(json.loads(line))
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        except (OSError, ValueError, EverkeptError) as error:
            _log.warning("a hook got no context", why=str(error))
        finally:
            writer.close()

    async def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """{"text", "offer", "age_s"} for a hook's record; no text where there is nothing to tell."""
        self._asked += 1
        record = question.get("hook") or {}
        budget_s = min(float(question.get("budget_ms") or 0) / 1e3, 10.0)
        await self.drain(budget_s * SHARE_OF_BUDGET)
        ask = _ask_of(record)
        if ask is None:
            return {"text": "", "offer": None, "age_s": 0}
        if kind_of(str(record.get("event", ""))) == "prompt":
            found = await self._contexts.prompt(ask)
        else:
            found = await self._contexts.start(ask)
            await self._write_pack(scope_key(record), found)
        return {"text": found.text, "offer": found.offer, "age_s": 0}

    async def _make_packs(self) -> None:
        """Made again once what ended has been digested."""
        while self._drain.ended:
            key, checkout = self._drain.ended.popitem()
            with contextlib.suppress(EverkeptError):
                await self._write_pack(key, await self._contexts.pack(checkout))

    async def _write_pack(self, key: str, context: AgentContext) -> None:
        if context.text:
            await asyncio.to_thread(write_pack, self._home, key, context.text)


def _ask_of(record: Mapping[str, Any]) -> ContextAsk | None:
    place = record.get("place")
    cwd = record.get("cwd")
    checkout = checkout_of(place if isinstance(place, dict) else {}, cwd if isinstance(cwd, str) else None)
    payload = record.get("payload")
    session = find_text(payload, SESSION_NAMES)
    if checkout is None or not session:
        return None
    return ContextAsk(
        agent=str(record.get("agent", "")), session=session, checkout=checkout,
        source=find_text(payload, ("source", "trigger")) or "startup",
        prompt=find_text(payload, ("prompt", "user_prompt", "message", "text")) or None,
    )  # fmt: skip


async def stay_awake(desk: HookDesk, stop: asyncio.Event) -> None:
    """What a server does beside its work: be awake for the hooks whenever nobody else is."""

    async def busy() -> bool:
        return False

    while not stop.is_set():
        try:
            await desk.stay(math.inf, busy=busy, stopped=stop.is_set)
        except OSError as error:  # the home cannot be written: hooks cannot write there either
            _log.warning("nobody is awake for hooks", why=str(error))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), RETRY_S)
