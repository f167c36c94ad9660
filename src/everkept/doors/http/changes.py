"""The outbox, for consumers of one's own: read after a cursor, then acknowledge; or be told as it happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import StreamingResponse

from everkept.api import delivery_views as d
from everkept.api import views as v
from everkept.api.service import Service
from everkept.doors.http.problems import RESPONSES, ErrorBody, error_response
from everkept.doors.http.scope import InProject, Queried
from everkept.doors.http.words import Asked, Sequence63, Words
from everkept.errors import EverkeptError, InvalidInput, NotFound

T = TypeVar("T")
router = APIRouter(tags=["deliver"], responses=RESPONSES)
Consumer = Annotated[str, Field(min_length=1, max_length=200, examples=["my-crm"])]
Kinds = Annotated[
    list[str] | None, Field(description="Only these: `fact.added`, or `fact` for its family. Repeat the word.")
]
KEEP_ALIVE_S: Final = 15.0
RETRY_MS: Final = 2_000
"""How long a browser waits before it opens the next stream."""
EXPIRED: Final[dict[int | str, dict[str, Any]]] = {
    410: {"model": ErrorBody, "description": "The consumer is behind what is kept."}
}
EVENT: Final[dict[str, Any]] = {
    "type": "object", "properties": {name: {"type": "string"} for name in ("id", "event", "data")},
}  # fmt: skip
"""What each event of a stream is, for the document."""


class ChangesFollowed(Asked):
    consumer: Consumer | None = Field(default=None, description="Read after this consumer's cursor.")
    after: Sequence63 | None = Field(default=None, description="Read after this change instead.")
    kinds: Kinds = None
    subject: str | None = Field(
        default=None, description="Only this subject's, and every erase. Also accepted: `user_id`, `dataset`."
    )


class ChangesAsked(ChangesFollowed):
    limit: int = Field(default=100, ge=1, le=1000)
    wait: float = Field(default=0, ge=0, le=30, description="Seconds to wait for a change where there is none.")


class AckBody(Words):
    consumer: Consumer
    up_to: Sequence63 = Field(description="`next_after` of the page whose changes have been worked.")
    fence: Sequence63 | None = Field(default=None, description="Of the lease under which they were worked.")


class LeaseBody(Words):
    consumer: Consumer
    owner: str = Field(min_length=1, max_length=200, description="Who holds it: one name a process.")
    lease_s: float = Field(default=60, ge=0, le=3600, description="0 gives it up.")
    fence: Sequence63 | None = Field(default=None, description="To keep the lease that is held.")


class ReplayBody(Words):
    consumer: Consumer
    after: Sequence63 = Field(description="The last change that is not given again.")


class Cursor(BaseModel):
    """How far a consumer has acknowledged."""

    consumer: str
    cursor: int


@router.get("/v1/changes", operation_id="list_changes", responses=EXPIRED)
async def list_changes(request: Request, service: Queried, query: Annotated[ChangesAsked, Query()]) -> v.ChangePage:
    """Reading moves nothing: what is not acknowledged is given again."""

    def read(wait_s: float) -> Coroutine[Any, Any, v.ChangePage]:
        return service.changes(
            consumer=query.consumer, after=query.after, limit=query.limit, kinds=query.kinds, subject=query.subject,
            wait_s=wait_s,
        )  # fmt: skip

    waited = await _unless_stopping(request, read(query.wait)) if query.wait else None
    return await read(0) if waited is None else waited


@router.get(
    "/v1/changes/stream",
    operation_id="stream_changes",
    response_class=Response,
    responses={
        **EXPIRED,
        200: {"content": {"text/event-stream": {"schema": EVENT}}, "description": "Server-sent events, each as told."},
    },
)
async def stream_changes(
    request: Request, service: Queried, query: Annotated[ChangesFollowed, Query()]
) -> StreamingResponse:
    """Changes as server-sent events: `id` is a number, `event` a kind, `data` a change. Goes on after `Last-Event-ID`.

    An `id` without data says how far what was filtered out reaches. Acknowledge with `POST /v1/changes/ack`.
    """
    last = request.headers.get("last-event-id", "").strip()
    if last and not (last.isascii() and last.isdigit() and int(last) < 2**63):
        raise InvalidInput("Last-Event-ID is the number of a change", field="Last-Event-ID")
    try:
        first = await service.changes(
            consumer=query.consumer, after=int(last) if last else query.after, kinds=query.kinds, subject=query.subject
        )
    except NotFound as ahead:
        if not last:
            raise
        raise InvalidInput(
            f"Last-Event-ID is {last}, and {ahead.message}: a restored backup uses numbers again; start from a"
            " snapshot, and open the stream without it",
            field="Last-Event-ID", **ahead.details,
        ) from ahead  # fmt: skip
    return StreamingResponse(
        _events(request, service, query, first), media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )  # fmt: skip


async def _events(request: Request, service: Service, query: ChangesFollowed, page: v.ChangePage) -> AsyncIterator[str]:
    yield f"retry: {RETRY_MS}\n\n"
    told = None
    while True:
        for change in page.changes:
            yield f"id: {change.seq}\nevent: {change.kind}\ndata: {change.model_dump_json()}\n\n"
            told = change.seq
        if page.next_after != told:
            yield f"id: {page.next_after}\n\n"
            told = page.next_after
        elif not page.changes:
            yield ": alive\n\n"
        asked = service.changes(
            consumer=query.consumer, after=told, kinds=query.kinds, subject=query.subject, wait_s=KEEP_ALIVE_S
        )  # fmt: skip
        try:
            following = await _unless_stopping(request, asked)
        except EverkeptError as error:  # the answer has begun: all that is left is to say so, and end
            yield f"event: error\ndata: {bytes(error_response(error).body).decode()}\n\n"
            return
        if following is None:
            return
        page = following


async def _unless_stopping(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """What comes of it; None where the server is told to stop first: nobody's wait holds that up."""
    stopping: asyncio.Event = request.app.state.stopping
    stopped, task = asyncio.create_task(stopping.wait()), asyncio.create_task(work)
    try:
        await asyncio.wait({stopped, task}, return_when=asyncio.FIRST_COMPLETED)
        return None if stopping.is_set() else task.result()
    finally:
        stopped.cancel()
        task.cancel()


