"""Every page of the site, put together."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from everkept.doors.http.gate import KEY_COOKIE
from everkept.doors.http.web import (
    ask,
    conversations,
    deliveries,
    knowledge,
    memory,
    operate,
    overview,
    proposals,
    spending,
    work,
    workstreams,
)
from everkept.doors.http.web.render import render
from everkept.doors.http.web.visit import HEADERS, form_of, wrong
from everkept.errors import EverkeptError

LOGIN = "/login"


def routes() -> list[BaseRoute]:
    """In the order in which they are tried."""
    parts = (
        overview, work, memory, conversations, ask, knowledge, proposals, workstreams, deliveries, spending, operate,
    )  # fmt: skip
    pages = [r for part in parts for r in part.ROUTES]
    files = StaticFiles(directory=Path(__file__).parent / "static")
    return [
        *pages,
        Route(LOGIN, show_login, methods=["GET"], include_in_schema=False),
        Route(LOGIN, log_in, methods=["POST"], include_in_schema=False),
        Mount("/static", files, name="static"),
    ]


async def show_login(request: Request) -> Response:
    return HTMLResponse(render("login.html", {"failed": "failed" in request.query_params}), headers=HEADERS)


async def log_in(request: Request) -> Response:
    """The key stays in a cookie that no script reads and no other site sends."""
    try:
        key = (await form_of(request)).get("key", "").strip()
    except EverkeptError as error:
        return wrong(error)
    if not key.isascii() or not key.isprintable():  # no key of ours, and no header could hold it
        return RedirectResponse(f"{LOGIN}?failed=1", 303, HEADERS)
    answer = RedirectResponse("/", 303, HEADERS)
    answer.set_cookie(KEY_COOKIE, key, httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return answer
