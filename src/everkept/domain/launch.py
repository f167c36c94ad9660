"""Launches: their states as one table, and how long a lease on a workstream holds. No I/O."""

from __future__ import annotations

import re
from typing import Final, Literal

State = Literal["prepared", "running", "finished", "cancelled", "lost"]
Event = Literal["heartbeat", "finish", "cancel", "take_over", "take_again"]

LEASE_US: Final = 90_000_000
HEARTBEAT_S: Final = 30.0
LIVE: Final[frozenset[State]] = frozenset({"prepared", "running"})
MOVES: Final[dict[State, dict[Event, State]]] = {
    "prepared": {"heartbeat": "running", "finish": "finished", "cancel": "cancelled", "take_over": "lost",
                 "take_again": "prepared"},
    "running": {"heartbeat": "running", "finish": "finished", "cancel": "cancelled", "take_over": "lost",
                "take_again": "running"},
    "lost": {"take_again": "running"},
    "finished": {},
    "cancelled": {},
}  # fmt: skip
"""Whoever sends an event that its state does not know is refused."""
_ID: Final = re.compile(r"lch_([1-9]\d{0,17})")


def launch_number(told: object) -> int | None:
    """What `EVERKEPT_LAUNCH` says, in a number; None for what is no launch's id: an environment may hold anything."""
    found = _ID.fullmatch(told) if isinstance(told, str) else None
    return None if found is None else int(found[1])
