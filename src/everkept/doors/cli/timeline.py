"""`timeline`: what happened in this folder's project."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from cyclopts import Parameter

from everkept.doors.cli import backend, screen
from everkept.doors.cli.options import OF_FOLDER, Cursor, Limit, OfFolder, time_option
from everkept.doors.cli.wording import more

Kind = Literal["session", "page", "handoff", "episode", "fact", "proposal"]


async def timeline(
    *,
    kind: Annotated[
        list[Kind] | None, Parameter(help="Only this kind; may be given several times.", negative="")
    ] = None,
    since: Annotated[datetime | None, time_option("Not earlier than this")] = None,
    until: Annotated[datetime | None, time_option("Earlier than this")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    common: OfFolder = OF_FOLDER,
) -> None:
    """List what happened, newest first: sessions, versions of pages, handoffs, episodes, facts, proposals."""
    async with backend.memory_here(common.project) as here:
        page = await here.memory.timeline(kinds=kind or None, since=since, until=until, limit=limit, cursor=cursor)
    if common.json:
        screen.emit(page)
        return
    if not page.items:
        screen.say("nothing happened" if since is None and until is None else "nothing happened then")
        return
    from everkept.doors.cli.agent_pages import timeline_list

    screen.show(timeline_list(page.items))
    if page.next_cursor:
        screen.say(more(page.next_cursor).removeprefix("; "))
