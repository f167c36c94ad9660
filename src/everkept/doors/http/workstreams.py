"""Workstreams: one line of work across several agents' sessions, and what these said and did."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from everkept.api import views as v
from everkept.api import workstream_views as w
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import InProject, Queried
from everkept.doors.http.words import Asked, Limit, Listed, Words

router = APIRouter(tags=["agents"], responses=RESPONSES)
Place = Annotated[str, Field(min_length=1, max_length=4096, description="Top folder of a worktree.")]
WorkstreamName = Annotated[str, Field(min_length=1, max_length=255, examples=["new login"])]


class WorkstreamBody(Words):
    name: WorkstreamName
    place: Place | None = Field(default=None, description="A worktree in which it is selected, too.")


class RenameBody(Words):
    name: WorkstreamName


class SelectBody(Words):
    place: Place


class EventsAsked(Asked):
    after: str | None = Field(default=None, max_length=64, description="The `place` of the event before.")
    query: str | None = Field(default=None, max_length=2_000, description="All of its words occur; best first.")
    limit: Limit = 50


class SessionsAsked(Listed):
    launch: str | None = Field(default=None, max_length=64, description="Only those that this launch linked.")


@router.post("/v1/workstreams", operation_id="create_workstream", status_code=201)
async def create_workstream(body: WorkstreamBody, service: InProject) -> w.Workstream:
    """The workstream of this name, made where there is none."""
    return await service.create_workstream(body.name, place=body.place)


@router.get("/v1/workstreams", operation_id="list_workstreams")
async def list_workstreams(service: Queried, query: Annotated[Listed, Query()]) -> v.Page[w.Workstream]:
    """Newest first."""
    return await service.list_workstreams(limit=query.limit, cursor=query.cursor)


@router.get("/v1/workstreams/{workstream:id}/events", operation_id="workstream_events")
async def workstream_events(
    workstream: str, service: Queried, query: Annotated[EventsAsked, Query()]
) -> v.Page[w.WorkstreamEvent]:
    """What its sessions said and did, in the order in which it was taken in, or what is found in it."""
    return await service.workstream_events(workstream, after=query.after, query=query.query, limit=query.limit)


@router.get("/v1/workstreams/{workstream:id}/sessions", operation_id="list_linked_sessions")
async def list_linked_sessions(
    workstream: str, service: Queried, query: Annotated[SessionsAsked, Query()]
) -> v.Page[w.LinkedSession]:
    """Newest first; before them those of which nothing was taken in yet, a few."""
    return await service.list_linked_sessions(workstream, launch=query.launch, limit=query.limit, cursor=query.cursor)


@router.get("/v1/workstreams/{workstream:id}/launches", operation_id="list_launches")
async def list_launches(workstream: str, service: Queried, query: Annotated[Listed, Query()]) -> v.Page[w.Launch]:
    """Newest first, without their packets."""
    return await service.list_launches(workstream, limit=query.limit, cursor=query.cursor)


@router.put("/v1/workstreams/{workstream:id}/name", operation_id="rename_workstream")
async def rename_workstream(workstream: str, body: RenameBody, service: InProject) -> w.Workstream:
    return await service.rename_workstream(workstream, body.name)


@router.post("/v1/workstreams/{workstream:id}/select", operation_id="select_workstream")
async def select_workstream(workstream: str, body: SelectBody, service: InProject) -> w.Workstream:
    """From now on launches in this worktree continue it, unless they name another."""
    return await service.select_workstream(workstream, place=body.place)


@router.get("/v1/workstreams/{workstream:id}", operation_id="get_workstream")
async def get_workstream(workstream: str, service: InProject) -> w.Workstream:
    """By its id or its name."""
    return await service.get_workstream(workstream)
