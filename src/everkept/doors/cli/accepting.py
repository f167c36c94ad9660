"""`accept`: what a session was given at its start is taken up by hand."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from everkept.doors.cli import backend, screen
from everkept.doors.cli.options import OF_FOLDER, OfFolder


async def accept(
    offer: Annotated[str, Parameter(help="The id of the offer (off_…), as it stands above what was given.")],
    /,
    *,
    common: OfFolder = OF_FOLDER,
) -> None:
    """Say that a session has what it was given: packet and handoff are taken up, both or neither."""
    async with backend.memory_here(common.project) as here:
        taken = await here.memory.accept_offer(offer)
    if common.json:
        screen.emit(taken)
        return
    parts = [part for part in (taken.launch_id, taken.handoff_id) if part is not None]
    screen.say(f"{taken.id} is taken up by {taken.agent}: {' and '.join(parts) or 'it had nothing that waits for it'}")
