"""Being awake for the hooks of a store's own machine: take their records in, and answer those that ask for context."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import structlog

from everkept.api.base import Parts
from everkept.api.context_ask import ask_of
from everkept.api.contexts import Contexts
from everkept.api.desk import NOTHING, SHARE_OF_BUDGET, Desk, budget_s_of
from everkept.api.draining import Drain, Drained, drain_all
from everkept.api.page_files import refresh_pages
from everkept.api.start_packs import leave_pack
from everkept.api.wiki import WikiProjector
from everkept.capture.identity import Checkout
from everkept.errors import EverkeptError
from everkept.hook.hook_script import scope_key

AWAKE_S: Final = 900.0
"""How long a worker that a hook started stays after the last hook."""
QUIET_EVERY_S: Final = 60.0
"""How often it is looked for sessions that fell silent without an end."""
RETRY_S: Final = 5.0
"""How often a server looks whether the lock has become free."""

_log = structlog.get_logger("everkept.hooks")


class HookDesk(Desk):
    """Drains one home's spool and answers its hooks."""

    def __init__(self, parts: Parts, home: Path) -> None:
        super().__init__(home)
        self._parts = parts
        self._drain = Drain(parts, self._spool)
        self._contexts = Contexts(parts)
        self._draining = asyncio.Lock()
        self._wiki = WikiProjector(parts, home) if parts.settings.wiki.enabled else None
        self._wiki_every_s = parts.settings.wiki.interval_s
        self._wiki_at_s = -math.inf
        self._quiet_at_s = -math.inf

    async def drain(self, within_s: float, *, before: str | None = None) -> Drained:
        """Take in what waits, as far as the time goes; with `before`, only what came before the record of that name.

        Records that the store cannot take now wait on.
        """
        try:
            await asyncio.wait_for(self._draining.acquire(), within_s)
        except TimeoutError:  # much waits, and somebody is at it
            return Drained()
        try:
            return await drain_all(self._drain, within_s=within_s, before=before)
        finally:
            self._draining.release()

    async def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """{"text", "offer", "age_s"} for a hook's record; no text where there is nothing to tell.

        A prompt's own record has nothing to do with its answer, so that it is taken in after it: a commit less to wait
        for. Only where nobody knows the place yet, the record is what makes it known.
        """
        record = question.get("hook") or {}
        within_s = budget_s_of(question) * SHARE_OF_BUDGET
        ask = ask_of(record)
        own = None if ask is None or ask.prompt is None else str(question.get("name") or "") or None
        await self.drain(within_s, before=own)
        if ask is None:
            return NOTHING
        if ask.prompt is None:
            await self._refresh(ask.checkout)
        given = await self._contexts.give(ask)
        if given.scope is None and own is not None:
            await self.drain(within_s)
            given = await self._contexts.give(ask)
        if ask.prompt is None and ask.launch is None:  # a launch's packet is for its own session
            await leave_pack(self._home, scope_key(record), given)
        return {"text": given.text, "offer": given.offer, "age_s": 0}

    async def _refresh(self, checkout: Checkout) -> None:
        """No rule is handed out that its file does not say any more."""
        with contextlib.suppress(EverkeptError):  # what is known is told all the same
            await refresh_pages(self._parts, checkout, Path.home())

    async def tidy(self) -> None:
        """Packs are made again once what ended has been digested, and pages and their files follow each other."""
        while self._drain.ended:
            key, checkout = self._drain.ended.popitem()
            await self._refresh(checkout)
            with contextlib.suppress(EverkeptError):
                await leave_pack(self._home, key, await self._contexts.pack(checkout))
        if time.monotonic() - self._quiet_at_s >= QUIET_EVERY_S:
            self._quiet_at_s = time.monotonic()
            with contextlib.suppress(EverkeptError):
                async with self._draining:
                    await self._drain.read_quiet()
        if self._wiki is not None and time.monotonic() - self._wiki_at_s >= self._wiki_every_s:
            await self._wiki.step()
            self._wiki_at_s = time.monotonic()


async def stay_awake(desk: Desk, stop: asyncio.Event) -> None:
    """What a server does beside its work: be awake for the hooks whenever nobody else is."""

    async def busy() -> bool:
        return False

    while not stop.is_set():
        try:
            await desk.stay(math.inf, busy=busy, stopped=stop.is_set)
        except Exception as error:  # noqa: BLE001  (nobody awaits this task: it would end unheard, and hooks with it)
            _log.error("nobody is awake for hooks; it is tried again", why=repr(error))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), RETRY_S)
