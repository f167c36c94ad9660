"""What hooks of this machine wrote and no store has yet: a command takes it in first, and says what still waits."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from everkept.doors.cli.screen import say
from everkept.errors import EverkeptError

if TYPE_CHECKING:
    from everkept.bootstrap import Application

DRAIN_S: Final = 0.2
"""How long a command or a tool of MCP first takes in what hooks left; the rest waits for the worker."""


async def take_in(opened: Application, home: Path) -> None:
    """What hooks left for this store, for moments; then says what still waits. A server does it by itself."""
    if await records_waiting(home):
        from everkept.capture.redaction import redact

        await asyncio.to_thread(redact, "")  # its rules are made ready first, which would take all of that time
        try:
            await opened.hooks().drain(DRAIN_S)
        except EverkeptError as error:
            say(f"what hooks left cannot be taken in now: {error.message}")
        await tell_what_waits(home)


async def tell_what_waits(home: Path) -> None:
    if waiting := await records_waiting(home):
        say(f"note: {waiting:,} records of hooks still wait to be taken in; the newest may be missing here")


async def records_waiting(home: Path) -> int:
    from everkept.capture.spool import Spool

    return len(await asyncio.to_thread(Spool(home).names))
