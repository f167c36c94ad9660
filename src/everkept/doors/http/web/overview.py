"""Is it healthy, in one look; and the same, again and again, over one open connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.responses import JSONResponse, Response, StreamingResponse

from everkept.api import views as v
from everkept.doors.http.web.samples import Sampler
from everkept.doors.http.web.spending import DAYS, spent_lately
from everkept.doors.http.web.visit import HEADERS, Visit, route
from everkept.errors import EverkeptError

EVERY_S = 2.0
STREAM_S = 900.0
"""A stream ends by itself after this; the browser opens the next."""


async def overview(visit: Visit) -> Response:
    return visit.show("overview.html", status_now=await _status(visit), spent=await spent_lately(visit), days=DAYS)


async def _status(visit: Visit) -> v.Status:
    return await visit.service.status(project_only=not visit.caller.is_operator)


async def live(visit: Visit) -> Response:
    """Server-sent events named `overview`: the page's figures, whenever they differ from those sent last."""
    return StreamingResponse(
        _fragments(visit), media_type="text/event-stream", headers={**HEADERS, "X-Accel-Buffering": "no"}
    )


async def _fragments(visit: Visit) -> AsyncIterator[str]:
    stopping: asyncio.Event = visit.request.app.state.stopping
    before, until = "", asyncio.get_running_loop().time() + STREAM_S
    while not stopping.is_set() and asyncio.get_running_loop().time() < until:
        try:
            shown = visit.fragment("_overview.html", status_now=await _status(visit))
        except EverkeptError as error:
            shown = visit.fragment("_unreachable.html", error=error)
        yield ": alive\n\n" if shown == before else _event("overview", shown)
        before = shown
        try:
            async with asyncio.timeout(EVERY_S):
                await stopping.wait()
        except TimeoutError:
            continue


def _event(name: str, text: str) -> str:
    return f"event: {name}\n" + "".join(f"data: {line}\n" for line in text.splitlines()) + "\n"


async def samples(visit: Visit) -> Response:
    """Columns for the charts: times in seconds since 1970, then each series."""
    visit.caller.require_operator("see the figures of the whole store")
    sampler: Sampler = visit.request.app.state.sampler
    return JSONResponse(sampler.columns(), headers=HEADERS)


ROUTES = [route("/", overview), route("/live", live), route("/samples", samples)]
