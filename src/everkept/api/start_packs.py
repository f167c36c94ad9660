"""Start packs: what the next agent in a folder is told from disk, where nobody answers its hook in time."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

import structlog

from everkept.api import views as v
from everkept.api.contexts import Contexts
from everkept.capture.identity import Checkout
from everkept.capture.start_packs import write_pack
from everkept.errors import EverkeptError
from everkept.hook.hook_script import place_of, scope_key

_log = structlog.get_logger("everkept.hooks")


async def leave_packs(contexts: Contexts, home: Path, checkouts: Iterable[Checkout]) -> None:
    """One for each folder in which an agent may start, as its hook will name it. Safe to repeat."""
    for checkout in checkouts:
        key = await asyncio.to_thread(_key_of, checkout)
        if key is not None:
            with contextlib.suppress(EverkeptError):  # nobody knows the place: there is nothing to tell
                await leave_pack(home, key, await contexts.pack(checkout))


def _key_of(checkout: Checkout) -> str | None:
    """None where the folder is gone: nobody starts there."""
    if not os.path.isdir(checkout.cwd):
        return None
    return scope_key({"cwd": checkout.cwd, "place": place_of(checkout.top) if checkout.top else {}})


async def leave_pack(home: Path, key: str, context: v.AgentContext) -> None:
    """`key`: scope key of the place. Nothing where there is nothing to tell."""
    if not context.text:
        return
    try:
        await asyncio.to_thread(write_pack, home, key, context.text)
    except OSError as error:  # it is only for hooks that come too early
        _log.warning("a start pack could not be written", why=str(error))
