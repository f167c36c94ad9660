"""`review`: look at finished sessions now, and see what came of the looks so far."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from everkept.doors.cli import backend, screen
from everkept.doors.cli.options import OF_FOLDER, Cursor, Limit, OfFolder, Switch, command_group, time_option
from everkept.doors.cli.wording import count, more
from everkept.errors import InvalidInput

if TYPE_CHECKING:
    from everkept.api import review_views as r
    from everkept.api.service import Service

review = command_group("review")
State = Literal["waiting", "reviewing", "reviewed", "skipped", "dead", "imported", "superseded", "erased"]
POLL_S = 0.2


@review.default
async def run_reviews(
    *,
    since: Annotated[
        datetime | None, time_option("Also old history that was imported and never looked at, from this time on")
    ] = None,
    session: Annotated[str | None, Parameter(help="Only this session (ses_…), also if it went by before.")] = None,
    stale: Annotated[
        bool, Switch, Parameter(help="Instead look for pages whose files and commands are gone from this checkout.")
    ] = False,
    wait: Annotated[float, Parameter(help="How many seconds to wait for the reviews; 0 only starts them.")] = 60.0,
    common: OfFolder = OF_FOLDER,
) -> None:
    """Review the finished sessions of this folder's project that nobody has looked at; list what was looked at."""
    if stale:
        await _look_for_stale_pages(common)
        return
    async with backend.memory_here(common.project, worker=True) as here:
        started = await _start(here.memory, since, session)
        left = await _wait_for(here.memory, wait, again=session is None)
        page = await here.memory.list_proposals(limit=500)
    if common.json:
        screen.emit({**started.model_dump(mode="json"), "left": left, "open_proposals": len(page.items)})
        return
    if not started.opened and not left:
        screen.say("no finished session waits for a review")
    else:
        screen.say(f"{count(left, 'session')} still under review or waiting" if left else "every review is done")
    if page.items:
        from everkept.doors.cli.proposal_pages import proposal_list

        screen.show(proposal_list(page.items))
        awaiting = count(len(page.items), "proposal awaits", "proposals await")
        screen.say(f"{awaiting} a decision: everkept proposals show ID")


async def _look_for_stale_pages(common: OfFolder) -> None:
    from everkept.wiring.stale_pages import look_for_stale_pages

    async with backend.memory_here(common.project) as here:
        found = await look_for_stale_pages(here.memory, Path(here.checkout.place))
    if found is None:
        raise InvalidInput("pages are looked for in a checkout that is on its default branch, and this folder is none")
    if common.json:
        screen.emit(found)
        return
    for refused in found.refused:
        screen.say(f"{refused.what}: {refused.reason}")
    if found.staged:
        screen.say(f"{count(found.staged, 'proposal')} made: everkept proposals")
    if found.waiting:
        screen.say(f"{count(found.waiting, 'page names', 'pages name')} what is gone; what is still gone in a day is "
                   "proposed to go")  # fmt: skip
    if not found.staged and not found.waiting and not found.refused:
        screen.say("nothing that pages name is gone")


async def _start(memory: Service, since: datetime | None, session: str | None) -> r.ReviewsStarted:
    if session is None:
        return await memory.run_reviews(since=since)
    from everkept.api.review_views import ReviewsStarted

    claimed = await memory.claim_review(session)
    return ReviewsStarted(opened=int(claimed is not None), reopened=0, waiting=0, reviewing=int(claimed is not None))


async def _wait_for(memory: Service, wait_s: float, *, again: bool) -> int:
    """Sessions under review or waiting when they were done, or the time was up. `again`: also those that did not fit
    under review at once are started."""
    until = time.monotonic() + wait_s
    while True:
        reviewing = len((await memory.list_reviews(state="reviewing", limit=500)).items)
        waiting = len((await memory.list_reviews(state="waiting", limit=500)).items)
        if time.monotonic() >= until or reviewing + waiting == 0 or (reviewing == 0 and not again):
            return reviewing + waiting
        if reviewing == 0 and (await memory.run_reviews()).opened == 0:
            return waiting
        await asyncio.sleep(POLL_S)


@review.command(name="list")
async def list_reviews(
    *,
    state: Annotated[State | None, Parameter(help="Only those in this state.")] = None,
    session: Annotated[str | None, Parameter(help="Only of this session (ses_…).")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    common: OfFolder = OF_FOLDER,
) -> None:
    """List finished stretches of sessions with how their reviews stand, the last finished first."""
    async with backend.memory_here(common.project) as here:
        page = await here.memory.list_reviews(state=state, session_id=session, limit=limit, cursor=cursor)
    if common.json:
        screen.emit(page)
        return
    if not page.items:
        screen.say("no session has finished yet" if state is None and session is None else "none")
        return
    from everkept.doors.cli.proposal_pages import review_list

    screen.show(review_list(page.items))
    screen.say(count(len(page.items), "review") + more(page.next_cursor))
