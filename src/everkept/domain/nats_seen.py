"""What was seen of NATS: of its streams, of what waits there, and of why it cannot be reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSeen:
    """One stream. Times in microseconds since 1970."""

    name: str
    made_at: int
    replicas: int
    messages: int
    differs: tuple[str, ...]
    """How it is set up otherwise than Everkept would have made it, where that voids what is promised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsSeen:
    """NATS as one process sees it."""

    server: str
    """Its address, without a password."""
    trouble: str | None = None
    """Why it could not be looked at, or fails."""
    since: int | None = None
    """When the trouble began, where this process knows."""
    streams: tuple[StreamSeen, ...] = ()
    pending: int = 0
    """Messages that were not given yet."""
    unacknowledged: int = 0
    """Given, and not acknowledged yet."""
    redelivered: int = 0
    """Among those: given more than once."""
    published: Mapping[str, int] | None = None
    """{project: its changes that stand in the stream}; None where nobody counted."""

    @property
    def connected(self) -> bool:
        return self.trouble is None
