"""The outbox, for consumers of one's own: read after a cursor, then acknowledge."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from everkept.api import views as v
from everkept.doors.http.problems import RESPONSES, ErrorBody
from everkept.doors.http.scope import InProject, Queried
from everkept.doors.http.words import Asked, Sequence63, Words

router = APIRouter(tags=["operate"], responses=RESPONSES)
Consumer = Annotated[str, Field(min_length=1, max_length=200, examples=["my-crm"])]


class ChangesAsked(Asked):
    consumer: Consumer | None = Field(default=None, description="Read after this consumer's cursor.")
    after: Sequence63 | None = Field(default=None, description="Read after this change instead.")
    limit: int = Field(default=100, ge=1, le=1000)


class AckBody(Words):
    consumer: Consumer
    up_to: Sequence63 = Field(description="`next_after` of the page whose changes have been worked.")


class Cursor(BaseModel):
    """How far a consumer has acknowledged."""

    consumer: str
    cursor: int


@router.get(
    "/v1/changes",
    operation_id="list_changes",
    responses={410: {"model": ErrorBody, "description": "The consumer is behind what is kept."}},
)
async def list_changes(service: Queried, query: Annotated[ChangesAsked, Query()]) -> v.ChangePage:
    """Reading moves nothing: what is not acknowledged is given again."""
    return await service.changes(consumer=query.consumer, after=query.after, limit=query.limit)


@router.post("/v1/changes/ack", operation_id="ack_changes")
async def ack_changes(body: AckBody, service: InProject) -> Cursor:
    """Move a consumer's cursor forward, never back."""
    return Cursor(consumer=body.consumer, cursor=await service.ack(body.consumer, body.up_to))
