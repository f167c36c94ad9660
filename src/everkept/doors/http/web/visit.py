"""One request of a person: who asks, about which project, and how an answer goes back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

import structlog
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from everkept.api.service import Application, Service
from everkept.doors.http.callers import Caller
from everkept.doors.http.scope import DEFAULT_PROJECT, application_of, caller_of, open_service, project_of
from everkept.doors.http.web.render import path_segment, render
from everkept.errors import EverkeptError, InvalidInput, http_status

PAGE_ITEMS = 50
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
DONE: Mapping[str, str] = {
    "retried": "It is tried again.",
    "discarded": "It was discarded, and is kept with the reason.",
    "paused": "Nothing of it is begun any more. What runs ends, and nothing is lost.",
    "resumed": "It goes on.",
    "released": "The lease has ended; whoever held it can write nothing any more.",
    "retired": "The fact is not believed any more. Its evidence stays.",
    "believed": "The fact is believed again.",
    "pinned": "It is pinned: only a hand changes it, and it comes first in the context.",
    "unpinned": "It is a fact like any other again.",
    "corrected": "This takes the place of what was wrong, which is kept with its history.",
    "merged": "They are one thing now, under one name. It can be split again.",
    "split": "It is a thing of its own again.",
    "stated": "It is remembered.",
    "ended": "The conversation is worked now.",
    "written": "A new version was written.",
    "deleted": "The page was deleted. Its versions are kept, and nothing brings it back by itself.",
    "acknowledged": "The handoff counts as taken up.",
    "project": "The project was made.",
    "revoked": "The key opens nothing any more.",
    "approved": "The proposal was approved, and its page written.",
    "rejected": "The proposal was rejected, and is not made again.",
    "reviews": "Finished sessions that wait are reviewed now.",
    "rolled_back": "The page is as it was before.",
    "webhook_paused": "Nothing is sent until it is resumed; what comes meanwhile waits.",
    "webhook_resumed": "It goes on where it stands.",
    "replayed": "What follows that change is sent again.",
    "dropped": "What was parked is dropped.",
    "removed": "The webhook is removed.",
    "given_again": "What follows that change is given to it again.",
    "consumer_removed": "The consumer is forgotten; whoever comes under its name begins anew.",
}
"""What was done, by the word that an address carries: an address never holds text that a page would show."""
_log = structlog.get_logger("everkept.web")


class Visit:
    """`service` is of the project that the address names."""

    def __init__(self, request: Request, service: Service) -> None:
        self.request = request
        self.service = service
        self.caller: Caller = caller_of(request)
        self.project = project_of(request)

    @property
    def application(self) -> Application:
        return application_of(self.request)

    def asked(self, word: str) -> str | None:
        """A word of the query; None where it is empty or absent."""
        return self.request.query_params.get(word, "").strip() or None

    def at(self, name: str) -> str:
        """A segment of the path."""
        value: str = self.request.path_params[name]
        return value

    def segment(self, name: str) -> str:
        """The same, as it stands in an address."""
        return path_segment(self.at(name))

    async def form(self) -> dict[str, str]:
        """The fields that were sent. Raises InvalidInput for what is no form."""
        return await form_of(self.request)

    def url(self, path: str, /, **query: object) -> str:
        """An address of this site, in this project."""
        words = {name: value for name, value in query.items() if value not in (None, "")}
        if self.project != DEFAULT_PROJECT and not path.startswith("/static/"):
            words.setdefault("project", self.project)
        return f"{path}?{urlencode(words)}" if words else path

    def here(self, **query: object) -> str:
        """This address with other words; its other words stay, but for where a list stood."""
        kept = {k: v for k, v in self.request.query_params.items() if k not in ("cursor", "done", "project")}
        return self.url(self.request.url.path, **{**kept, **query})

    def show(self, template: str, status: int = 200, **values: Any) -> Response:
        return HTMLResponse(self.fragment(template, **values), status, HEADERS)

    def fragment(self, template: str, **values: Any) -> str:
        return render(template, {
            "visit": self, "url": self.url, "here": self.here, "project": self.project,
            "path": self.request.url.path, "operator": self.caller.is_operator,
            "done": DONE.get(self.request.query_params.get("done", "")), **values,
        })  # fmt: skip

    def go(self, path: str, /, **query: object) -> Response:
        """After a change: look at what came of it."""
        return RedirectResponse(self.url(path, **query), 303, HEADERS)


async def form_of(request: Request) -> dict[str, str]:
    """The fields that were sent. Raises InvalidInput for what is no form."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        raise InvalidInput("send a form", field="content-type")
    try:
        return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True))
    except UnicodeDecodeError as error:
        raise InvalidInput("the form is not UTF-8", field="body") from error


Handler = Callable[[Visit], Awaitable[Response]]


def route(path: str, handler: Handler, method: str = "GET") -> Route:
    """A page. What goes wrong is a page too, with the status that the other doors would answer with."""

    async def endpoint(request: Request) -> Response:
        try:
            visit = Visit(request, await open_service(request))
            return await handler(visit)
        except EverkeptError as error:
            return wrong(error)

    return Route(path, endpoint, methods=[method], include_in_schema=False)


def wrong(error: EverkeptError) -> Response:
    status = http_status(error.code)
    if status >= 500:
        _log.error("a page could not be shown", code=error.code, error=error.message)
    return HTMLResponse(render("error.html", {"error": error, "status": status}), status, HEADERS)
