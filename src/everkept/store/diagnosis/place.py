"""Causes that lie in the file or its machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import text

from everkept.errors import EverkeptError, StoreFull, StoreUnavailable
from everkept.store.connection import Connection
from everkept.store.copy import opened
from everkept.store.diagnosis.causes import Finding
from everkept.store.diagnosis.look import Look, Surroundings
from everkept.store.diagnosis.moves import moving_in
from everkept.store.inspection import FREE_BYTES_MIN, check_full_text, check_integrity, check_references
from everkept.store.migrate import MOVING_IN, SCHEMA, is_newer_and_known, read_oldest_program

BUSY_S = 3.0
"""How long a look waits for a lock that somebody else holds."""
SKEW_US = 60_000_000
RESTORE = "everkept restore FILE (the newest backup)"
_VERSION = "pragma user_version"


def around_the_file(around: Surroundings, failing: str | None) -> list[Finding]:
    """What can be said without opening it; `failing`: why it cannot be written."""
    found = []
    if around.degraded:
        found.append(Finding(
            cause="library_old", what=around.degraded, since=None, evidence={"library": around.library},
            mend="pip install pysqlite3",
        ))  # fmt: skip
    if around.network:
        found.append(Finding(
            cause="network_disk", what=around.network, since=None, evidence={"path": str(around.path)},
            mend="move the home to a local disk and set EVERKEPT_HOME",
        ))  # fmt: skip
    if around.mode is not None and around.mode & 0o077:
        found.append(Finding(
            cause="open_to_others", what=f"{around.path} has mode {around.mode:o}", since=None,
            evidence={"mode": f"{around.mode:o}"}, mend=f"chmod 600 {around.path}",
        ))  # fmt: skip
    needed = max(FREE_BYTES_MIN, around.size_bytes)
    if around.free_bytes < needed:
        found.append(Finding(
            cause="disk_full", what=f"{around.free_bytes >> 20:,} MB are free beside a store of "
            f"{around.size_bytes >> 20:,} MB; a copy or an upgrade needs {needed >> 20:,} MB", since=None,
            evidence={"free_bytes": around.free_bytes, "size_bytes": around.size_bytes},
            mend=f"free {(needed - around.free_bytes) >> 20:,} MB on the disk of {around.path.parent}",
        ))  # fmt: skip
    if failing:
        found.append(_writes_fail(around, failing))
    return found


def _writes_fail(around: Surroundings, why: str) -> Finding:
    return Finding(
        cause="writes_fail", what=why, since=None, evidence={"free_bytes": around.free_bytes},
        mend=f"free space, or let the owner write {around.path}; the next write tries again by itself",
    )  # fmt: skip


def missing(path: Path) -> Finding:
    return Finding(
        cause="store_missing", what=f"there is no store at {path}", since=None, blind=True,
        mend="everkept config database_url shows which file is meant; the first `everkept add` makes it",
    )  # fmt: skip


def unreadable(path: Path, error: EverkeptError) -> Finding:
    """What an error of the driver means that kept the file from being read."""
    if "locked" in error.message or "busy" in error.message:
        return Finding(
            cause="store_locked",
            what=error.message,
            since=None,
            blind=True,
            mend=f"fuser {path}, and end what holds it",
        )
    if isinstance(error, StoreFull):
        return Finding(
            cause="writes_fail", what=error.message, since=None, blind=True,
            mend=f"give this user the right to read and write {path} and its folder",
        )  # fmt: skip
    return damaged(path, error.message)


def damaged(path: Path, what: str) -> Finding:
    return Finding(
        cause="store_corrupt", what=what, since=None,
        mend=f"stop every process, keep {path} aside, then: everkept restore FILE (the newest backup)",
    )  # fmt: skip


def schema_of(raw: Any, path: Path, known: int = SCHEMA) -> Finding | None:
    """Why this program cannot read what is in the file; None where it can."""
    found = raw.execute(_VERSION).fetchone()[0]
    if found == MOVING_IN:
        return moving_in(str(path))
    if found > known and not is_newer_and_known(found, known, read_oldest_program(raw, found)):
        return Finding(
            cause="store_newer", what=f"{path} has schema {found}, and this Everkept knows {known}", since=None,
            evidence={"schema": found, "known": known}, mend="pip install --upgrade everkept", blind=True,
        )  # fmt: skip
    tables = {row[0] for row in raw.execute("select name from sqlite_master where type = 'table'")}
    if not tables:
        return missing(path)
    if not {"jobs", "streams"} <= tables:
        return Finding(
            cause="store_foreign", what=f"{path} is a database, but not one of Everkept", since=None,
            mend="set EVERKEPT_DATABASE_URL to another file", blind=True,
        )  # fmt: skip
    if found < known:
        return Finding(
            cause="migration_pending", what=f"{path} has schema {found}, and this Everkept has {known}", since=None,
            evidence={"schema": found, "known": known}, mend="everkept db upgrade",
        )  # fmt: skip
    return None


def contents(raw: Any, look: Look) -> list[Finding]:
    """Whether the file is whole: every page quickly, or (`full`) every page, index and full text."""
    assert look.around is not None
    path, found = look.around.path, []
    if look.full:
        whole = check_integrity(raw)
        faults = [] if whole.ok else [whole.message]
    else:
        faults = [str(row[0]) for row in raw.execute("pragma quick_check(10)").fetchall() if row[0] != "ok"]
    if faults:
        return [damaged(path, "; ".join(faults))]
    references = check_references(raw)
    if not references.ok:
        found.append(Finding(
            cause="references_broken", what=references.message, since=None, mend=RESTORE
        ))  # fmt: skip
    words = check_full_text(raw) if look.full else None
    if words is not None and not words.ok:
        found.append(Finding(
            cause="full_text_broken", what=words.message, since=None, mend=RESTORE
        ))  # fmt: skip
    return found


def writable(path: Path) -> Finding | None:
    """Why a write would fail now: its lock is taken and given back, and nothing is written."""
    try:
        with opened(path, mode="rw", busy_s=BUSY_S) as raw:
            raw.execute("begin immediate")
            raw.execute("rollback")
    except StoreFull as error:
        return Finding(
            cause="writes_fail", what=error.message, since=None,
            mend=f"give this user the right to write {path} and its folder",
        )  # fmt: skip
    except StoreUnavailable as error:
        return Finding(
            cause="store_locked", what=f"{error.message} (for more than {BUSY_S:g} s)", since=None,
            mend=f"fuser {path}, and end what holds it",
        )  # fmt: skip
    return None


# ---- what the rows say about the machine

_AHEAD = text("""
select (select max(last_recorded_at) from streams), (select max(seen_at) from workers),
  (select created_at from jobs order by id desc limit 1)""")
_SEEN = text("select id, seen_at from workers where seen_at > :since order by id")
_ERASED = text("select max(asked_at) from erasures")


def clock_moved(conn: Connection, _look: Look) -> list[Finding]:
    now = conn.now()
    ahead = max((at for at in conn.first(_AHEAD) or () if at is not None), default=now)
    if ahead <= now + SKEW_US:
        return []
    return [Finding(
        cause="clock_moved", what=f"the newest row was written {(ahead - now) / 1e6:,.0f} s after now by this clock",
        since=ahead, evidence={"ahead_s": round((ahead - now) / 1e6)},
        mend="set the clock (timedatectl set-ntp true); everkept threads end THREAD does not wait for it",
    )]  # fmt: skip


def several_machines(conn: Connection, look: Look) -> list[Finding]:
    if look.around is None:  # a server is there for several
        return []
    since = conn.now() - int(1.5 * look.settings.work.heartbeat_s * 1e6)
    hosts = sorted({str(worker).rsplit("-", 2)[0] for worker, _ in conn.rows(_SEEN, {"since": since})})
    if len(hosts) < 2:
        return []
    return [Finding(
        cause="several_machines", what=f"workers of {', '.join(hosts)} are alive on one file", since=None,
        evidence={"machines": len(hosts)}, mend="stop all but one, and set EVERKEPT_URL for the others",
    )]  # fmt: skip


def copies_kept(conn: Connection, look: Look) -> list[Finding]:
    if look.around is None:
        return []
    erased = conn.scalar(_ERASED)
    kept = [copy for copy, written in look.around.copies if erased is not None and written <= erased]
    if not kept:
        return []
    return [Finding(
        cause="copies_kept", what=f"{len(kept)} older than the newest erase: {', '.join(copy.name for copy in kept)}",
        since=erased, evidence={"copies": len(kept)}, mend=" ".join(["rm", *map(str, kept)]),
    )]  # fmt: skip
