"""`sessions`: what coding agents did in this folder's project."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from everkept.doors.cli import backend, screen
from everkept.doors.cli.options import OF_FOLDER, Cursor, Limit, OfFolder, command_group
from everkept.doors.cli.wording import count, more

sessions = command_group("sessions")
SessionId = Annotated[str, Parameter(help="The id of the session (ses_…).")]


@sessions.default
async def list_sessions(
    *,
    agent: Annotated[str | None, Parameter(help="Only those of this agent, e.g. claude-code.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    common: OfFolder = OF_FOLDER,
) -> None:
    """List sessions of coding agents, newest first; show or end one."""
    async with backend.memory_here(common.project) as here:
        page = await here.memory.list_sessions(agent=agent, limit=limit, cursor=cursor)
    if common.json:
        screen.emit(page)
        return
    if not page.items:
        screen.say("no sessions" + (f" of {agent}" if agent else ""))
        return
    from everkept.doors.cli.agent_pages import session_list

    shown = [one for one in page.items if one.state != "phantom"]
    phantoms = len(page.items) - len(shown)
    screen.show(session_list(shown))
    left_out = f"; {count(phantoms, 'phantom')} left out (--json has them)" if phantoms else ""
    screen.say(count(len(shown), "session") + left_out + more(page.next_cursor))


@sessions.command(name="show")
async def show_session(
    session: SessionId,
    /,
    *,
    after: Annotated[int, Parameter(help="Only events after this place in the session.")] = 0,
    limit: Limit = 100,
    common: OfFolder = OF_FOLDER,
) -> None:
    """Show a session and its events, oldest first; long ones are cut, and whole with --json."""
    async with backend.memory_here(common.project) as here:
        found = await here.memory.get_session(session)
        page = await here.memory.session_events(session, after_seq=after, limit=limit)
    if common.json:
        screen.emit({"session": found.model_dump(mode="json"), "events": page.model_dump(mode="json")})
        return
    from everkept.doors.cli.agent_pages import event_list, session_head

    screen.show(session_head(found), event_list(page.items))
    if found.page:
        screen.say(f"what came of it: everkept pages show {found.page}")
    if page.next_cursor:
        screen.say(f"more with --after {page.next_cursor}")


@sessions.command(name="end")
async def end_session(session: SessionId, /, *, common: OfFolder = OF_FOLDER) -> None:
    """Digest a session now instead of after a quiet while; it may go on afterwards."""
    async with backend.memory_here(common.project) as here:
        result = await here.memory.end_session(session)
    if common.json:
        screen.emit(result)
    else:
        print(f"{session}  {'digest queued' if result.episode_queued else 'nothing to do'}: {result.reason}")
