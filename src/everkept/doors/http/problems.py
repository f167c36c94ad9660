"""Errors as HTTP answers: `{"error": {"code", "message", "details"}}` for every one of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from everkept.doors.invalid import invalid_input
from everkept.errors import EverkeptError, InvalidInput, NotFound, Unauthorized, http_status


class ErrorDetail(BaseModel):
    """What went wrong, why, and what to do next."""

    code: str = Field(description="Stable; what a program looks at.")
    message: str = Field(description="For people.")
    details: dict[str, Any] = Field(description="Facts: `field`, `limit`, `known`, `request_id`, …")


class ErrorBody(BaseModel):
    """The body of every answer that is not a success."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "error": {
                    "code": "not_found",
                    "message": "'fct_9' does not exist in this project",
                    "details": {"id": "fct_9"},
                }
            }
        }
    )

    error: ErrorDetail


_MEANINGS = {
    401: "An API key is needed, or the one sent is not valid.",
    403: "The Host or Origin is not allowed here, or the key belongs to another project.",
    404: "There is no such thing in this project.",
    405: "The route does not have this method.",
    409: "The request contradicts what is stored (another subject, or a key used with another payload).",
    413: "The request is larger than this server accepts.",
    422: "A field cannot be accepted; the message names it and its limit.",
    500: "Something went wrong inside Everkept; the request id is in the log.",
    503: "Everkept could not look; this is not an empty answer.",
    507: "The disk is full; nothing of this request was kept.",
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody, "description": meaning} for status, meaning in _MEANINGS.items()
}
"""The errors that any route may answer with, for OpenAPI."""


def error_response(
    error: EverkeptError, *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    body = {"error": {"code": error.code, "message": error.message, "details": error.details}}
    sent = dict(headers or {})
    if isinstance(error, Unauthorized):
        sent["WWW-Authenticate"] = "Bearer"
    wait_s = error.details.get("retry_after_s")
    if wait_s is not None:
        sent["Retry-After"] = str(max(1, round(wait_s)))
    # ASCII only: a lone surrogate in a message must not be able to break the answer about it.
    content = json.dumps(body, default=str)
    return Response(content, status or http_status(error.code), sent, media_type="application/json")


async def answer_everkept(_request: Request, error: Exception) -> Response:
    assert isinstance(error, EverkeptError)
    return error_response(error)


async def answer_validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    sent = request.headers.get("content-type", "")
    if any(each["loc"] == ("body",) and each["type"] == "model_attributes_type" for each in error.errors()) and (
        "json" not in sent
    ):
        return error_response(InvalidInput("send JSON, with Content-Type: application/json", field="content-type"))
    return error_response(invalid_input(error.errors()))


async def answer_http(request: Request, error: Exception) -> Response:
    """What the framework refuses by itself: an unknown route or method, a body over the limit."""
    assert isinstance(error, HTTPException)
    match error.status_code:
        case 404:
            wrong: EverkeptError = NotFound(
                f"there is no route {request.url.path}; see /openapi.json", path=request.url.path
            )
        case 405:
            allowed = _methods(request)
            wrong = InvalidInput(f"{request.url.path} does not take {request.method}; use {allowed}", allow=allowed)
            return error_response(wrong, status=405, headers={"Allow": allowed})
        case 400:
            return error_response(InvalidInput("the body cannot be read; send JSON", field="body"))
        case _:
            wrong = InvalidInput(str(error.detail))
    return error_response(wrong, status=error.status_code, headers=error.headers)


def _methods(request: Request) -> str:
    """All methods of a path; the framework names those of one route only."""
    path = request.scope["path"]
    routes = (route for route in request.app.routes if isinstance(route, Route) and route.path_regex.match(path))
    return ", ".join(sorted({method for route in routes for method in route.methods or ()}))


def too_large(size_max: int) -> HTTPException:
    return HTTPException(413, f"the body is larger than {size_max} bytes (server.body_max_bytes)")
