"""`import AGENT`: the sessions that coding agents keep on this machine, each line of them accounted for."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from everkept.capture.agents.formats import FORMATS
from everkept.doors.cli import backend, failures, screen
from everkept.doors.cli.options import DEFAULT_PROJECT, Json, Switch
from everkept.doors.cli.wording import count
from everkept.errors import InvalidInput, NotFound
from everkept.hook.hook_script import is_off

if TYPE_CHECKING:
    from everkept.api.service import Application
    from everkept.api.transcripts import TranscriptImport, TranscriptReport
    from everkept.capture.agents.reading import Format

LOOK_S = 0.3
STALLED_S = 30.0
"""Waiting for digests ends when none was made for so long."""
Found = tuple["Format | None", Path]


def add_commands(importing: App) -> None:
    """A command for each agent whose transcripts can be read."""
    for agent in FORMATS:
        help_text = f"Take in the sessions of {agent}; a second run adds what is new since."
        importing.command(_command_for(agent), name=agent, help=help_text)


def _command_for(agent: str) -> Callable[..., Awaitable[int]]:
    async def import_sessions(
        paths: Annotated[
            list[Path] | None,
            Parameter(help="Files or folders with transcripts; without one, all that the agent keeps.", negative=""),
        ] = None,
        /,
        *,
        project: Annotated[
            str | None, Parameter(help="Put all of it into this project, instead of that of each session's folder.")
        ] = None,
        again: Annotated[
            bool, Switch, Parameter(help="Also read files that did not change since they were read.")
        ] = False,
        wait: Annotated[
            bool, Parameter(help="Make the digests now, instead of leaving them to a server or worker.")
        ] = True,
        json: Json = False,
    ) -> int:
        return await _import(agent, paths or [], project=project, again=again, wait=wait, as_json=json)

    return import_sessions


async def _import(
    agent: str, paths: Sequence[Path], *, project: str | None, again: bool, wait: bool, as_json: bool
) -> int:
    """Take in the transcripts of an agent; a second run adds only what is new since."""
    from everkept.doors.cli.transcript_pages import as_dict, show_file, show_pages, show_sum, tally

    if is_off(os.environ):
        raise InvalidInput("EVERKEPT_OFF keeps everything out, and so the import; unset it to take in the sessions")
    found = _found(FORMATS[agent], paths)
    if not found:
        where = ", ".join(map(str, paths)) or f"{Path.home()} (if they are elsewhere, name the file or folder)"
        screen.say(f"no transcripts of {agent} in {where}")
    async with backend.store_here(worker=wait) as application:
        importer = application.importer()
        reports = await _take(agent, importer, found, project, again=again)
        sessions = {session for report in reports for session in report.taken.sessions}
        pages = await application.import_pages_of(sessions, Path.home())
        undigested = await _digest(application, reports) if wait else None
        await application.leave_start_packs(importer.worked_in.values())
        here = await backend.scope_here(await application.service(DEFAULT_PROJECT))
    if as_json:
        screen.emit(as_dict(reports, pages))
    else:
        for report in reports:
            show_file(report)
        show_sum(reports)
        show_pages(pages)
        _tell_next(reports, undigested, here=None if here is None else here.project)
    return failures.NEEDS_ATTENTION if tally(reports).faults or undigested else 0


def _found(form: Format, paths: Sequence[Path]) -> list[Found]:
    """What is to be read: what lies below the home folder, else what the paths hold.

    Raises NotFound for a path that does not exist. A file that is none of the agent's is reported, not read.
    """
    if not paths:
        return [(form, path) for path in form.find(Path.home())]
    return [one for path in paths for one in _below(form, path)]


def _below(form: Format, path: Path) -> Iterator[Found]:
    if not path.exists():
        raise NotFound(f"there is no file or folder {path}", path=str(path))
    if form.recognise(path):
        yield form, path
    elif path.is_dir():
        yield from [(form, inside) for inside in sorted(path.rglob("*")) if inside.is_file() and form.recognise(inside)]
    else:
        yield None, path


async def _take(
    agent: str, importer: TranscriptImport, found: Sequence[Found], project: str | None, *, again: bool
) -> list[TranscriptReport]:
    weights = [_weight(path) for _, path in found]
    total, done = sum(weights), 0
    reports = []
    with screen.progress("importing") as bar:
        for (form, path), weight in zip(found, weights, strict=True):

            def within(events: int, of: int, done: int = done, weight: int = weight, name: str = path.name) -> None:
                if events < of:  # the end of a file is told below
                    bar.at(done + weight * events // of, total, name)

            report = await importer.take(form, path, project=project, again=again, progress=within)
            if form is None:
                report = dataclasses.replace(report, skipped_because=f"{agent} writes no files like this")
            if report.reading is not None:
                report.reading.events.clear()  # they are in the store; the account is all that is still needed
            reports.append(report)
            done += weight
            bar.at(done, total, f"{len(reports):,} of {count(len(found), 'file')}")
    return reports


def _weight(path: Path) -> int:
    """How much of the bar a file is: its bytes."""
    try:
        return 1 + path.stat().st_size
    except OSError:
        return 1


async def _digest(application: Application, reports: Sequence[TranscriptReport]) -> int:
    """Wait until each session that got something is digested; how many are not, once nothing moves any more."""
    wanted = {session for report in reports for session in report.taken.sessions}
    loop = asyncio.get_running_loop()
    moved_at, last = loop.time(), len(wanted)
    with screen.progress("digesting") as bar:
        while wanted:
            left = await _undigested(application, wanted)
            bar.at(len(wanted) - left, len(wanted), f"{len(wanted) - left:,} of {count(len(wanted), 'session')}")
            if left != last:
                moved_at, last = loop.time(), left
            done = left == 0 and not await _carrying(application, wanted)
            if done or loop.time() - moved_at > STALLED_S:
                return left
            await asyncio.sleep(LOOK_S)
    return 0


async def _undigested(application: Application, wanted: set[tuple[str, int]]) -> int:
    left = 0
    for project in {name for name, _ in wanted}:
        mine = {f"ses_{stream}" for name, stream in wanted if name == project}
        memory = await application.service(project)
        cursor: str | None = None
        while mine:
            page = await memory.list_sessions(limit=500, cursor=cursor)
            left += sum(one.id in mine and one.state == "open" for one in page.items)
            mine -= {one.id for one in page.items}
            cursor = page.next_cursor
            if cursor is None:
                break
    return left


async def _carrying(application: Application, wanted: set[tuple[str, int]]) -> bool:
    """Whether handoffs are being told anew: of what an older session left open, which was digested after them."""
    for project in {name for name, _ in wanted}:
        memory = await application.service(project)
        for state in ("waiting", "ready", "leased"):
            if (await memory.list_jobs(state=state, kind="digest_session", limit=1)).items:
                return True
    return False


def _tell_next(reports: Sequence[TranscriptReport], undigested: int | None, *, here: str | None) -> None:
    """`here` is the project of the current folder, of which a person asks first."""
    projects = sorted({name for report in reports for name in report.taken.projects})
    if undigested:
        screen.warn(f"{count(undigested, 'session')} not digested yet: `everkept status` says why")
    elif undigested is None and any(report.taken.sessions for report in reports):
        screen.say("next: a server or `everkept worker --until-idle` makes their digests and handoffs")
    if here in projects:
        screen.say("next: everkept sessions, and everkept handoffs: where they left off")
    elif projects:
        screen.say(f"next: everkept sessions --project {projects[0]}, or without --project in its folder")
