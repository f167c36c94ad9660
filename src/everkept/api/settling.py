"""Waiting until what was said is remembered: for scripts, tests, imports and the demo."""

from __future__ import annotations

import asyncio

from everkept.api.base import Cases
from everkept.store.settle import came_meanwhile, end_chunk, is_settled, unsettled_work

POLL_S = 0.05


class Settling(Cases):
    async def settle(self, *, timeout_s: float = 30.0) -> bool:
        """Ask for a window over all that is pending, then wait for the workers. False when time ran out.

        What is said meanwhile is asked for when all before it is done, so that no window is cut short by it.
        """
        until = self._parts.clock.monotonic_s() + timeout_s
        await self._ask_for_windows()
        while not await self._store.read(is_settled, self._project_id, self._settings):
            if self._parts.clock.monotonic_s() >= until:
                return False
            if await self._store.read(came_meanwhile, self._project_id, self._settings):
                await self._ask_for_windows()
            else:
                await asyncio.sleep(POLL_S)
        return True

    async def _ask_for_windows(self) -> None:
        after = await self._write(end_chunk, self._project_id, self._settings, 0)
        while after:
            after = await self._write(end_chunk, self._project_id, self._settings, after)

    async def unsettled(self) -> int:
        """Messages without an episode, and jobs that are due or failed and are tried again: what `settle` waits for."""
        return await self._store.read(unsettled_work, self._project_id, self._settings)
