"""Appending messages, the hot path, and reading them back."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import pydantic_core
from fastapi import APIRouter, Query
from fastapi.routing import APIRoute
from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from everkept.api import views as v
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import Queried, key_of, open_service
from everkept.doors.http.words import Asked, Limit, Sequence63, Subject, Words, known_words, sort_words
from everkept.doors.invalid import invalid_input
from everkept.errors import InvalidInput

BATCH_MAX = 1000


class DirectRoute(APIRoute):
    """Hands its endpoint the request and sends what comes back: no parsing and no dependencies by the framework."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        endpoint: Callable[[Request], Coroutine[Any, Any, Response]] = self.endpoint
        return endpoint


router = APIRouter(tags=["threads"], responses=RESPONSES)


class OneMessage(Words, v.MessageIn):
    """One message. With a `subject` the thread is created if it does not exist yet."""

    subject: Subject = None


class ManyMessages(Words):
    """A batch: all of it is stored, or none. `agent_id` and `app_id` go into the metadata of each message."""

    messages: list[v.MessageIn] = Field(min_length=1, max_length=BATCH_MAX)
    subject: Subject = None
    metadata: dict[str, Any] | None = Field(default=None, description="Added to the metadata of each message.")


class MessagesAsked(Asked):
    after_seq: Sequence63 = 0
    cursor: Annotated[str | None, Field(pattern=r"^\d{1,18}$", description="`next_cursor` of the page before.")] = None
    limit: Limit = 100


_BODY = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in ("OneMessage", "ManyMessages")]},
            "examples": {
                "one": {"value": {"role": "user", "content": "I moved to Lisbon in May.", "subject": "user_42"}},
                "batch": {
                    "value": {
                        "subject": "user_42",
                        "messages": [
                            {"role": "user", "content": "Where do I live now?"},
                            {"role": "assistant", "content": "In Lisbon, since May."},
                        ],
                    }
                },
            },
        }
    },
}
_PROJECT = "Which project; header and query say the same."
_KEY = (
    "1 to 255 visible ASCII characters, kept at least 30 days. Sent again with the same messages: the first receipts "
    "again. With others: 409."
)
_PARAMETERS = [
    {"name": "thread", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}},
    {"name": "project", "in": "query", "schema": {"type": "string"}, "description": _PROJECT},
    {"name": "X-Everkept-Project", "in": "header", "schema": {"type": "string"}, "description": _PROJECT},
    {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {"type": "string", "pattern": r"^[\x21-\x7e]{1,255}$"},
        "description": _KEY,
    },
]
_ANSWERS: dict[int | str, dict[str, Any]] = {
    201: {"model": v.AppendResult, "description": "Durable, and already found by lexical search."},
    200: {"model": v.AppendResult, "description": "All of it was accepted before (Idempotent-Replayed: true)."},
}


async def append_messages(request: Request) -> Response:
    """Append one message, or a batch of which all or nothing is stored. The answer leaves after the commit."""
    if request.scope["query_string"]:
        Asked.model_validate(dict(request.query_params))
    key = key_of(request)
    service = await open_service(request)
    subject, messages = parse_append(await request.body())
    result = await service.append(request.path_params["thread"], messages, subject=subject, key=key)
    body = v.AppendResult.__pydantic_serializer__.to_json(result)
    if result.replayed:
        return Response(body, 200, {"Idempotent-Replayed": "true"}, media_type="application/json")
    return Response(body, 201, media_type="application/json")


router.add_api_route(
    "/v1/threads/{thread:id}/messages",
    append_messages,
    methods=["POST"],
    operation_id="append_messages",
    response_model=None,
    status_code=201,
    responses=_ANSWERS,
    openapi_extra={"requestBody": _BODY, "parameters": _PARAMETERS},
    route_class_override=DirectRoute,
)


def parse_append(body: bytes) -> tuple[str | None, list[v.MessageIn]]:
    """(subject, messages) of either form of the body. Raises InvalidInput and UnknownScope."""
    try:
        given = pydantic_core.from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput(f"the body is not JSON: {error}", field="body") from error
    if not isinstance(given, dict):
        raise InvalidInput('the body must be a message, or {"messages": […]}', field="body")
    return _parse_many(given) if "messages" in given else _parse_one(given)


def _parse_one(given: dict[str, Any]) -> tuple[str | None, list[v.MessageIn]]:
    if not given.keys() <= OneMessage.model_fields.keys():
        given = sort_words(OneMessage, given)
    subject = given.pop("subject", None)
    if subject is not None and not isinstance(subject, str):
        raise InvalidInput("subject: it must be a string", field="subject")
    try:
        return subject, [v.MessageIn.model_validate(given)]
    except ValidationError as error:
        raise invalid_input(error.errors(), known=known_words(OneMessage)) from error


def _parse_many(given: dict[str, Any]) -> tuple[str | None, list[v.MessageIn]]:
    try:
        batch = ManyMessages.model_validate(given)
    except ValidationError as error:
        raise invalid_input(error.errors(), known=list(v.MessageIn.model_fields)) from error
    if not batch.metadata:
        return batch.subject, batch.messages
    return batch.subject, [
        each.model_copy(update={"metadata": {**batch.metadata, **(each.metadata or {})}}) for each in batch.messages
    ]


@router.get("/v1/threads/{thread:id}/messages", operation_id="list_messages")
async def list_messages(thread: str, service: Queried, query: Annotated[MessagesAsked, Query()]) -> v.Page[v.Message]:
    """The messages of a thread, oldest first; the content of an erased one is null."""
    after = int(query.cursor) if query.cursor else query.after_seq
    return await service.list_messages(thread, after_seq=after, limit=query.limit)


@router.get("/v1/threads/{thread:id}/receipts", operation_id="list_receipts")
async def list_receipts(thread: str, service: Queried, query: Annotated[MessagesAsked, Query()]) -> v.Page[v.Receipt]:
    """Where each message of a thread is, oldest first."""
    after = int(query.cursor) if query.cursor else query.after_seq
    return await service.list_receipts(thread, after_seq=after, limit=query.limit)