@router.post("/v1/changes/ack", operation_id="ack_changes")
async def ack_changes(body: AckBody, service: InProject) -> Cursor:
    """Move a consumer's cursor forward, never back. 409 for what it was not given, and under a fence that is lost."""
    return Cursor(consumer=body.consumer, cursor=await service.ack(body.consumer, body.up_to, fence=body.fence))


@router.post("/v1/changes/lease", operation_id="lease_consumer")
async def lease_consumer(body: LeaseBody, service: InProject) -> d.ConsumerLease:
    """Be the one of several that works a consumer's changes. 409 names who holds it."""
    return await service.lease_consumer(body.consumer, owner=body.owner, lease_s=body.lease_s, fence=body.fence)


@router.post("/v1/changes/replay", operation_id="replay_changes", responses=EXPIRED)
async def replay_changes(body: ReplayBody, service: InProject) -> v.Consumer:
    """Let a consumer go on after any change, also back; whoever holds it is fenced off."""
    return await service.replay_consumer(body.consumer, body.after)


@router.get("/v1/consumers", operation_id="list_consumers")
async def list_consumers(service: InProject) -> v.Page[v.Consumer]:
    """Who follows the changes, how far each is, and who holds it."""
    return v.Page(items=await service.list_consumers())


@router.delete("/v1/consumers/{consumer:id}", operation_id="remove_consumer", status_code=204)
async def remove_consumer(consumer: str, service: InProject) -> None:
    """Forget how far it was."""
    await service.remove_consumer(consumer)
