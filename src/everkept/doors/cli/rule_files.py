"""`proposals publish` and `unpublish`: what was agreed on, in the files that coding agents read without asking."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import structlog
from cyclopts import Parameter

from everkept import config
from everkept.doors.cli import backend, screen
from everkept.doors.cli.failures import NEEDS_ATTENTION
from everkept.doors.cli.options import OF_FOLDER, OfFolder, Switch
from everkept.errors import CannotWire, EverkeptError

if TYPE_CHECKING:
    from everkept.bootstrap import Application
    from everkept.wiring.rule_files import Written

EVERY_S = 30.0
_log = structlog.get_logger("everkept.rules")


async def publish(
    *,
    automatic: Annotated[
        bool, Switch, Parameter(help="From now on the files follow by themselves, while a worker runs here.")
    ] = False,
    common: OfFolder = OF_FOLDER,
) -> int:
    """Write approved rules, procedures and skills into AGENTS.md, CLAUDE.md and SKILL.md folders of this checkout.

    Only between marks of ours; what somebody has changed there becomes a version of its page first.
    """
    from everkept.wiring.agreed_folders import agree
    from everkept.wiring.rule_files import write_rule_files

    async with backend.memory_here(common.project) as here:
        root = Path(here.checkout.place)
        try:
            written = await write_rule_files(here.memory, root)
            if automatic:
                agree(config.load().home, root, here.scope.project)
        except OSError as error:
            raise CannotWire(f"{error.filename or root} cannot be written: {error.strerror}") from error
    return _tell(written, as_json=common.json, nothing="the files show what is agreed on already")


async def unpublish(*, common: OfFolder = OF_FOLDER) -> int:
    """Take what `publish` wrote out of the files of this checkout: they are as they were, to the byte."""
    from everkept.wiring.agreed_folders import agree
    from everkept.wiring.rule_files import remove_rule_files

    async with backend.memory_here(common.project) as here:
        root = Path(here.checkout.place)
        try:
            agree(config.load().home, root, None)
            written = await remove_rule_files(here.memory, root)
        except OSError as error:
            raise CannotWire(f"{error.filename or root} cannot be written: {error.strerror}") from error
    return _tell(written, as_json=common.json, nothing="there was nothing of ours")


async def keep_up(application: Application, home: Path, stop: asyncio.Event) -> None:
    """Beside a worker: the checkouts of this machine whose files are to follow by themselves."""
    while not stop.is_set():
        await follow(application, home)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), EVERY_S)


async def follow(application: Application, home: Path) -> None:
    """Once. What one checkout says is logged, and holds up no other."""
    from everkept.wiring.agreed_folders import agreed_folders
    from everkept.wiring.rule_files import write_rule_files

    for root, project in agreed_folders(home).items():
        if not root.is_dir():
            continue
        try:
            written = await write_rule_files(await application.service(project), root)
        except (EverkeptError, OSError) as error:  # of this checkout; the next look tries again
            _log.warning("rule files do not follow", folder=str(root), why=str(error))
            continue
        for path, why in written.left_alone.items():
            _log.warning("a rule file was left as it is", path=path, why=why)


def _tell(written: Written, *, as_json: bool, nothing: str) -> int:
    if as_json:
        screen.emit({"files": written.files, "taken_in": written.taken_in, "left_alone": written.left_alone})
    else:
        for path in written.files:
            print(path)
        for page in written.taken_in:
            screen.say(f"taken in first: {page}")
        if not written.files and not written.left_alone:
            screen.say(nothing)
    for path, why in written.left_alone.items():
        screen.warn(f"{path} was left as it is: {why}")
    return NEEDS_ATTENTION if written.left_alone else 0
