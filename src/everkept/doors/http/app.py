"""The HTTP door, put together."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.routing import Route

from everkept import __version__
from everkept.api.service import Application
from everkept.config import Settings
from everkept.doors.http import (
    changes,
    contexts,
    episodes,
    facts,
    handoffs,
    ingest,
    jobs,
    launches,
    messages,
    offers,
    pages,
    problems,
    projects,
    proposals,
    recall,
    reviews,
    sessions,
    status,
    subjects,
    threads,
    webhooks,
    workspaces,
    workstreams,
)
from everkept.doors.http.admin_key import AdminKey
from everkept.doors.http.callers import Gatekeeper
from everkept.doors.http.gate import Gate
from everkept.doors.http.hosts import HostRules
from everkept.doors.http.scope import caller_of
from everkept.doors.http.web.samples import Sampler
from everkept.doors.http.web.site import routes
from everkept.doors.mcp.http import McpOverHttp
from everkept.errors import EverkeptError

# Tried in turn: messages first, as what happens most; episodes last, because of `/v1/{kind}/{id}/why`.
_ROUTERS = (
    messages, threads, recall, facts, sessions, ingest, contexts, pages, handoffs, reviews, proposals,
    workstreams, launches, offers, subjects, projects, workspaces, changes, webhooks, jobs, status, episodes,
)  # fmt: skip
_DESCRIPTION = """Durable memory for AI agents: nothing lost, nothing twice, nothing hidden.

Lists are paged: `next_cursor` of one page is the `cursor` of the next. A field or parameter that is not known is an
error. Every answer has an `X-Request-Id`."""


def create_app(application: Application, settings: Settings) -> FastAPI:
    """The routes over an application that somebody else opens and closes."""
    app = FastAPI(
        title="Everkept",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,  # both pages load their scripts from other people's servers
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},
        exception_handlers={
            EverkeptError: problems.answer_everkept,
            RequestValidationError: problems.answer_validation,
            HTTPException: problems.answer_http,
        },
    )
    app.state.application = application
    app.state.settings = settings
    app.state.stopping = asyncio.Event()
    app.state.sampler = Sampler(application)
    for module in _ROUTERS:
        app.router.routes.extend(module.router.routes)
    mcp = McpOverHttp(
        application, home=settings.home, body_max_bytes=settings.server.body_max_bytes, caller_of=caller_of
    )
    app.router.routes.append(Route("/mcp", mcp, methods=["POST"], include_in_schema=False))
    app.router.routes.extend(routes())
    hosts = HostRules.of(settings.server.address[0], settings.server.allowed_hosts)
    keeper = Gatekeeper(application=application, admin_key=AdminKey(settings), key_needed=hosts.key_needed)
    app.add_middleware(Gate, hosts=hosts, keeper=keeper, body_max_bytes=settings.server.body_max_bytes)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]  # FastAPI's own way to extend the document
    return app


def _document(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        bodies = (messages.OneMessage, messages.ManyMessages)
        _, extra = models_json_schema(
            [(model, "validation") for model in bodies], ref_template="#/components/schemas/{model}"
        )
        parts = document["components"]
        parts["schemas"] |= extra["$defs"]
        parts["securitySchemes"] = {
            "key": {
                "type": "http",
                "scheme": "bearer",
                "description": "Not needed on loopback without server.allowed_hosts.",
            }
        }
        document["security"] = [{}, {"key": []}]
        app.openapi_schema = document
    return app.openapi_schema
