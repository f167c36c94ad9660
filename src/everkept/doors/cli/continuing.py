"""`continue`: the line of work that went on last in this folder, with the agent that had it, or another one."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from everkept.api import workstream_views as w
from everkept.api.service import Service
from everkept.doors.cli import backend
from everkept.doors.cli.launching import Asked
from everkept.doors.cli.programs import available, program_named
from everkept.doors.cli.run import Arguments, Project, Workstream, launch_agent
from everkept.errors import NotFound


def continue_work(
    *arguments: Arguments,
    agent: Annotated[str | None, Parameter(help="Run this agent; without it, the one that had the work last.")] = None,
    workstream: Workstream = None,
    project: Project = None,
) -> int:
    """Go on with the work that was done last in this folder, whoever did it; ends with the agent's exit code.

    Options of this command come first; all that follows them is the agent's own.
    """
    program = None if agent is None else program_named(agent)

    async def ask(here: backend.Here) -> Asked:
        chosen = workstream or (await newest_here(here.memory, here.checkout.place)).id
        named = None if program is None else program.agent
        return Asked(workstream=chosen, agent=named, available=[] if named else _available())

    return launch_agent(ask, arguments, project=project, path=None if program is None else program.path)


async def newest_here(memory: Service, place: str) -> w.Workstream:
    """Of the workstreams that are selected in the worktree, or were launched there last, the one that last heard of
    something. Raises NotFound where there is none."""
    found: list[w.Workstream] = []
    cursor: str | None = None
    while True:
        page = await memory.list_workstreams(limit=200, cursor=cursor)
        found += [one for one in page.items if _is_of(one, place)]
        cursor = page.next_cursor
        if cursor is None:
            break
    if not found:
        raise NotFound("there is no work to continue in this folder; `everkept run AGENT` begins some", place=place)
    return max(found, key=lambda one: one.last_at or one.created_at)


def _is_of(workstream: w.Workstream, place: str) -> bool:
    return place in workstream.selected_in or (workstream.last is not None and workstream.last.worktree == place)


def _available() -> list[str]:
    """Raises NotFound where this machine has no agent that is known."""
    found = available()
    if not found:
        raise NotFound("no agent that is known is on PATH; name one with --agent")
    return found
