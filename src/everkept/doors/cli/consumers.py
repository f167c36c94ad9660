"""`consumers`: who follows the changes, how far each is, and where it goes on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from cyclopts import Parameter

from everkept.api import views as v
from everkept.doors.cli import backend, screen
from everkept.doors.cli.options import COMMON, Common, command_group
from everkept.doors.cli.wording import ago, clean, count, minute

consumers = command_group("consumers")
Name = Annotated[str, Parameter(help="The consumer's name.")]


@consumers.default
async def list_consumers(*, common: Common = COMMON) -> None:
    """List who follows the changes; replay or remove one."""
    async with backend.memory(common.project) as memory:
        found = await memory.list_consumers()
    if common.json:
        screen.emit_list(found)
        return
    if not found:
        screen.say("nobody follows the changes of this project")
        return
    _show(found)
    screen.say(count(len(found), "consumer"))


def _show(found: Iterable[v.Consumer]) -> None:
    drawn = screen.table("Consumer", "Cursor", "Lag", "Oldest", "Held by", "Trouble", right=("Cursor", "Lag"))
    for each in found:
        trouble = each.trouble or ("behind what is kept" if not each.kept else "–")
        held = f"{clean(each.held_by)} until {minute(each.held_until)}" if each.held_by else "–"
        drawn.add_row(
            clean(each.name), f"{each.cursor:,}", f"{each.lag:,}", ago(each.oldest_at) if each.oldest_at else "–", held,
            clean(trouble),
        )  # fmt: skip
    screen.show(drawn)


@consumers.command(name="replay")
async def replay_consumer(
    name: Name,
    /,
    *,
    after: Annotated[int, Parameter(help="The last change that is not given again; 0: from the beginning.")],
    common: Common = COMMON,
) -> None:
    """Let it go on after a change, also back; whoever holds it is fenced off."""
    async with backend.memory(common.project) as memory:
        moved = await memory.replay_consumer(name, after)
    screen.emit(moved) if common.json else print(f"{moved.name}  {moved.cursor:,} of {moved.head:,}")


@consumers.command(name="remove")
async def remove_consumer(name: Name, /, *, common: Common = COMMON) -> None:
    """Forget how far it was."""
    async with backend.memory(common.project) as memory:
        await memory.remove_consumer(name)
    screen.emit({"removed": name}) if common.json else print(f"{name} is forgotten")
