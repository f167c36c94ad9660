"""Launches: an agent is started within a workstream under a lease, told what is new, and heard to its end."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from everkept.api import workstream_views as w
from everkept.doors.http.ingest import EVENTS_MAX, EventIn, Name
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import IdempotencyKey, InProject
from everkept.doors.http.sessions import ScopeBody, checkout_from
from everkept.doors.http.words import Words

router = APIRouter(tags=["agents"], responses=RESPONSES)
Fence = Annotated[int, Field(ge=1, le=2**63 - 1, description="As the launch was prepared with.")]
Number = Annotated[int, Field(ge=1, le=1 << 53)]


class PrepareBody(Words):
    owner: Name = Field(description="Who starts the agent.", examples=["ana@laptop/4711"])
    checkout: ScopeBody = Field(description="Where it will work.")
    workstream: Name | None = Field(
        default=None, description="Id or name. Left out: the one selected in the worktree, else the last one, else new."
    )
    agent: Name | None = Field(default=None, description="Left out: the last one of the workstream that is available.")
    available: list[Name] = Field(default=[], max_length=100, description="Agents that could be started.")
    native_session: Name | None = Field(default=None, description="The agent's own id of a session that it resumes.")
    tokens: int | None = Field(default=None, ge=300, le=1_700, description="Most tokens of the packet.")


class FenceBody(Words):
    fence: Fence


class LaunchEventsBody(Words):
    first: Number = Field(description="The number of the first of them; the launch counts its events from 1.")
    events: list[EventIn] = Field(min_length=1, max_length=EVENTS_MAX)
    delivery_key: str | None = Field(default=None, min_length=1, max_length=255, description="Names this batch.")


class FinishBody(Words):
    fence: Fence
    native_session: Name | None = Field(default=None, description="The agent's own id of its session.")
    events: list[EventIn] = Field(default=[], max_length=EVENTS_MAX, description="What is not here yet.")
    first: Number | None = Field(default=None, description="The number of the first of them, if they are numbered.")
    source_cursor: str | None = Field(
        default=None, max_length=2_000, description="How far the session's transcript was read, in your own words."
    )
    exit_code: int | None = Field(default=None, ge=-(2**31), le=2**32)


class AcceptBody(Words):
    fence: Fence | None = None
    native_session: Name | None = Field(default=None, description="The session that has the packet.")


@router.post("/v1/launches", operation_id="prepare_launch", status_code=201)
async def prepare_launch(body: PrepareBody, service: InProject, key: IdempotencyKey) -> w.Launch:
    """Lease a workstream for 90 s, with what is new in it to the session as a packet.

    The same owner and Idempotency-Key again: the same launch and the same packet; with a new fence where the lease had
    ended and nobody had taken over. 409 with `holder` and `lease_until` while another launch holds the workstream.
    """
    return await service.prepare_launch(
        body.owner, checkout=checkout_from(body.checkout), workstream=body.workstream, agent=body.agent,
        available=body.available, native_session=body.native_session, tokens=body.tokens, key=key,
    )  # fmt: skip


@router.get("/v1/launches/{launch:id}", operation_id="get_launch")
async def get_launch(launch: str, service: InProject) -> w.Launch:
    return await service.get_launch(launch)


@router.post("/v1/launches/{launch:id}/heartbeat", operation_id="heartbeat_launch")
async def heartbeat_launch(launch: str, body: FenceBody, service: InProject) -> w.LaunchLease:
    """Every 30 s. 409 `lease_lost` once the lease has ended: prepare again with the same key."""
    return await service.heartbeat_launch(launch, fence=body.fence)


@router.post("/v1/launches/{launch:id}/events", operation_id="launch_events")
async def launch_events(launch: str, body: LaunchEventsBody, service: InProject) -> w.LaunchTaken:
    """Take in numbered events, whoever holds the launch by now. `acknowledged` says from where to send on."""
    return await service.launch_events(
        launch, [e.event() for e in body.events], first=body.first, delivery_key=body.delivery_key
    )


@router.post("/v1/launches/{launch:id}/finish", operation_id="finish_launch")
async def finish_launch(launch: str, body: FinishBody, service: InProject) -> w.LaunchFinish:
    """The agent has ended. Sent again it adds events that it did not carry, and changes nothing that was told."""
    return await service.finish_launch(
        launch, fence=body.fence, native_session=body.native_session, events=[e.event() for e in body.events],
        first=body.first, source_cursor=body.source_cursor, exit_code=body.exit_code,
    )  # fmt: skip


@router.post("/v1/launches/{launch:id}/cancel", operation_id="cancel_launch")
async def cancel_launch(launch: str, body: FenceBody, service: InProject) -> w.Launch:
    """The agent was never started."""
    return await service.cancel_launch(launch, fence=body.fence)


@router.post("/v1/launches/{launch:id}/accept", operation_id="accept_launch")
async def accept_launch(launch: str, body: AcceptBody, service: InProject) -> w.Launch:
    """Its session has the packet: the cursor moves to the packet's end. 410 with a `successor` where a part of it was
    erased; 409 once somebody has taken over."""
    return await service.accept_launch(launch, fence=body.fence, native_session=body.native_session)
