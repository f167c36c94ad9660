"""What a look at the store stands on: the settings, the machine around the file, and what is asked."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from everkept.config import Settings
from everkept.domain.jobs import Uses
from everkept.domain.nats_seen import NatsSeen
from everkept.errors import StoreNotSupported
from everkept.store.inspection import find_copies
from everkept.store.sqlite import choose_driver, refuse_network

UNSEEN_BEATS = 3.5
"""Heartbeats that a worker may miss before it counts as dead: as the sweep has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The file and its machine, as they were a moment ago."""

    path: Path
    library: str
    """Module and version of SQLite."""
    degraded: str | None
    """Why the slower journal is used."""
    network: str | None
    """Why its disk cannot be trusted."""
    mode: int | None
    """The file's permissions; None where the system has none."""
    size_bytes: int
    wal_bytes: int
    free_bytes: int
    copies: tuple[tuple[Path, int], ...] = ()
    """Earlier stores beside it, with the moment each was written."""


def look_around(path: Path) -> Surroundings:
    """Raises OSError where not even the folder can be looked at."""
    driver = choose_driver()
    folder = next(place for place in (path.parent, *path.parents) if place.exists())
    exists = path.exists()
    return Surroundings(
        path=path, library=f"{driver.module.__name__} {driver.version}", degraded=driver.degraded,
        network=_network(path), mode=path.stat().st_mode & 0o777 if exists and sys.platform != "win32" else None,
        size_bytes=path.stat().st_size if exists else 0, wal_bytes=_bytes(path.with_name(f"{path.name}-wal")),
        free_bytes=shutil.disk_usage(folder).free,
        copies=tuple((copy, copy.stat().st_mtime_ns // 1000) for copy in find_copies(path)) if exists else (),
    )  # fmt: skip


def _network(path: Path) -> str | None:
    try:
        refuse_network(path)
    except StoreNotSupported as error:
        return error.message
    return None


def _bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WiredAgent:
    """How one coding agent of this machine is wired, as its own files tell."""

    name: str
    problems: tuple[str, ...] = ()
    """What keeps its hooks from running, each with what mends it."""
    untrusted: tuple[str, ...] = ()
    """Events whose hook it passes by until somebody trusts it."""
    used_at: int | None = None
    """When its newest transcript was written, microseconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsAround:
    """What lies around the store for coding agents, on the machine and in the folder where doctor was asked."""

    wired: tuple[WiredAgent, ...] = ()
    waiting: int = 0
    """Records in the hooks' spool."""
    oldest_at: int | None = None
    heard: Mapping[str, int] = field(default_factory=dict)
    """{agent: when the newest of its records there was written}."""
    aside: int = 0
    """Records that could not be taken in."""
    unusable: tuple[str, ...] = ()
    """Redaction rules that do not run here."""
    place: str = ""
    """The top of the folder's checkout, else the folder."""
    signs: tuple[tuple[str, str], ...] = ()
    """(kind, value) of what the folder's project is found by, strongest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look: what is known beforehand, and how far it goes."""

    settings: Settings
    name: str
    """Where the store is, as it may be shown."""
    around: Surroundings | None
    """Of a store in a file; None of one on a server."""
    failing: str | None = None
    """Why the writer of the process that looks cannot write."""
    sync: str | None = None
    """How its writer syncs; None where nobody here has it open for writing."""
    pools: Mapping[Uses, str | None] = field(default_factory=dict)
    """Whose circuit the model and the embedder use."""
    unpriced: str | None = None
    """The model, where nobody knows its price."""
    project: str = "default"
    subject: str | None = None
    """Whose facts are asked after: then each that is held back is a finding."""
    full: bool = False
    rows_only: bool = False
    """Whether the file is whole is not looked at."""
    nats: NatsSeen | None = None
    """None where no server is set."""
    agents: AgentsAround | None = None
    """None where nobody looked at coding agents: a server does not see the machines of those who ask."""

    def unseen_us(self, now: int) -> int:
        """A worker that was last seen before this is dead."""
        return now - int(UNSEEN_BEATS * self.settings.work.heartbeat_s * 1e6)
