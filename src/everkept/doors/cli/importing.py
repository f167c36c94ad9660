"""`import`: a chat export becomes threads, transcripts of coding agents sessions; every line is accounted for."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from everkept.capture.agents.formats import FORMATS, recognise
from everkept.doors.cli import backend, failures, screen, transcripts
from everkept.doors.cli.options import COMMON, OWNER, Common, Switch, command_group
from everkept.doors.cli.wording import clip, count
from everkept.errors import InvalidInput, NotFound, Unavailable

if TYPE_CHECKING:
    from everkept.api import views as v
    from everkept.capture.importers import ParsedImport

UNREADABLE_SHOWN = 10


def parse_zone(_type: type[Any], tokens: Sequence[Any]) -> tzinfo:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    name = tokens[0].value
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError(f"{name!r} is not a time zone such as Europe/Lisbon") from error


Zone = Annotated[tzinfo, Parameter(help="Zone of times that name none, e.g. Europe/Lisbon.", converter=parse_zone)]


importing = command_group("import")


@importing.default
async def import_file(
    path: Annotated[Path, Parameter(help="The file: JSONL with one message or one conversation a line, or LoCoMo.")],
    /,
    *,
    subject: Annotated[str, Parameter(help="Whose memory it is, where the file does not say.")] = OWNER,
    thread: Annotated[str | None, Parameter(help="Put it all into this thread.")] = None,
    zone: Zone = UTC,
    wait: Annotated[bool, Switch, Parameter(help="Wait until it is remembered.")] = False,
    common: Common = COMMON,
) -> int:
    """Take in a chat export; a second run of the same file adds nothing."""
    from everkept.doors.cli import intake

    parsed = _in_thread(_parse(path, zone, subject), thread)
    async with backend.memory(common.project, worker=wait) as memory:
        before = await memory.status()
        with screen.progress("importing") as bar:
            taken = await intake.take_in(memory, parsed, bar)
        settled, known = False, 0
        if wait:
            with screen.progress("remembering") as bar:
                settled = await intake.settle(memory, before, len(taken.threads), bar)
            known = await intake.remembered(memory, taken.threads)
    if common.json:
        screen.emit(taken.report)
    else:
        _print_report(taken.report)
        _print_outcome(parsed, taken.report, known if wait else None)
    return _verdict(taken.report, settled=settled or not wait)


def _parse(path: Path, zone: tzinfo, subject: str) -> ParsedImport:
    """Raises NotFound for a missing file, Unavailable for one that cannot be read, InvalidInput for another shape."""
    from everkept.capture.importers import detect

    try:
        parsed = detect(path)(path, zone=zone, default_subject=subject)
    except FileNotFoundError as error:
        agents = f", and no agent of that name; agents are {', '.join(FORMATS)}" if path.name == str(path) else ""
        raise NotFound(f"there is no file {path}{agents}", path=str(path)) from error
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}", path=str(path)) from error
    _tell_sessions(path, parsed)
    return parsed


def _tell_sessions(path: Path, parsed: ParsedImport) -> None:
    """Raises InvalidInput for a coding agent's session without a chat in it; where there is one, only says so."""
    form = recognise(path)
    if form is None:
        return
    words = f"{path} is a session of {form.agent}: `everkept import {form.agent} {path}` takes it in as one"
    if not any(thread.messages for thread in parsed.threads):
        raise InvalidInput(words)
    screen.warn(f"{words}; this takes it in as a chat")


def _in_thread(parsed: ParsedImport, thread: str | None) -> ParsedImport:
    if thread is None:
        return parsed
    if len(parsed.threads) > 1:
        raise InvalidInput(f"{parsed.path} holds {len(parsed.threads)} threads; leave --thread out")
    return dataclasses.replace(parsed, threads=[dataclasses.replace(one, id=thread) for one in parsed.threads])


def _print_report(report: v.ImportReport) -> None:
    print(f"{report.path}: {count(report.lines, 'entry', 'entries')} in {count(report.threads, 'thread')}")
    rows = [(report.stored, "stored"), (report.replayed, "accepted before")]
    rows += [(number, f"passed by: {reason}") for reason, number in report.passed_by.items()]
    rows += [(len(report.unreadable), "unreadable")]
    for number, words in rows:
        if number or words == "stored":
            print(f"{number:>9,} {words}")
    for line in report.unreadable[:UNREADABLE_SHOWN]:
        print(f"          {clip(line, 120)}")
    if len(report.unreadable) > UNREADABLE_SHOWN:
        print(f"          and {len(report.unreadable) - UNREADABLE_SHOWN:,} more; --json lists them all")


def _print_outcome(parsed: ParsedImport, report: v.ImportReport, known: int | None) -> None:
    subject = parsed.threads[0].subject if parsed.threads else OWNER
    kept = report.stored + report.replayed
    if known is None:
        print(f"{count(kept, 'message')} searchable now; episodes and facts follow while a server or worker runs")
        screen.say("next: `everkept worker --until-idle` makes them now (or import with --wait)")
    else:
        print(f"{known:,} of {count(kept, 'message')} remembered")
        if known < kept:
            screen.warn("the rest waits or has failed: `everkept status` says why and what tries it again")
    screen.say(f'next: everkept recall "…" --subject {subject}, or everkept facts --subject {subject}')


def _verdict(report: v.ImportReport, *, settled: bool) -> int:
    if report.unreadable or not settled:
        return failures.NEEDS_ATTENTION
    return 0


transcripts.add_commands(importing)
