"""One connection to NATS, until it breaks: then all that stood on it ends, and a new one begins with the streams.

There is no reconnecting below that: one path leads to a working connection, whether it is the first or the hundredth.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

from everkept.config import Nats
from everkept.errors import ConfigInvalid, ExtraMissing, Unavailable

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext

CONNECT_S: Final = 5
ANSWER_S: Final = 5.0
"""How long the server may take to answer, also with the acknowledgement of what was published."""
PING_S: Final = 10
"""A connection of which nothing is heard is given up after three of these."""


class NatsLink:
    """A connection with JetStream behind it."""

    def __init__(self, client: Client, settings: Nats) -> None:
        self.settings = settings
        self.closed = asyncio.Event()
        self._client = client
        self.stream: JetStreamContext = client.jetstream(timeout=ANSWER_S)

    @property
    def server(self) -> str:
        url = self._client.connected_url
        return shown_servers(self.settings) if url is None else f"{url.hostname}:{url.port}"


@asynccontextmanager
async def connected(settings: Nats) -> AsyncIterator[NatsLink]:
    """Raises Unavailable where no server answers or it refuses us, ExtraMissing where the extra `nats` is missing, and
    ConfigInvalid."""
    try:
        from nats.aio.client import Client
    except ModuleNotFoundError as error:
        raise ExtraMissing(
            "nats.url is set, and the client of NATS is not installed: pip install 'everkept[nats]'", module=error.name
        ) from error
    assert settings.url is not None
    client = Client()
    link = NatsLink(client, settings)
    try:
        with our_errors(settings):
            await _connect(client, link, settings.url.split(","))
        yield link
    finally:
        if client.is_connected or client.is_connecting:  # the client cannot close what was never opened
            with contextlib.suppress(Unavailable), our_errors(settings):
                await client.close()


async def _connect(client: Client, link: NatsLink, servers: list[str]) -> None:
    """Once to each of the servers, or twice; the reason is that of the last one."""
    from nats.errors import NoServersError

    reasons: list[Exception] = []

    async def note(error: Exception) -> None:
        reasons.append(error)

    async def close() -> None:
        link.closed.set()

    try:
        await client.connect(
            servers, name="everkept", allow_reconnect=False, max_reconnect_attempts=1, reconnect_time_wait=0,
            connect_timeout=CONNECT_S, ping_interval=PING_S, max_outstanding_pings=3, closed_cb=close, error_cb=note,
            user_credentials=link.settings.credentials,
        )  # fmt: skip
    except NoServersError as error:
        raise (reasons[-1] if reasons else error) from error
    except ValueError as error:
        raise ConfigInvalid(f"nats.url cannot be read: {error}", key="nats.url") from error
    except ModuleNotFoundError as error:
        raise ExtraMissing(f"nats.credentials needs {error.name}: pip install 'everkept[nats]'") from error


@contextmanager
def our_errors(settings: Nats) -> Iterator[None]:
    """Whatever the client or the network raises becomes Unavailable.

    The client cancels what waits on a connection that breaks; nobody has cancelled the task that waited.
    """
    from nats.errors import Error

    try:
        yield
    except (Error, OSError, TimeoutError) as error:
        why = str(error).removeprefix("nats: ") or type(error).__name__
        raise Unavailable(f"NATS at {shown_servers(settings)}: {why}") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise Unavailable(f"NATS at {shown_servers(settings)}: the connection broke") from error


def shown_servers(settings: Nats) -> str:
    """Without what one logs in with."""
    return re.sub(r"://[^@/,\s]*@", "://", settings.url or "")
