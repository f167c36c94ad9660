"""Threads: create, list, settings, end, context, erase."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Query
from pydantic import Field

from everkept.api import views as v
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import InProject, Queried
from everkept.doors.http.words import Asked, Erased, Listed, Subject, Words

router = APIRouter(tags=["threads"], responses=RESPONSES)
Tokens = Annotated[int, Field(ge=1, le=100_000, description="Most tokens in `text`.")]


class ThreadBody(Words):
    THREAD_FIELD: ClassVar[str] = "id"

    id: str | None = Field(
        default=None, min_length=1, description="Your own name for it; without one, a new id is made."
    )
    subject: str = Field(description="Whose memory. Also accepted: `user_id`, `dataset`.", examples=["user_42"])
    settings: dict[str, Any] | None = Field(default=None, examples=[{"window.idle_s": 600}])


class SettingsBody(Words):
    settings: dict[str, Any] = Field(
        description="Replaces the thread's own settings; others come from the project.",
        examples=[{"memory.enabled": False}],
    )


class ThreadsAsked(Listed):
    subject: Subject = None


class ThreadContextBody(Words):
    question: str | None = Field(default=None, examples=["Where do I live now?"])
    tokens: Tokens = 1200


class ContextAsked(Asked):
    question: str | None = None
    tokens: Tokens = 1200


@router.post("/v1/threads", operation_id="create_thread", status_code=201)
async def create_thread(body: ThreadBody, service: InProject) -> v.Thread:
    """Create a thread, or get it if it exists with the same subject; with another one: 409."""
    return await service.create_thread(body.id, body.subject, body.settings)


@router.get("/v1/threads", operation_id="list_threads")
async def list_threads(service: Queried, query: Annotated[ThreadsAsked, Query()]) -> v.Page[v.Thread]:
    return await service.list_threads(subject=query.subject, limit=query.limit, cursor=query.cursor)


@router.get("/v1/threads/{thread:id}", operation_id="get_thread")
async def get_thread(thread: str, service: InProject) -> v.Thread:
    return await service.get_thread(thread)


@router.patch("/v1/threads/{thread:id}", operation_id="set_thread_settings")
async def set_thread_settings(thread: str, body: SettingsBody, service: InProject) -> v.Thread:
    return await service.set_thread_settings(thread, body.settings)


@router.delete("/v1/threads/{thread:id}", operation_id="erase_thread")
async def erase_thread(thread: str, service: Queried, query: Annotated[Erased, Query()]) -> v.ErasePlan:
    """Destroy the thread and everything that rests on it. Cannot be undone."""
    return await service.erase(thread=thread, dry_run=query.dry_run)


@router.post("/v1/threads/{thread:id}/end", operation_id="end_thread")
async def end_thread(thread: str, service: InProject) -> v.EndResult:
    """Open the episode now. The thread stays writable; ending twice gives one episode."""
    return await service.end_thread(thread)


@router.get("/v1/threads/{thread:id}/context", operation_id="get_context")
async def get_context(thread: str, service: Queried, query: Annotated[ContextAsked, Query()]) -> v.ContextBlock:
    """Prompt-ready memory: recent turns, and what is recalled for the question."""
    return await service.context(thread, query.question, tokens=query.tokens)


@router.post("/v1/threads/{thread:id}/context", operation_id="ask_context")
async def ask_context(thread: str, body: ThreadContextBody, service: InProject) -> v.ContextBlock:
    """The same, for a question that is too long for a URL."""
    return await service.context(thread, body.question, tokens=body.tokens)
