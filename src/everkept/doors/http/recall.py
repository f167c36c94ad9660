"""Searching memory."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from everkept.api import views as v
from everkept.api.service import Service
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import InProject, Queried
from everkept.doors.http.words import Asked, Moment, Subject, ThreadWord, Words

router = APIRouter(tags=["memory"], responses=RESPONSES)


class _Question(BaseModel):
    """What GET and POST both take."""

    query: str = Field(min_length=1, examples=["Where do I live now?"])
    subject: Subject = None
    thread: ThreadWord = None
    limit: int = Field(default=10, ge=1, le=100, description="Most results.")
    tokens: int | None = Field(default=None, ge=1, le=100_000, description="Most tokens in `text`.")
    as_of: Moment = Field(default=None, description="Ask about the world at that time. RFC 3339 with a zone.")
    known_at: Moment = Field(default=None, description="Ask what was believed at that time. RFC 3339 with a zone.")
    kinds: list[str] | None = Field(default=None, description="Any of `turn`, `fact`, `episode`.")
    explain: bool = Field(default=False, description="Show how each score came about.")
    held_back: bool = Field(default=False, description="Also list what matched and was left out, with the reason.")


class RecallBody(Words, _Question):
    metadata: dict[str, Any] | None = Field(
        None, description="What a turn's metadata must hold; `agent_id` and `app_id` too."
    )


class RecallAsked(Asked, _Question):
    agent_id: str | None = Field(default=None, description="What a turn's metadata must hold.")
    app_id: str | None = Field(default=None, description="What a turn's metadata must hold.")


@router.post("/v1/recall", operation_id="recall")
async def recall(body: RecallBody, service: InProject) -> v.RecallAnswer:
    """Search turns, facts and episodes."""
    return await _ask(service, body, body.metadata)


@router.get("/v1/recall", operation_id="recall_by_query")
async def recall_by_query(service: Queried, query: Annotated[RecallAsked, Query()]) -> v.RecallAnswer:
    """Search turns, facts and episodes."""
    words = {"agent_id": query.agent_id, "app_id": query.app_id}
    return await _ask(service, query, {word: value for word, value in words.items() if value is not None} or None)


async def _ask(service: Service, asked: _Question, metadata: dict[str, Any] | None) -> v.RecallAnswer:
    return await service.recall(
        asked.query, subject=asked.subject, thread=asked.thread, limit=asked.limit, tokens=asked.tokens,
        as_of=asked.as_of, known_at=asked.known_at, kinds=asked.kinds, metadata=metadata, explain=asked.explain,
        held_back=asked.held_back,
    )  # fmt: skip
