"""Facts and the entities they are about: state, list, retire."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from everkept.api import views as v
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import IdempotencyKey, InProject, Queried
from everkept.doors.http.words import Listed, Moment, Subject, Words

router = APIRouter(tags=["memory"], responses=RESPONSES)


class RememberBody(Words):
    text: str = Field(min_length=1, examples=["Ana lives in Lisbon"])
    subject: str = Field(description="Whose memory. Also accepted: `user_id`, `dataset`.", examples=["user_42"])
    predicate: str | None = Field(default=None, examples=["lives in"])
    object: str | None = Field(default=None, examples=["Lisbon"])
    entity: str | None = Field(default=None, description="What the statement is about.", examples=["Ana"])
    valid_from: Moment = None
    valid_until: Moment = None
    confidence: float = Field(default=1.0, ge=0, le=1)
    pinned: bool = False


class FactsAsked(Listed):
    subject: Subject = None
    query: str | None = Field(default=None, description="Words that the statement holds.")
    as_of: Moment = Field(default=None, description="Facts valid at that time.")
    known_at: Moment = Field(default=None, description="Facts believed at that time.")
    include_retired: bool = False


class ForgetBody(Words):
    reason: str = Field(default="by hand", max_length=1000)
    undo: bool = Field(default=False, description="Bring the fact back.")


class PinFactBody(Words):
    pinned: bool = True
    by: str = Field(default="hand", max_length=200, description="Who decided it.")


class CorrectBody(Words):
    object: str | None = Field(default=None, description="The right value.", examples=["Porto"])
    text: str | None = Field(default=None, description="The whole sentence, where the value alone does not make it.")
    valid_from: Moment = None
    valid_until: Moment = None
    by: str = Field(default="hand", max_length=200, description="Whose correction it is.")


class MergeEntityBody(Words):
    into: str = Field(description="The entity that it is shown as from now on.", examples=["ent_2"])
    by: str = Field(default="hand", max_length=200, description="Who decided it.")


class EntitiesAsked(Listed):
    subject: Subject = None


@router.post(
    "/v1/remember",
    operation_id="remember",
    status_code=201,
    responses={200: {"model": v.Remembered, "description": "It was stated before (Idempotent-Replayed: true)."}},
)
async def remember(body: RememberBody, service: InProject, key: IdempotencyKey, response: Response) -> v.Remembered:
    """State a durable fact by hand. The same Idempotency-Key and payload gives the same fact; another payload: 409."""
    fact = await service.remember(**body.model_dump(), key=key)
    if fact.replayed:
        response.status_code = 200
        response.headers["Idempotent-Replayed"] = "true"
    return fact


@router.get("/v1/facts", operation_id="list_facts")
async def list_facts(service: Queried, query: Annotated[FactsAsked, Query()]) -> v.Page[v.Fact]:
    return await service.list_facts(
        subject=query.subject, query=query.query, as_of=query.as_of, known_at=query.known_at,
        include_retired=query.include_retired, limit=query.limit, cursor=query.cursor,
    )  # fmt: skip


@router.get("/v1/facts/{fact:id}", operation_id="get_fact")
async def get_fact(fact: str, service: InProject) -> v.Fact:
    return await service.get_fact(fact)


@router.post("/v1/facts/{fact:id}/forget", operation_id="forget_fact")
async def forget_fact(fact: str, service: InProject, body: ForgetBody | None = None) -> v.Fact:
    """Retire a fact: belief ends, the evidence stays. `undo` brings it back."""
    asked = body or ForgetBody()
    return await service.forget(fact, reason=asked.reason, undo=asked.undo)


@router.put("/v1/facts/{fact:id}/pin", operation_id="pin_fact")
async def pin_fact(fact: str, service: InProject, body: PinFactBody) -> v.Fact:
    """A pinned fact is changed by hands alone, and comes first in its subject's context."""
    return await service.pin_fact(fact, pinned=body.pinned, by=body.by)


@router.post("/v1/facts/{fact:id}/correct", operation_id="correct_fact", status_code=201)
async def correct_fact(fact: str, service: InProject, key: IdempotencyKey, body: CorrectBody) -> v.Remembered:
    """State what is right in its place: a fact of its own, that retires the wrong one and its repetitions."""
    return await service.correct_fact(fact, **body.model_dump(), key=key)


@router.get("/v1/entities", operation_id="list_entities")
async def list_entities(service: Queried, query: Annotated[EntitiesAsked, Query()]) -> v.Page[v.Entity]:
    return await service.list_entities(subject=query.subject, limit=query.limit, cursor=query.cursor)


@router.post("/v1/entities/{entity:id}/merge", operation_id="merge_entities")
async def merge_entities(entity: str, service: InProject, body: MergeEntityBody) -> v.Entity:
    """Two names of one thing: what is said of either is said of both. Nothing moves, and it can be split again."""
    return await service.merge_entities(entity, into=body.into, by=body.by)


@router.post("/v1/entities/{entity:id}/split", operation_id="split_entity")
async def split_entity(entity: str, service: InProject) -> v.Entity:
    """It is a thing of its own again."""
    return await service.split_entity(entity)
