"""Episodes, receipts, and where a thing comes from."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from everkept.api import views as v
from everkept.domain.ids import TRACEABLE, parse_event_id, parse_row_id, traceable_kind
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import InProject, Queried
from everkept.doors.http.words import Asked, Erased, Listed, Subject, ThreadWord
from everkept.errors import NotFound

router = APIRouter(tags=["memory"], responses=RESPONSES)
_PREFIXES = {kind: prefix for prefix, kind in TRACEABLE.items()}
"""The plural in a route → the prefix of its ids."""


class EpisodesAsked(Listed):
    thread: ThreadWord = None
    subject: Subject = None
    query: str | None = Field(default=None, description="Words that the summary holds.")


class RetryAsked(Asked):
    stage: Literal["summary", "facts"]


@router.get("/v1/episodes", operation_id="list_episodes")
async def list_episodes(service: Queried, query: Annotated[EpisodesAsked, Query()]) -> v.Page[v.Episode]:
    return await service.list_episodes(
        thread=query.thread, subject=query.subject, query=query.query, limit=query.limit, cursor=query.cursor
    )


@router.get("/v1/episodes/{episode:id}", operation_id="get_episode")
async def get_episode(episode: str, service: InProject) -> v.Episode:
    return await service.get_episode(episode)


@router.post("/v1/episodes/{episode:id}/retry", operation_id="retry_episode")
async def retry_episode(episode: str, service: Queried, query: Annotated[RetryAsked, Query()]) -> v.Episode:
    """Give a failed or dead stage a new budget, also beyond the limit."""
    return await service.retry_episode(episode, query.stage)


@router.get("/v1/receipts/{event:id}", operation_id="get_receipt")
async def get_receipt(event: str, service: InProject) -> v.Receipt:
    """Where a message is: accepted, searchable, embedded, remembered, skipped or failed, and why."""
    return await service.receipt(event)


@router.delete("/v1/events/{event:id}", operation_id="erase_event")
async def erase_event(event: str, service: Queried, query: Annotated[Erased, Query()]) -> v.ErasePlan:
    """Destroy one message and everything that rests on it. Cannot be undone."""
    return await service.erase(event=event, dry_run=query.dry_run)


@router.get("/v1/{kind}/{id:id}/why", operation_id="why")
async def why(kind: str, id: str, service: InProject) -> v.Why:
    """Where a thing comes from: events, sessions and versions behind it, what was asked, and what came of it.

    `kind` is facts, episodes, events, sessions, pages, handoffs or proposals. A page is named by its id or its slug.
    """
    prefix = _PREFIXES.get(kind)
    if prefix is None:
        raise NotFound(f"{kind!r} cannot be traced; use one of: {', '.join(_PREFIXES)}", known=list(_PREFIXES))
    if prefix == "evt":
        parse_event_id(id)
    elif prefix != "pag" or traceable_kind(id) != "pag":
        parse_row_id(prefix, id)
    return await service.why(id)
