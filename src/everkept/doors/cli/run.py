"""`run`: an agent in this terminal, as a launch of the line of work that this folder continues."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from everkept import config
from everkept.capture.agents.policy import policy_at
from everkept.doors.cli import backend, screen
from everkept.doors.cli.agent_process import AgentProcess
from everkept.doors.cli.launching import Asked, Launching, pick_up
from everkept.doors.cli.programs import program_named
from everkept.errors import InvalidInput, NotFound, Unavailable
from everkept.hook.hook_script import is_off

LAUNCH = "EVERKEPT_LAUNCH"
Arguments = Annotated[str, Parameter(help="Passed on to the agent as they stand.", allow_leading_hyphen=True)]
Workstream = Annotated[
    str | None, Parameter(help="The workstream, by its id or name; without it, the one that this folder continues.")
]
Project = Annotated[str | None, Parameter(help="The body of memory to use; without it, that of the folder you are in.")]
Ask = Callable[[backend.Here], Awaitable[Asked]]
"""What to launch, once the memory of the folder is reached."""


def run(
    agent: Annotated[str, Parameter(help="claude, codex, gemini, opencode, cursor-agent, or any other program.")],
    /,
    *arguments: Arguments,
    workstream: Workstream = None,
    project: Project = None,
) -> int:
    """Run an agent in this terminal, its sessions linked to this folder's workstream; ends with its exit code.

    Options of this command come before the agent; all that follows it is the agent's own.
    """
    program = program_named(agent)

    async def ask(_: backend.Here) -> Asked:
        return Asked(workstream=workstream, agent=program.agent)

    return launch_agent(ask, arguments, project=project, path=program.path)


def launch_agent(ask: Ask, arguments: Sequence[str], *, project: str | None, path: str | None = None) -> int:
    """Launch what is asked for, and stay with it; its exit code. `path`: its program, else by the launch's agent.

    Where memory is off, only the agent runs. Raises Conflict where the workstream is held, NotFound, Unavailable.
    """
    if off := _why_off():
        return _unseen(path, arguments, off)
    home = config.load().home
    launching, agent = asyncio.run(_prepare(ask, home, project))
    with contextlib.ExitStack() as remarks:
        try:
            process = AgentProcess(
                [path or program_named(agent).path, *arguments], os.environ | {LAUNCH: launching.launch}
            )  # fmt: skip
            remarks.enter_context(_remarks_aside(home))
            running = contextlib.ExitStack()
            running.enter_context(process.started())
        except (OSError, NotFound) as error:
            asyncio.run(launching.cancel())
            if isinstance(error, NotFound):
                raise
            raise Unavailable(f"{path or agent} cannot be started: {error}") from error
        code = _stay_with(process, running, launching)
    _tell_end(launching)
    return code


def _why_off() -> str | None:
    if is_off(os.environ):
        return "EVERKEPT_OFF is set"
    return "its .everkept.toml turns memory off in this folder" if policy_at(Path.cwd()).off else None


def _unseen(path: str | None, arguments: Sequence[str], why: str) -> int:
    """Raises InvalidInput where no agent is named: which one had the work is not looked up."""
    if path is None:
        raise InvalidInput(f"{why}: name the agent", field="agent")
    screen.say(f"{why}: nothing of this is kept")
    process = AgentProcess([path, *arguments], {k: v for k, v in os.environ.items() if k != LAUNCH})
    try:
        with process.started():
            return process.wait()
    except OSError as error:
        raise Unavailable(f"{path} cannot be started: {error}") from error


async def _prepare(ask: Ask, home: Path, project: str | None) -> tuple[Launching, str]:
    await pick_up(home, backend.memory)
    async with backend.memory_here(project, create=True) as here:
        asked = await ask(here)
        launch = await asked.prepare(here.memory, here.checkout)
        screen.say(f"workstream {launch.workstream}, {launch.agent}: {launch.chosen_because}")
        try:
            launching = Launching.of(
                launch, asked, project=here.scope.project, checkout=here.checkout, home=home, reach=backend.memory
            )
        except OSError as error:
            await here.memory.cancel_launch(launch.id, fence=launch.fence)
            raise Unavailable(f"{home} cannot be written: {error}") from error
    return launching, launch.agent


def _stay_with(process: AgentProcess, running: contextlib.ExitStack, launching: Launching) -> int:
    """Until it has ended and the memory was told. `running` holds signals back while it runs."""
    with running:
        launching.agent_is(process.pid)
        with launching.kept_alive():
            code = process.wait()
    with contextlib.suppress(KeyboardInterrupt):  # who does not want to wait: a later launch tells the rest
        asyncio.run(launching.finish(code))
    return code


@contextlib.contextmanager
def _remarks_aside(home: Path) -> Iterator[None]:
    """The terminal is the agent's: what we have to say goes to a file."""
    with (
        (home / "launches" / "run.log").open("w", encoding="utf-8", buffering=1) as aside,
        contextlib.redirect_stderr(aside),
    ):
        yield


def _tell_end(launching: Launching) -> None:
    if launching.taken_over:
        screen.warn("another launch has taken this workstream over meanwhile; what was said here is kept all the same")
    if launching.trouble is not None:
        screen.warn(
            f"the end could not be told: {launching.trouble.message}; the next `everkept run` in any folder tells it"
        )
