"""Handoffs: where a session left off, for the next one. Reading takes nothing up."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from everkept.api import views as v
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import InProject, Queried
from everkept.doors.http.words import Asked, Listed, Words

router = APIRouter(tags=["agents"], responses=RESPONSES)


class HandoffsAsked(Listed):
    state: Literal["open", "acknowledged", "replaced", "expired"] | None = None


class ChoiceAsked(Asked):
    worktree: str | None = Field(
        default=None, max_length=4096, description="Top folder of the worktree that somebody goes on in."
    )
    branch: str | None = Field(default=None, max_length=4096)


class AcknowledgeBody(Words):
    by: str = Field(min_length=1, max_length=255, description="Who takes it up.", examples=["codex/0199a-…"])


@router.get("/v1/handoffs", operation_id="list_handoffs")
async def list_handoffs(service: Queried, query: Annotated[HandoffsAsked, Query()]) -> v.Page[v.Handoff]:
    """Newest first."""
    return await service.list_handoffs(state=query.state, limit=query.limit, cursor=query.cursor)


@router.get("/v1/handoffs/choice", operation_id="choose_handoff")
async def choose_handoff(service: Queried, query: Annotated[ChoiceAsked, Query()]) -> v.HandoffChoice:
    """Which handoff a session in this place is offered, why, and which others are open. Takes nothing up."""
    return await service.choose_handoff(worktree=query.worktree, branch=query.branch)


@router.get("/v1/handoffs/{handoff:id}", operation_id="get_handoff")
async def get_handoff(handoff: str, service: InProject) -> v.Handoff:
    return await service.get_handoff(handoff)


@router.post("/v1/handoffs/{handoff:id}/acknowledge", operation_id="acknowledge_handoff")
async def acknowledge_handoff(handoff: str, body: AcknowledgeBody, service: InProject) -> v.Handoff:
    """Say that it was taken up. Doing so twice changes nothing."""
    return await service.acknowledge_handoff(handoff, by=body.by)
