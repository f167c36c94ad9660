"""What one process knows of NATS while it stands beside its server or worker: shown by `status`, used by its jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from everkept.config import Nats
from everkept.deliver.nats_link import NatsLink, shown_servers
from everkept.domain.nats_seen import NatsSeen


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One message of the stream of events."""

    project: str | None
    """None: whichever project a session in it belongs to."""
    key: str
    """What its sender calls it (`Nats-Msg-Id`); where nothing, its place in the stream."""
    data: bytes
    stream: str
    made_at: int
    """When its stream was made, in microseconds since 1970: one made again counts anew."""
    seq: int
    subject: str
    delivered: int = 1
    """How often it was given to somebody."""


Take = Callable[[Letter], Awaitable[None]]
"""Takes in what a letter tells. Raises what the same body would be refused with over HTTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """Where letters are taken in: all of it lives in one loop, whoever asks."""

    link: NatsLink
    take: Take
    loop: asyncio.AbstractEventLoop


@dataclass(slots=True, kw_only=True)
class NatsState:
    """Its fields are only ever replaced: jobs, which run in another thread, read them too."""

    counter: Counter | None = None
    """While there is a connection, where events are taken."""
    seen: NatsSeen | None = None
    """None: this process does not attend to NATS."""

    def failed(self, settings: Nats, why: str, at_us: int) -> None:
        before = self.seen or NatsSeen(server=shown_servers(settings))
        since = at_us if before.connected else before.since
        self.seen = replace(before, trouble=why, since=since)
