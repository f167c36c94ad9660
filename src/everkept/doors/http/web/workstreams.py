"""Workstreams: lines of work across agents, who holds each, what was said in it, and how far its agents were told."""

from __future__ import annotations

from starlette.responses import Response

from everkept.doors.http.web.visit import PAGE_ITEMS, Visit, route

LAUNCHES_SHOWN = 10


async def workstreams(visit: Visit) -> Response:
    found = await visit.service.list_workstreams(limit=PAGE_ITEMS, cursor=visit.asked("cursor"))
    return visit.show("workstreams.html", workstreams=found)


async def workstream(visit: Visit) -> Response:
    """Its launches with their leases, its sessions, and its ledger, which can be searched."""
    found = await visit.service.get_workstream(visit.at("workstream"))
    query = visit.asked("q")
    events = await visit.service.workstream_events(
        found.id, after=None if query else visit.asked("cursor"), query=query, limit=PAGE_ITEMS
    )
    launches = await visit.service.list_launches(found.id, limit=LAUNCHES_SHOWN, cursor=visit.asked("launches"))
    return visit.show("workstream.html", workstream=found, launches=launches, events=events, query=query)


async def launch(visit: Visit) -> Response:
    """One, with the very words that its agent was told."""
    return visit.show("launch.html", launch=await visit.service.get_launch(visit.at("launch")))


ROUTES = [
    route("/workstreams", workstreams),
    route("/workstreams/{workstream:id}", workstream),
    route("/workstreams/{workstream:id}/launches/{launch:id}", launch),
]
