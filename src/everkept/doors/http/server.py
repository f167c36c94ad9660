"""Serving the HTTP door until a signal ends it: stop accepting, answer what has begun, then close the application."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from everkept.api.service import Application
from everkept.config import Settings
from everkept.doors.http.app import create_app
from everkept.doors.http.hosts import HostRules
from everkept.errors import ConfigInvalid, Unavailable

ANSWER_S = 30
"""Longest wait for requests that have begun, once the server is told to stop."""
KEEP_ALIVE_S = 30
BACKLOG = 2048


class _Server(uvicorn.Server):
    """uvicorn, which would raise the signal again when it has stopped: the application would never be closed.

    `stopping` is set at the first signal, so that answers that never end by themselves end then.
    """

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._stopping = stopping
        self._loop = asyncio.get_running_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


Beside = Callable[[asyncio.Event], Coroutine[Any, Any, None]]


async def run(settings: Settings, application: Application, beside: Beside | None = None) -> None:
    """Serve until SIGTERM or SIGINT (twice: at once), then close `application` with `work.drain_s`.

    `beside` runs meanwhile, until the event that it is given is set.

    Runs in the main thread. Raises ConfigInvalid for an address that others reach while there is no key, and
    Unavailable where the address cannot be listened on; the application is closed then too.
    """
    try:
        await _require_key(settings, application)
        gc.collect()
        gc.freeze()  # a tenth of an append was spent on looking through what stays loaded as long as the server runs
        with listening(settings) as listener:
            host, port = listener.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            sys.stderr.write(f"Everkept listens on http://{shown}:{port}\n")
            sys.stderr.flush()
            app = create_app(application, settings)
            async with _running(beside), _running(app.state.sampler.run):
                await _Server(_config(app), app.state.stopping).serve(sockets=[listener])
    finally:
        await application.close(drain_s=settings.work.drain_s)


@asynccontextmanager
async def _running(beside: Beside | None) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = None if beside is None else asyncio.create_task(beside(stop))
    try:
        yield
    finally:
        stop.set()
        if task is not None:
            await task


def _config(app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,  # structlog owns the format
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the caller's address decides nothing here, so nobody may forge it
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=ANSWER_S,
    )


async def _require_key(settings: Settings, application: Application) -> None:
    rules = HostRules.of(settings.server.address[0], settings.server.allowed_hosts)
    if not rules.key_needed or settings.secrets.admin_key:
        return
    service = await application.service()
    if any(key.get("revoked_at") is None for key in await service.list_keys()):
        return
    cause = "server.allowed_hosts" if rules.loopback else "server.bind"
    value = ", ".join(sorted(rules.allowed)) if rules.loopback else settings.server.bind
    raise ConfigInvalid(
        f"{cause} is {value}, which others can reach, and there is no API key: make one with "
        "`everkept keys create <name>`, or set EVERKEPT_ADMIN_KEY",
        key=cause,
    )


@contextmanager
def listening(settings: Settings) -> Iterator[socket.socket]:
    """Raises Unavailable."""
    host, port = settings.server.address
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise Unavailable(
            f"cannot listen on {settings.server.bind}: {error.strerror or error}; EVERKEPT_BIND chooses another",
            bind=settings.server.bind,
        ) from error
    with listener:
        # Every connection inherits it. Without, the body of an answer waits until the client has confirmed its head,
        # which it puts off for 40 ms; asyncio sees to it only where the socket names its protocol.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener
