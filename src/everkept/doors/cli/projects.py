"""`projects` and `keys`: bodies of memory, and who may use them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from everkept.doors.cli import backend, screen
from everkept.doors.cli.history import parse_settings
from everkept.doors.cli.options import COMMON, DEFAULT_PROJECT, Common, Json, Switch, command_group
from everkept.doors.cli.wording import clean, day
from everkept.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

    from everkept.api import views as v
    from everkept.api.service import Service

projects = command_group("projects")
keys = command_group("keys")
MERGE_LOOK_S: Final = 0.2
MERGE_PATIENCE_S: Final = 60.0
"""How long the command waits for a merge that it began."""
Settings = Annotated[list[str], Parameter(help="`window.idle_s=60`, `memory.enabled=false`, …")]


@projects.default
async def list_projects(*, json: Json = False) -> None:
    """List projects; create, set up, rename, move or merge one, or trust this folder's marker."""
    async with backend.memory(DEFAULT_PROJECT) as memory:
        known = await memory.list_projects()
    if json:
        screen.emit_list(known)
        return
    drawn = screen.table("Project", "Messages", "Facts", "Since", "Settings", right=("Messages", "Facts"))
    for project in known:
        own = ", ".join(f"{key}={value}" for key, value in project.settings.items()) or "–"
        drawn.add_row(
            clean(project.name), f"{project.messages:,}", f"{project.facts:,}", day(project.created_at), clean(own)
        )
    screen.show(drawn)


@projects.command(name="create")
async def create_project(name: str, settings: Settings | None = None, /, *, json: Json = False) -> None:
    """Create a project, with its own settings if any are given."""
    async with backend.memory(DEFAULT_PROJECT) as memory:
        made = await memory.create_project(name, parse_settings(settings) if settings else None)
    screen.emit(made) if json else print(f"{made.id}  {made.name}")


@projects.command(name="set")
async def set_project(name: str, settings: Settings, /, *, json: Json = False) -> None:
    """Replace a project's own settings; all others come from the installation."""
    async with backend.memory(DEFAULT_PROJECT) as memory:
        after = await memory.update_project(name, settings=parse_settings(settings))
    screen.emit(after) if json else print(f"{after.id}  {after.name}")


@projects.command(name="rename")
async def rename_project(name: str, new_name: str, /, *, json: Json = False) -> None:
    """Give a project another name; its id stays."""
    async with backend.memory(DEFAULT_PROJECT) as memory:
        after = await memory.update_project(name, new_name=new_name)
    screen.emit(after) if json else print(f"{after.id}  {after.name}")


@projects.command(name="move")
async def move_project(
    name: str,
    /,
    *,
    workspace: Annotated[str, Parameter(help="The workspace to take it to; made if there is none.")],
    json: Json = False,
) -> None:
    """Take a project to another workspace; it is then called WORKSPACE/NAME, and its keys go on."""
    async with backend.memory(DEFAULT_PROJECT) as memory:
        after = await memory.move_project(name, workspace=workspace)
    screen.emit(after) if json else print(f"{after.id}  {after.name}")


@projects.command(name="merge")
async def merge_projects(
    source: str,
    into: str,
    /,
    *,
    dry_run: Annotated[bool, Switch, Parameter(help="Only say what would move.")] = False,
    yes: Annotated[bool, Switch, Parameter(name=["--yes", "-y"], help="Do not ask.")] = False,
    json: Json = False,
) -> int:
    """Bring all that a project has into another one, for good; its name and keys then mean that one.

    Shows what would move, then asks. It goes on in the background; `everkept status` shows how far it is.
    """
    if not (dry_run or yes or screen.can_ask()):
        raise InvalidInput("a merge cannot be undone and there is no terminal to ask on; give --yes, or --dry-run")
    async with backend.memory(DEFAULT_PROJECT, worker=not dry_run) as memory:
        found = await memory.merge_project(source, into, dry_run=True)
        if not dry_run:
            if not yes:
                screen.notes().print(_merge_table(found))
                if not screen.confirm(f"Merge {clean(source)} into {clean(into)} for good?"):
                    screen.say("nothing was merged")
                    return 1
            found = await _merged(memory, await memory.merge_project(source, into))
    if json:
        screen.emit(found)
    else:
        screen.show(_merge_table(found))
    return 0


async def _merged(memory: Service, merge: v.ProjectMerge) -> v.ProjectMerge:
    """Once it is done, or after a while, when it goes on without us."""
    for _ in range(int(MERGE_PATIENCE_S / MERGE_LOOK_S)):
        if merge.state == "done":
            return merge
        await asyncio.sleep(MERGE_LOOK_S)
        merge = await memory.find_merge(merge.into) or merge
    screen.say("it goes on in the background; `everkept status` shows how far it is")
    return merge


_MERGE_TITLES = {"planned": "Would move", "running": "Has moved so far", "done": "Has moved"}


def _merge_table(merge: v.ProjectMerge) -> Table:
    title = f"{_MERGE_TITLES[merge.state]} from {clean(merge.source)} to {clean(merge.into)}"
    drawn = screen.table("What", "How many", title=title, right=("How many",))
    for kind, number in merge.rows.items():
        drawn.add_row(kind, f"{number:,}")
    for kind, number in merge.alike.items():
        what = "are joined" if kind == "subjects" else "get another name"
        drawn.add_row(f"{kind} of a name that both have: {what}", f"{number:,}")
    for renamed in merge.renamed:
        drawn.add_row(f"{renamed.kind} {clean(renamed.name)} is now {clean(renamed.now)}", "")
    return drawn


@projects.command(name="trust")
async def trust_marker(*, json: Json = False) -> None:
    """Let this folder's .everkept.toml say which project it is; until then the file counts for nothing.

    A repository that you cloned could name any project of yours, so that its sessions go there and are told of it.
    """
    scope = await backend.trust_marker_here()
    if json:
        screen.emit(scope)
        return
    screen.say("sessions that begin here go into it from now on; what was captured before stays where it is")
    print(f"this folder is project {scope.project}, named by the marker {scope.value}")


@keys.default
async def list_keys(*, json: Json = False) -> None:
    """List API keys (never their secrets); create or revoke one."""
    async with backend.memory(DEFAULT_PROJECT) as memory:
        known = await memory.list_keys()
    if json:
        screen.emit_list(known)
        return
    if not known:
        screen.say("no keys; on this machine none is needed, and `everkept keys create NAME` makes one for others")
        return
    names = list(known[0])
    drawn = screen.table(*names)
    for key in known:
        drawn.add_row(*(_cell(key.get(name)) for name in names))
    screen.show(drawn)


def _cell(value: Any) -> str:
    return "–" if value is None else clean(str(value))


@keys.command(name="create")
async def create_key(name: str, /, *, common: Common = COMMON) -> None:
    """Make a key for a project; its secret is shown once."""
    async with backend.memory(common.project) as memory:
        made = await memory.create_key(name, project=common.project)
    if common.json:
        screen.emit(made)
        return
    screen.say(f"key {made.id} for project {made.project}; this is the only time that it is shown:")
    print(made.token)


@keys.command(name="revoke")
async def revoke_key(key: Annotated[str, Parameter(help="The key's id (key_…).")], /, *, json: Json = False) -> None:
    """Make a key worthless, at once."""
    async with backend.memory(DEFAULT_PROJECT) as memory:
        await memory.revoke_key(key)
    if not json:
        print(f"{key}  revoked")
