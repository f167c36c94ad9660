"""`erase`, `export` and `reprocess`: what is done to all that rests on something."""

from __future__ import annotations

import json as json_text
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from everkept import config
from everkept.doors.cli import backend, screen
from everkept.doors.cli.options import (
    COMMON,
    DEFAULT_PROJECT,
    Common,
    Json,
    Subject,
    Switch,
    Thread,
    time_option,
)
from everkept.doors.cli.wording import count
from everkept.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

    from everkept.api import views as v
    from everkept.api.service import Service

DryRun = Annotated[bool, Switch, Parameter(help="Only say what would be done.")]


async def erase(
    *,
    subject: Annotated[str | None, Parameter(help="Erase all that is kept about this subject.")] = None,
    thread: Annotated[str | None, Parameter(help="Erase this conversation.")] = None,
    session: Annotated[str | None, Parameter(help="Erase this session of a coding agent (ses_…).")] = None,
    event: Annotated[str | None, Parameter(help="Erase this one message or event (evt_…).")] = None,
    project: Annotated[
        str | None, Parameter(help="Where the above is; alone: erase this project with all that is in it.")
    ] = None,
    set_aside: Annotated[
        bool, Switch, Parameter(help="Erase the records of hooks on this machine that no store could take in.")
    ] = False,
    dry_run: DryRun = False,
    yes: Annotated[bool, Switch, Parameter(name=["--yes", "-y"], help="Do not ask.")] = False,
    json: Json = False,
) -> int:
    """Destroy exactly one thing and all that rests on it, for good.

    Shows what would be destroyed, then asks. A session is looked for in the project of the folder you are in.
    """
    if not (dry_run or yes or screen.can_ask()):
        raise InvalidInput("erasing cannot be undone and there is no terminal to ask on; give --yes, or --dry-run")
    if set_aside:
        if any((subject, thread, session, event, project)):
            raise InvalidInput("--set-aside stands alone: those records are of no project that is known")
        return _erase_set_aside(dry_run=dry_run, yes=yes, as_json=json)
    target = _target(subject=subject, thread=thread, session=session, event=event, project=project)
    async with _place(project, of_folder=session is not None, worker=not dry_run) as memory:
        if not (dry_run or yes):
            plan = await memory.erase(**target, dry_run=True)
            screen.notes().print(_plan_table(plan))
            if not screen.confirm(f"Erase {plan.scope} for good?"):
                screen.say("nothing was erased")
                return 1
        plan = await memory.erase(**target, dry_run=dry_run)
    if json:
        screen.emit(plan)
    else:
        screen.show(_plan_table(plan))
        _tell_residue(plan)
    return 0 if not plan.residue else 1


def _erase_set_aside(*, dry_run: bool, yes: bool, as_json: bool) -> int:
    """What no store has taken in lies in the home of this machine, whatever server it uses."""
    from everkept.api.erasing_aside import forget_all_aside, lying_aside

    home = config.load().home
    lying = lying_aside(home)
    if not (dry_run or yes) and not screen.confirm(f"Erase {count(lying, 'record')} set aside for good?"):
        screen.say("nothing was erased")
        return 1
    erased = 0 if dry_run else forget_all_aside(home)
    if as_json:
        screen.emit({"set_aside": lying, "erased": erased, "dry_run": dry_run})
    else:
        print(f"{count(lying, 'record')} set aside, {erased:,} erased")
    return 0


@asynccontextmanager
async def _place(project: str | None, *, of_folder: bool, worker: bool) -> AsyncIterator[Service]:
    if of_folder:
        async with backend.memory_here(project, worker=worker) as here:
            yield here.memory
    else:
        async with backend.memory(project or DEFAULT_PROJECT, worker=worker) as memory:
            yield memory


