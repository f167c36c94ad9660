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
from everkept.api.contexts import AgentContext, ContextAsk, Contexts
from everkept.api.desk import Desk
from everkept.api.draining import Drain, Drained, drain_all
from everkept.api.wiki import WikiProjector
from everkept.capture.identity import checkout_of
from everkept.capture.start_packs import write_pack
from everkept.errors import EverkeptError
from everkept.hook.hook_script import SESSION_NAMES, find_text, kind_of, scope_key

AWAKE_S: Final = 900.0
"""How long a worker that a hook started stays after the last hook."""
RETRY_S: Final = 5.0
"""How often a server looks whether the lock has become free."""
SHARE_OF_BUDGET: Final = 0.5
"""Of the time that a hook has, what draining may take before it is answered."""

_log = structlog.get_logger("everkept.hooks")


class HookDesk(Desk):
    """Drains one home's spool and answers its hooks."""

    def __init__(self, parts: Parts, home: Path) -> None:
        super().__init__(home)
        self._drain = Drain(parts, self._spool)
        self._contexts = Contexts(parts)
        self._draining = asyncio.Lock()
        self._wiki = WikiProjector(parts, home) if parts.settings.wiki.enabled else None
        self._wiki_every_s = parts.settings.wiki.interval_s
        self._wiki_at_s = -math.inf

    async def drain(self, within_s: float) -> Drained:
        """Take in what waits, as far as the time goes. Records that the store cannot take now wait on."""
        try:
            await asyncio.wait_for(self._draining.acquire(), within_s)
        except TimeoutError:  # much waits, and somebody is at it
            return Drained()
        try:
            return await drain_all(self._drain, within_s=within_s)
        finally:
            self._draining.release()

    async def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """{"text", "offer", "age_s"} for a hook's record; no text where there is nothing to tell."""
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

    async def tidy(self) -> None:
        """Packs are made again once what ended has been digested, and pages and their files follow each other."""
        while self._drain.ended:
            key, checkout = self._drain.ended.popitem()
            with contextlib.suppress(EverkeptError):
                await self._write_pack(key, await self._contexts.pack(checkout))
        if self._wiki is not None and time.monotonic() - self._wiki_at_s >= self._wiki_every_s:
            await self._wiki.step()
            self._wiki_at_s = time.monotonic()

    async def _write_pack(self, key: str, context: AgentContext) -> None:
        if not context.text:
            return
        try:
            await asyncio.to_thread(write_pack, self._home, key, context.text)
        except OSError as error:  # it is only for hooks that come too early
            _log.warning("a start pack could not be written", why=str(error))


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
