"""`projects` and `keys`: bodies of memory, and who may use them."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from everkept.doors.cli import backend, screen
from everkept.doors.cli.history import parse_settings
from everkept.doors.cli.options import COMMON, DEFAULT_PROJECT, Common, Json, command_group
from everkept.doors.cli.wording import clean, day

projects = command_group("projects")
keys = command_group("keys")
Settings = Annotated[list[str], Parameter(help="`window.idle_s=60`, `memory.enabled=false`, …")]


@projects.default
async def list_projects(*, json: Json = False) -> None:
    """List projects; create one or change its settings."""
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
        made = await memory.create_project(name, parse_settings(settings or []))
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