def _target(*, project: str | None, **given: str | None) -> dict[str, str]:
    """What exactly one of these names. Raises InvalidInput for none or several."""
    chosen = {word: value for word, value in given.items() if value is not None}
    if not chosen and project is not None:
        return {"project": project}
    if len(chosen) != 1:
        raise InvalidInput("say exactly one of --subject, --thread, --session or --event, or --project alone")
    return chosen


def _plan_table(plan: v.ErasePlan) -> Table:
    verb = "To be erased" if plan.dry_run else "Erased"
    drawn = screen.table(f"{verb}: {plan.scope}", "Rows", right=("Rows",))
    for kind, rows in plan.rows.items():
        drawn.add_row(kind, f"{rows:,}")
    return drawn


def _tell_residue(plan: v.ErasePlan) -> None:
    if plan.residue == 0:
        screen.say("looked again afterwards: nothing of it is left")
    elif plan.residue:
        screen.warn(f"{count(plan.residue, 'row')} of it left; run the same command again")
    if plan.set_aside:
        may = f"{count(plan.set_aside, 'record')} of hooks that could not be taken in may hold words of it"
        screen.warn(f"{may}; `everkept erase --set-aside` erases them")


async def export(
    *,
    subject: Annotated[str, Parameter(help="Whose memory.")],
    to: Annotated[Path | None, Parameter(help="Write to this file instead of stdout.")] = None,
    common: Common = COMMON,
) -> None:
    """Write all that is kept about a subject, as JSON: threads with messages, episodes, facts."""
    async with backend.memory(common.project) as memory:
        kept = await memory.export(subject)
    text = screen.to_json(kept) if common.json else json_text.dumps(kept, ensure_ascii=False, indent=2, default=str)
    if to is None:
        print(text)
        return
    try:
        to.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{to} cannot be written: {error.strerror}") from error
    screen.say(f"written to {to}")


async def reprocess(
    *,
    subject: Subject = None,
    thread: Thread = None,
    since: Annotated[datetime | None, time_option("Only what was said from this time on")] = None,
    until: Annotated[datetime | None, time_option("Only what was said before this time")] = None,
    fresh: Annotated[bool, Switch, Parameter(help="Ask the model again (paid); says the cost first.")] = False,
    include_skipped: Annotated[
        bool, Switch, Parameter(help="Also what was said while memory was switched off.")
    ] = False,
    dry_run: DryRun = False,
    yes: Annotated[bool, Switch, Parameter(name=["--yes", "-y"], help="Do not ask, also where it costs.")] = False,
    common: Common = COMMON,
) -> int:
    """Derive memory again from events and kept replies; nothing is paid twice unless `--fresh` is given."""
    scope = {"thread": thread, "subject": subject, "since": since, "until": until}
    options = {"fresh": fresh, "include_skipped": include_skipped}
    async with backend.memory(common.project) as memory:
        plan = await memory.reprocess(**scope, **options, dry_run=True)  # type: ignore[arg-type]
        if not dry_run:
            if plan.calls and not yes and not _agreed(plan):
                return 1
            plan = await memory.reprocess(**scope, **options)  # type: ignore[arg-type]
    if common.json:
        screen.emit(plan)
    else:
        print(_plan_line(plan))
    return 0


def _agreed(plan: v.ReprocessPlan) -> bool:
    if not screen.can_ask():
        raise InvalidInput(f"{_plan_line(plan)}; there is no terminal to ask on, so give --yes, or --dry-run")
    screen.say(_plan_line(plan))
    if screen.confirm("Go on?"):
        return True
    screen.say("nothing was scheduled")
    return False


def _plan_line(plan: v.ReprocessPlan) -> str:
    cost = f" (about {plan.estimated_usd:.2f} USD)" if plan.estimated_usd is not None and plan.calls else ""
    paid = f"{count(plan.calls, 'paid question')}{cost}" if plan.calls else "nothing to pay"
    done = "would be derived again" if plan.dry_run else "scheduled to be derived again"
    return f"{count(plan.windows if plan.dry_run else plan.scheduled, 'episode')} {done}; {paid}"
