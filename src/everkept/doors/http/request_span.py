"""A request as a span, in the words of OpenTelemetry's conventions for HTTP.

Its path and its query are left out: names of people and what they asked for stand in them. The route says enough.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from starlette.types import Scope

from everkept.ports.tracing import Span, span

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"})


def answering(scope: Scope, *, traceparent: str | None, request_id: str) -> AbstractContextManager[Span]:
    """The span of this request, below the caller's where it sent its own."""
    method = _method(scope)
    facts = {
        "http.request.method": method,
        "url.scheme": scope["scheme"],
        "network.protocol.version": scope["http_version"],
        "everkept.request_id": request_id,
    }
    return span(method, "server", parent=traceparent, facts=facts)


def route_of(scope: Scope) -> str | None:
    """The pattern of the path that was asked for; None where there is none, or nothing has looked yet."""
    route: str | None = getattr(scope.get("route"), "path_format", None)  # without the converters of its words
    return route


def tell_answer(found: Span, scope: Scope, status: int) -> None:
    """What is known when the request is answered: its route, and what came of it."""
    route = route_of(scope)
    if route is not None:
        found.rename(f"{_method(scope)} {route}")
        found.tell({"http.route": route})
    found.tell({"http.response.status_code": status})
    if status >= 500:
        found.fail(str(status))


def _method(scope: Scope) -> str:
    method: str = scope["method"]
    return method if method in _METHODS else "_OTHER"
