"""Whoever is moved one store call at a time: frozen while it is not moved, and gone for good once it is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from everkept.store.reach import Reach

if TYPE_CHECKING:
    from tests.crash.model.ground import Ground


class Gated:
    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.free = False
        """Runs without waiting at gates."""
        self._allowed = 0
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """What it is doing now."""
        raise NotImplementedError

    def kill(self) -> None:
        """It is gone between two calls; what it held stays leased."""
        self.alive = False
        for task in self.tasks:
            task.cancel()

    async def gate(self) -> None:
        """Pass if one more call is allowed; else wait until it is moved. A dead one never passes."""
        if not self.alive:
            raise asyncio.CancelledError
        if self.free:
            return
        if self._allowed > 0:
            self._allowed -= 1
            return
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            await waiting
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
        if not self.alive:
            raise asyncio.CancelledError

    def move(self, calls: int | None) -> None:
        """Let what waits at gates do so many calls, in turn; None: all they want."""
        self.free, self._allowed = calls is None, calls or 0
        for waiting in list(self._waiting):
            if not self.free:
                if self._allowed <= 0:
                    break
                self._allowed -= 1
            self._waiting.remove(waiting)
            if not waiting.done():
                waiting.set_result(None)

    def stop_moving(self) -> None:
        self.free, self._allowed = False, 0


class Port:
    """The store as one of them sees it: each of its calls waits at a gate until it is moved."""

    def __init__(self, ground: Ground, doer: Gated) -> None:
        self._ground = ground
        self._doer = doer

    def reaching(self, _reach: Reach) -> Port:
        """A file has one lock, whoever writes."""
        return self

    async def write(self, function: Callable[..., Any], *args: Any) -> Any:
        await self._doer.gate()
        return self._ground.perform(self._doer, function, args)

    async def read(self, function: Callable[..., Any], *args: Any, **kw: Any) -> Any:
        await self._doer.gate()
        self._ground.note_read()
        return self._ground.store.read_now(function, *args, **kw)

    def write_now(self, function: Callable[..., Any], *args: Any, urgent: bool = False) -> Any:
        return self._ground.perform(self._doer, function, args)
