"""`handoffs`: where sessions left off, and which of it is offered to the next one here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from everkept.doors.cli import backend, screen
from everkept.doors.cli.options import OF_FOLDER, Cursor, Limit, OfFolder, command_group
from everkept.doors.cli.wording import count, lines, minute, more
from everkept.errors import Conflict

if TYPE_CHECKING:
    from everkept.api import views as v

handoffs = command_group("handoffs")
HandoffId = Annotated[str, Parameter(help="The id of the handoff (hnd_…).")]
State = Literal["open", "acknowledged", "replaced", "expired", "all"]


@handoffs.default
async def list_handoffs(
    *,
    state: Annotated[State, Parameter(help="Only those in this state.")] = "open",
    limit: Limit = 50,
    cursor: Cursor = None,
    common: OfFolder = OF_FOLDER,
) -> None:
    """List where sessions left off, newest first, and what a session here is offered; show or take one."""
    async with backend.memory_here(common.project) as here:
        page = await here.memory.list_handoffs(state=None if state == "all" else state, limit=limit, cursor=cursor)
        choice = await _offered_here(here)
    if common.json:
        screen.emit(page)
        return
    if not page.items:
        screen.say("no handoffs" if state == "all" else f"no handoff is {state}")
        return
    from everkept.doors.cli.agent_pages import handoff_list

    screen.show(handoff_list(page.items))
    screen.say(count(len(page.items), "handoff") + more(page.next_cursor))
    if choice is not None and choice.chosen is not None:
        screen.say(f"a session in this folder is offered {choice.chosen.id}: {choice.because}")


async def _offered_here(here: backend.Here) -> v.HandoffChoice | None:
    """None where the folder's memory is another one than what answers: a session here is offered nothing of it."""
    own = here.scope if here.scope.found_by != "named" else await backend.scope_here(here.memory)
    if own is None or own.project != here.scope.project:
        return None
    return await here.memory.choose_handoff(worktree=here.checkout.place, branch=here.checkout.branch)


@handoffs.command(name="show")
async def show_handoff(handoff: HandoffId, /, *, common: OfFolder = OF_FOLDER) -> None:
    """Show where a session left off. Reading takes nothing up."""
    async with backend.memory_here(common.project) as here:
        found = await here.memory.get_handoff(handoff)
    _show(found, as_json=common.json)


@handoffs.command(name="take")
async def take_handoff(
    handoff: HandoffId,
    /,
    *,
    by: Annotated[str, Parameter(help="Who takes it up.")] = "hand",
    common: OfFolder = OF_FOLDER,
) -> None:
    """Show where a session left off and take it up: it is not offered to anybody again."""
    async with backend.memory_here(common.project) as here:
        found = await here.memory.acknowledge_handoff(handoff, by=by)
    if found.state != "acknowledged" or found.acknowledged_by != by:
        who = f" by {found.acknowledged_by}" if found.acknowledged_by else ""
        raise Conflict(f"{handoff} is not open any more: it is {found.state}{who}; nothing was taken up", id=handoff)
    _show(found, as_json=common.json)


def _show(handoff: v.Handoff, *, as_json: bool) -> None:
    if as_json:
        screen.emit(handoff)
        return
    who = f" by {handoff.acknowledged_by}" if handoff.acknowledged_by else ""
    where = f" in {handoff.worktree}" if handoff.worktree else ""
    branch = f" on branch {handoff.branch}" if handoff.branch else ""
    screen.say(
        f"{handoff.id} · {handoff.state}{who} · left by {handoff.agent} ({handoff.session_id}){where}{branch}"
        f" at {minute(handoff.left_at)}"
    )
    print(lines(handoff.body).rstrip("\n"))
