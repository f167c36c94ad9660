"""`mcp`: the tools for one agent, over stdio, on the memory that is found here."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from contextlib import AsyncExitStack
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from cyclopts import Parameter

from everkept.doors.cli import backend
from everkept.doors.cli.options import DEFAULT_PROJECT
from everkept.doors.cli.screen import say
from everkept.doors.cli.waiting import DRAIN_S
from everkept.doors.mcp.opening import Opening, Wire, answer_opening, claimed_wire
from everkept.errors import ExtraMissing

if TYPE_CHECKING:
    from everkept.api import views as v
    from everkept.api.hookdesk import HookDesk
    from everkept.api.service import Service
    from everkept.bootstrap import Application
    from everkept.capture.identity import Checkout
    from everkept.config import Settings
    from everkept.doors.mcp.place import Memories, Place, Waiting
    from everkept.doors.mcp.server import Context

LOG_LEAST = "warning"
"""What is worth a line on stderr, which some agents show to people."""
ROOTS_S = 2.0
"""How long a client may take to say where it works."""


def mcp(
    *,
    agent: Annotated[str, Parameter(help="The agent that starts this: the author of what it writes.")] = "mcp",
) -> None:
    """Serve the tools over stdio, on the running server of this home or on its store itself.

    stdout carries nothing but the protocol. Ends when the client closes its end.
    """
    if find_spec("mcp") is None:
        raise ExtraMissing("MCP needs mcp, which is not installed: pip install 'everkept[mcp]'", module="mcp")
    if sys.stdin.isatty():
        say("an agent starts this and talks to it over stdin; `everkept install` wires one")
    with claimed_wire() as wire:
        opening = answer_opening(wire, listed=_load_meanwhile)
        if opening is not None:
            asyncio.run(_serve(wire, opening, agent))


def _load_meanwhile() -> None:
    """The client has its list and thinks: what its first call needs is loaded in the meantime."""
    threading.Thread(
        target=import_module, args=("everkept.doors.mcp.server",), name="everkept-mcp-loading", daemon=True
    ).start()


async def _serve(wire: Wire, opening: Opening, agent: str) -> None:
    from everkept.doors.mcp.server import make_server
    from everkept.doors.mcp.stdio import serve

    async with FoundMemories() as memories:
        here = _Here(memories, agent)
        serving = asyncio.ensure_future(serve(make_server(here.place), wire, opening))
        _end_on_sigterm(serving)
        await asyncio.wait([serving])
        if not serving.cancelled():
            serving.result()


def _end_on_sigterm(serving: asyncio.Future[None]) -> None:
    """As if the client had left, so that the store is closed; where the system has no such handlers it just ends."""
    try:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
    except NotImplementedError:
        return


class _Here:
    """Where the one client of this process works: its roots if it offers any, else the folder it started us in."""

    def __init__(self, memories: FoundMemories, agent: str) -> None:
        self._memories = memories
        self._agent = agent
        self._folder: Path | None = None

    async def place(self, context: Context) -> tuple[Memories, Place]:
        from everkept.capture.identity import look_at, with_root
        from everkept.doors.mcp.place import Place

        if self._folder is None:
            self._folder = chosen_folder(Path.cwd(), await _roots(context))
        folder = self._folder
        checkout = await asyncio.to_thread(lambda: with_root(look_at(folder)))
        return self._memories, Place(checkout=checkout, agent=self._agent)


async def _roots(context: Context) -> list[Path]:
    """Folders that the client works in; none where it does not say."""
    import mcp_types as types
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    offered = context.session.client_capabilities
    if offered is None or offered.roots is None or not context.session.can_send_request:
        return []
    try:
        answer = await context.session.send_request(
            types.ListRootsRequest(), types.ListRootsResult, request_read_timeout_seconds=ROOTS_S
        )
    except (MCPError, ValidationError):
        return []
    return [found for root in answer.roots if (found := folder_of(str(root.uri))) is not None]


def folder_of(uri: str) -> Path | None:
    """The folder of a `file:` address of this machine; None for anything else."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    from urllib.request import url2pathname

    path = Path(url2pathname(parts.path))
    return path if path.is_absolute() else None


def chosen_folder(started_in: Path, roots: list[Path]) -> Path:
    """The folder we were started in if it lies in a root; a client that is no terminal starts us anywhere."""
    if not roots or any(started_in == root or root in started_in.parents for root in roots):
        return started_in
    return roots[0]


class FoundMemories:
    """`doors.mcp.place.Memories` over the running server of this home, else over its store, opened here.

    Looked for at the first call, and again once that server is gone.
    """

    whole_store = True

    def __init__(self) -> None:
        self._finding = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._settings: Settings | None = None
        self._application: Application | None = None
        self._desk: HookDesk | None = None
        self._url: str | None = None
        self._services: dict[str, Service] = {}

    async def __aenter__(self) -> FoundMemories:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self._stack.aclose()

    async def service(self, project: str) -> Service:
        settings = await self._find()
        if self._application is not None:
            return await self._application.service(project)
        assert self._url is not None
        if project not in self._services:
            remote = backend.remote_service(self._url, settings, project)
            self._services[project] = await self._stack.enter_async_context(remote)
        return self._services[project]

    async def resolve(self, checkout: Checkout, *, create: bool) -> v.Scope:
        return await (await self.service(DEFAULT_PROJECT)).resolve_scope(checkout, create=create)

    async def waiting(self) -> Waiting:
        from everkept.capture.spool import Spool
        from everkept.doors.mcp.place import Waiting

        settings = await self._find()
        if self._desk is not None:
            await self._desk.drain(DRAIN_S)
        state = await asyncio.to_thread(Spool(settings.home).state)
        return Waiting(records=state.waiting, aside=state.aside)

    async def _find(self) -> Settings:
        from everkept import config
        from everkept.doors.cli.logs import write_logs

        async with self._finding:
            if self._settings is None:
                self._settings = config.load()
                write_logs(self._settings, least=LOG_LEAST)
            if not await self._reached(self._settings):
                await self._look(self._settings)
            return self._settings

    async def _reached(self, settings: Settings) -> bool:
        """Whether what was found before is still there. A server that the settings name is never looked for."""
        if self._application is not None or self._url is None:
            return self._application is not None
        return bool(settings.url) or await asyncio.to_thread(backend.is_alive, self._url)

    async def _look(self, settings: Settings) -> None:
        await self._stack.aclose()
        self._services.clear()
        self._url = settings.url or await backend.find_server_here(settings, DEFAULT_PROJECT)
        if self._url is None:
            opened = backend.application(settings, worker=True, log_least=LOG_LEAST)
            self._application = await self._stack.enter_async_context(opened)
            self._desk = self._application.hooks()
