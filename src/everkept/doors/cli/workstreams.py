"""`workstreams`: lines of work across several agents, and which of them this folder continues."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from everkept.doors.cli import backend, screen
from everkept.doors.cli.options import OF_FOLDER, Cursor, Limit, OfFolder, Switch, command_group
from everkept.doors.cli.wording import count, more

workstreams = command_group("workstreams")
Named = Annotated[str, Parameter(help="The workstream, by its id (wst_…) or name.")]
Name = Annotated[str, Parameter(help="A name for it, unique in the project.")]


@workstreams.default
async def list_workstreams(*, limit: Limit = 50, cursor: Cursor = None, common: OfFolder = OF_FOLDER) -> None:
    """List lines of work, the newest first; show, name or select one."""
    async with backend.memory_here(common.project) as here:
        page = await here.memory.list_workstreams(limit=limit, cursor=cursor)
    if common.json:
        screen.emit(page)
        return
    if not page.items:
        screen.say("no workstreams; `everkept run AGENT` begins one")
        return
    from everkept.doors.cli.workstream_pages import workstream_list

    screen.show(workstream_list(page.items, here.checkout.place))
    screen.say(count(len(page.items), "workstream") + more(page.next_cursor))


@workstreams.command(name="create")
async def create_workstream(
    name: Name,
    /,
    *,
    select: Annotated[bool, Switch, Parameter(help="Launches in this folder continue it from now on.")] = False,
    common: OfFolder = OF_FOLDER,
) -> None:
    """Begin a line of work, or find the one of this name."""
    async with backend.memory_here(common.project, create=True) as here:
        made = await here.memory.create_workstream(name, place=here.checkout.place if select else None)
    if common.json:
        screen.emit(made)
        return
    print(made.id)
    screen.say(f"workstream {made.name}" + (f", selected in {here.checkout.place}" if select else ""))


@workstreams.command(name="rename")
async def rename_workstream(workstream: Named, name: Name, /, *, common: OfFolder = OF_FOLDER) -> None:
    """Give a line of work another name; its id stays."""
    async with backend.memory_here(common.project) as here:
        renamed = await here.memory.rename_workstream(workstream, name)
    if common.json:
        screen.emit(renamed)
        return
    screen.say(f"{renamed.id} is called {renamed.name} now")


@workstreams.command(name="select")
async def select_workstream(workstream: Named, /, *, common: OfFolder = OF_FOLDER) -> None:
    """Have launches in this folder continue it."""
    async with backend.memory_here(common.project) as here:
        selected = await here.memory.select_workstream(workstream, place=here.checkout.place)
    if common.json:
        screen.emit(selected)
        return
    screen.say(f"launches in {here.checkout.place} continue {selected.name} ({selected.id})")


@workstreams.command(name="show")
async def show_workstream(workstream: Named, /, *, common: OfFolder = OF_FOLDER) -> None:
    """Show a line of work: where it is selected, who holds it, and its sessions."""
    async with backend.memory_here(common.project) as here:
        found = await here.memory.get_workstream(workstream)
    if common.json:
        screen.emit(found)
        return
    from everkept.doors.cli.workstream_pages import workstream_page

    screen.show(*workstream_page(found))


@workstreams.command(name="sessions")
async def list_linked_sessions(
    workstream: Named,
    /,
    *,
    launch: Annotated[str | None, Parameter(help="Only those that this launch (lch_…) linked.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    common: OfFolder = OF_FOLDER,
) -> None:
    """List the agents' sessions that belong to it, the newest first."""
    async with backend.memory_here(common.project) as here:
        page = await here.memory.list_linked_sessions(workstream, launch=launch, limit=limit, cursor=cursor)
    if common.json:
        screen.emit(page)
        return
    if not page.items:
        screen.say("no sessions")
        return
    from everkept.doors.cli.workstream_pages import session_list

    screen.show(session_list(page.items))
    screen.say(count(len(page.items), "session") + more(page.next_cursor))


@workstreams.command(name="events")
async def list_events(
    workstream: Named,
    /,
    *,
    query: Annotated[str | None, Parameter(help="Only those with all of these words, best first.")] = None,
    after: Annotated[str | None, Parameter(help="Go on behind this place of its ledger.")] = None,
    limit: Limit = 50,
    common: OfFolder = OF_FOLDER,
) -> None:
    """List what its sessions said and did, in the order in which it was taken in."""
    async with backend.memory_here(common.project) as here:
        page = await here.memory.workstream_events(workstream, after=after, query=query, limit=limit)
    if common.json:
        screen.emit(page)
        return
    if not page.items:
        screen.say("no events" if query is None else "no event has all of these words")
        return
    from everkept.doors.cli.workstream_pages import event_list

    screen.show(event_list(page.items))
    onward = f"; more with --after {page.next_cursor}" if page.next_cursor else ""
    screen.say(count(len(page.items), "event") + onward)
