"""Pauses: kinds of work and providers that a hand has stopped, for the whole store, until a hand starts them again.

A paused provider is not claimed from, as in an outage. A due job of a paused kind is held (`store/jobs.py`): no claim
finds it, and the tick gives it back once its kind is no longer paused. Both are decided by the rows here alone, so
that whoever is killed between a pause and its effect leaves nothing that the next tick would not put right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from sqlalchemy import text

from everkept.config import Settings
from everkept.store.connection import Connection

Paused = Literal["kind", "provider"]
WHAT: tuple[Paused, ...] = get_args(Paused)

_ADD = text("""
insert into pauses(what, name, why, paused_by, since) values(:what, :name, :why, :by, :now)
on conflict(what, name) do update set why = excluded.why, paused_by = excluded.paused_by""")
_REMOVE = text("delete from pauses where what = :what and name = :name")
_LIST = text("select what, name, why, paused_by, since from pauses order by what, name")
_KINDS = text("select name from pauses where what = 'kind'")
_PROVIDERS = text("select name from pauses where what = 'provider'")


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRow:
    what: Paused
    name: str
    """A kind of job, or a provider: its vendor, or one of its pools (`vendor:hash of the key`)."""
    why: str
    by: str
    since: int
    """Microseconds since 1970."""

    def words(self) -> str:
        """Why what it stops does not go on, as receipts and `status` say it."""
        since = datetime.fromtimestamp(self.since // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"{self.what} {self.name} is paused by {self.by} since {since}: {self.why}"


def pause(conn: Connection, what: Paused, name: str, why: str, by: str) -> None:
    """Doing so again changes the reason, and not since when."""
    conn.run(_ADD, {"what": what, "name": name, "why": why, "by": by, "now": conn.now()})


def resume(conn: Connection, what: Paused, name: str) -> bool:
    """False where it was not paused. Whoever polls is told."""
    if not conn.run(_REMOVE, {"what": what, "name": name}):
        return False
    conn.hint(conn.now())
    return True


def list_pauses(conn: Connection) -> list[PauseRow]:
    return [
        PauseRow(what=what, name=name, why=why, by=by, since=since) for what, name, why, by, since in conn.rows(_LIST)
    ]


def paused_kinds(conn: Connection) -> frozenset[str]:
    return frozenset(name for (name,) in conn.rows(_KINDS))


def is_pool_paused(conn: Connection, pool: str) -> bool:
    return any(covers(name, pool) for (name,) in conn.rows(_PROVIDERS))


def covers(provider: str, pool: str) -> bool:
    """Whether a pause of `provider` stops this pool."""
    return provider in (pool, pool.partition(":")[0])


def why_kind_waits(pauses: Sequence[PauseRow], kind: str) -> str | None:
    """None where the kind is not paused."""
    return next((each.words() for each in pauses if (each.what, each.name) == ("kind", kind)), None)


def why_job_waits(pauses: Sequence[PauseRow], kind: str, uses: str, settings: Settings) -> str | None:
    """None where neither the kind nor the provider that it needs by these settings is paused. `uses` as in its row."""
    named = {"model": settings.model or "", "embedder": settings.embedder}.get(uses.removeprefix("held_"), "")
    vendor = named.partition(":")[0]
    provider = (each.words() for each in pauses if each.what == "provider" and each.name.partition(":")[0] == vendor)
    return why_kind_waits(pauses, kind) or next(provider, None)
