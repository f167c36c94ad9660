"""MCP over streamable HTTP, as an ASGI application that a server mounts.

Every request stands by itself: no session is kept, so that any replica may answer it and a restart ends nothing. This
server cannot see its clients' folders: the project is named by the call, by `X-Everkept-Project`, or by the key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from everkept.api import views as v
from everkept.api.service import Application, Service
from everkept.capture.identity import Checkout
from everkept.capture.spool import Spool
from everkept.doors.mcp.place import Memories, Place, Waiting
from everkept.errors import ExtraMissing, NotFound

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from everkept.doors.mcp.server import Context

PROJECT_HEADER = "x-everkept-project"


class Caller(Protocol):
    """Who sent a request, as the HTTP door knows it."""

    @property
    def project(self) -> str | None: ...
    @property
    def is_operator(self) -> bool: ...
    def confine(self, project: str) -> str: ...


class McpOverHttp:
    """Loads the SDK at the first request. Raises ExtraMissing where it is not installed."""

    def __init__(
        self, application: Application, *, home: Path, body_max_bytes: int, caller_of: Callable[[Request], Caller]
    ) -> None:
        self._application = application
        self._spool = Spool(home)
        self._body_max_bytes = body_max_bytes
        self._caller_of = caller_of
        self._starting = asyncio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._starting:
            manager = self._manager or await self._start()
        await manager.handle_request(scope, receive, send)

    async def _start(self) -> StreamableHTTPSessionManager:
        try:
            await asyncio.to_thread(import_module, "everkept.doors.mcp.server")
        except ModuleNotFoundError as error:
            raise ExtraMissing(
                f"MCP needs {error.name}, which is not installed: pip install 'everkept[mcp]'", module=error.name
            ) from error
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from everkept.doors.mcp.server import make_server

        manager = StreamableHTTPSessionManager(
            make_server(self._placing), json_response=True, stateless=True, max_request_body_size=self._body_max_bytes
        )
        ready = asyncio.Event()
        self._running = asyncio.create_task(_run(manager, ready))
        await ready.wait()
        self._manager = manager
        return manager

    async def _placing(self, context: Context) -> tuple[Memories, Place]:
        request = context.request
        assert request is not None, "the transport is HTTP"
        caller = self._caller_of(request)
        client = context.session.client_params
        agent = "mcp" if client is None else client.client_info.name
        named = request.headers.get(PROJECT_HEADER) or caller.project
        return _Served(self._application, self._spool, caller), Place(project=named, agent=agent[:255] or "mcp")


async def _run(manager: StreamableHTTPSessionManager, ready: asyncio.Event) -> None:
    """Holds the manager open until the loop ends and cancels what still runs."""
    async with manager.run():
        ready.set()
        await asyncio.Event().wait()


class _Served:
    """The memory of this server, as far as the caller may see it."""

    def __init__(self, application: Application, spool: Spool, caller: Caller) -> None:
        self._application = application
        self._spool = spool
        self._caller = caller
        self.whole_store = caller.is_operator

    async def service(self, project: str) -> Service:
        return await self._application.service(self._caller.confine(project))

    async def resolve(self, checkout: Checkout, *, create: bool) -> v.Scope:
        raise NotFound("this server cannot see your folder")

    async def waiting(self) -> Waiting:
        """The server takes in what waits by itself."""
        state = await asyncio.to_thread(self._spool.state)
        return Waiting(records=state.waiting, aside=state.aside)
