"""Beside the jobs: whether the checkouts of this machine still have what pages of their projects name."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from everkept.errors import EverkeptError, ExtraMissing, NotFound

if TYPE_CHECKING:
    from everkept.api.nats_state import Take
    from everkept.bootstrap import Application

EVERY_S = 600.0
DAYS = 30
"""Folders in which no agent was at work for longer are not looked at."""
FOLDERS_MAX = 100
_log = structlog.get_logger("everkept.reviews")


async def attend(application: Application, stop: asyncio.Event) -> None:
    """What a server or a worker does beside its jobs, and the looks with it. Nothing is written into a checkout."""
    looking = asyncio.create_task(keep_up(application, application.settings.home, stop))
    try:
        await application.attend(stop, taker_of(application))
    finally:
        looking.cancel()
        await asyncio.wait([looking])


def taker_of(application: Application) -> Take | None:
    """What takes in messages of NATS, where a server of it is set. Raises ExtraMissing without the extra `nats`."""
    if application.settings.nats.url is None:
        return None
    try:
        from everkept.doors.nats import taker
    except ModuleNotFoundError as error:
        raise ExtraMissing(
            f"nats.url is set, and {error.name} is not installed: pip install 'everkept[nats]'", module=error.name
        ) from error
    return taker(application)


async def keep_up(application: Application, home: Path, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await look_at_checkouts(application, home)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), EVERY_S)


async def look_at_checkouts(application: Application, home: Path) -> None:
    """Once, where it is time. What one checkout says is logged, and holds up no other."""
    from everkept.wiring.stale_pages import look_for_stale_pages, take_turn

    try:
        if not take_turn(home, application.parts.clock.now_us() // 1_000_000):
            return
    except (EverkeptError, OSError) as error:
        _log.warning("checkouts are not looked at", why=str(error))
        return
    for project, folder in await application.recent_worktrees(days=DAYS, limit=FOLDERS_MAX):
        root = Path(folder)
        try:
            if await _belongs_to(application, root, project):
                await look_for_stale_pages(await application.service(project), root)
        except (EverkeptError, OSError) as error:  # of this checkout; the next look tries again
            _log.warning("a checkout was not looked at", folder=folder, why=str(error))


async def _belongs_to(application: Application, root: Path, project: str) -> bool:
    """A store may be shared with other machines: what lies in this folder here may be something else."""
    from everkept.capture.identity import look_at, with_root

    if not (root / ".git").exists():
        return False
    checkout = await asyncio.to_thread(lambda: with_root(look_at(root)))
    try:
        return (await application.resolve_scope(checkout)).project == project
    except NotFound:
        return False
