"""Workstreams: lines of work across agents, who holds each, what was said in it, and how far its agents were told."""

from __future__ import annotations

from starlette.responses import Response

from everkept.doors.http.web.visit import PAGE_ITEMS, Visit, route


async def workstreams(visit: Visit) -> Response:
    found = await visit.service.list_workstreams(limit=PAGE_ITEMS, cursor=visit.asked("cursor"))
    return visit.show("workstreams.html", workstreams=found)


async def workstream(visit: Visit) -> Response:
    """Its launches with their leases and packets, its sessions, and its ledger, which can be searched."""
    found = await visit.service.get_workstream(visit.at("workstream"))
    ids = dict.fromkeys(one.id for one in (found.live, found.last) if one is not None)
    query = visit.asked("q")
    events = await visit.service.workstream_events(
        found.id, after=None if query else visit.asked("cursor"), query=query, limit=PAGE_ITEMS
    )
    return visit.show(
        "workstream.html", workstream=found, launches=[await visit.service.get_launch(id_) for id_ in ids],
        events=events, query=query,
    )  # fmt: skip


ROUTES = [route("/workstreams", workstreams), route("/workstreams/{workstream:id}", workstream)]
