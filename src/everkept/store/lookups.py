"""One answer for all who ask the same at once, where each answer is a trip to a server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any


class Lookups:
    """Whoever asks is told what was read after they asked: a trip that is under way is not theirs, the next one is."""

    def __init__(self) -> None:
        self._begun: dict[Hashable, asyncio.Task[Any]] = {}
        self._next: dict[Hashable, asyncio.Task[Any]] = {}

    async def look_up(self, question: Hashable, look: Callable[[], Awaitable[Any]]) -> Any:
        """What `look` returns or raises, for this question."""
        key = (asyncio.get_running_loop(), question)
        task = self._next.get(key)
        if task is None:
            before = self._begun.get(key)
            task = asyncio.create_task(self._first(key, look) if before is None else self._after(before, key, look))
            (self._begun if before is None else self._next)[key] = task
        return await asyncio.shield(task)  # it is not only for this caller, who may leave

    async def _first(self, key: Hashable, look: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await look()
        finally:
            del self._begun[key]

    async def _after(self, before: asyncio.Task[Any], key: Hashable, look: Callable[[], Awaitable[Any]]) -> Any:
        try:
            await asyncio.wait([before])
        finally:
            task = self._next.pop(key)
        self._begun[key] = task
        return await self._first(key, look)
