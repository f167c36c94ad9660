"""From a request to the use cases of the project it means."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Header, Query
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import Request

from everkept.api.service import Application, Service
from everkept.doors.http.callers import Caller
from everkept.doors.http.gate import CALLER, SLASH
from everkept.doors.http.words import PROJECT, Asked, NoWords
from everkept.errors import InvalidInput, UnknownScope

DEFAULT_PROJECT = "default"
PROJECT_HEADER = "x-everkept-project"
KEY_HEADER = "idempotency-key"
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


class IdConvertor(StringConvertor):
    """A path segment with an id, which may hold an encoded slash."""

    def convert(self, value: str) -> str:
        return value.replace(SLASH, "/")


register_url_convertor("id", IdConvertor())


def application_of(request: Request) -> Application:
    application: Application = request.app.state.application
    return application


def caller_of(request: Request) -> Caller:
    caller: Caller = request.scope[CALLER]
    return caller


def project_of(request: Request) -> str:
    """The project that header or query name, else the key's, else `default`. Raises UnknownScope, Forbidden."""
    caller = caller_of(request)
    headers = request.headers.getlist(PROJECT_HEADER)
    queries = request.query_params.getlist("project") if request.scope["query_string"] else []
    named = {*headers, *queries}
    if not named:
        return caller.project or DEFAULT_PROJECT
    if len(named) > 1:
        raise UnknownScope("the header X-Everkept-Project and the query name different projects", field="project")
    return caller.confine(named.pop())


async def open_service(request: Request) -> Service:
    """Raises NotFound for a project that does not exist."""
    return await application_of(request).service(project_of(request))


# The arguments below that are not used declare what the request may hold: the framework documents and checks them.


async def no_query(query: Annotated[NoWords, Query()]) -> None:
    """For routes outside any project."""


async def queried_service(
    request: Request,
    x_everkept_project: Annotated[str | None, Header(description=PROJECT)] = None,  # noqa: ARG001
) -> Service:
    """For routes with a query of their own, which knows `project`."""
    return await open_service(request)


async def service_of(
    service: Annotated[Service, Depends(queried_service)],
    query: Annotated[Asked, Query()],  # noqa: ARG001
) -> Service:
    """For routes whose query may only hold `project`."""
    return service


def key_of(request: Request) -> str | None:
    """The Idempotency-Key. Raises InvalidInput where it is malformed: it is never taken for no key."""
    sent = request.headers.getlist(KEY_HEADER)
    if not sent:
        return None
    if len(sent) > 1 or not _KEY.fullmatch(sent[0]):
        limit = "1 to 255 visible ASCII characters, sent once"
        raise InvalidInput(f"Idempotency-Key must be {limit}", field="Idempotency-Key", limit=limit)
    return sent[0]


async def header_key(
    request: Request,
    idempotency_key: Annotated[  # noqa: ARG001
        str | None, Header(description="1 to 255 visible ASCII characters; kept at least 30 days.")
    ] = None,
) -> str | None:
    return key_of(request)


async def _caller(request: Request) -> Caller:
    return caller_of(request)


CallerOf = Annotated[Caller, Depends(_caller)]
InProject = Annotated[Service, Depends(service_of)]
Queried = Annotated[Service, Depends(queried_service)]
IdempotencyKey = Annotated[str | None, Depends(header_key)]
