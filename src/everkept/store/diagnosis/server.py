"""Causes that lie in a database server and this program's connections to it."""

from __future__ import annotations

import math
from typing import Any

from sqlalchemy import text

from everkept.errors import EverkeptError, StoreNotSupported
from everkept.store.connection import Connection
from everkept.store.diagnosis.causes import Finding
from everkept.store.diagnosis.look import Look
from everkept.store.diagnosis.moves import moving_in
from everkept.store.server_state import EACH_MAX, read_server

ROOM = 0.2
"""The part of a server's connections that is to be free: administrators and a rolling restart need some."""
IDLE_US = 30_000_000
_IDLE = text("""
select application_name, (extract(epoch from min(xact_start)) * 1000000)::bigint as since from pg_stat_activity
where state = 'idle in transaction' and datname = current_database() and pid <> pg_backend_pid()
  and xact_start < now() - make_interval(secs => :idle_s) group by application_name order by since limit 1""")
_ABLE = text("select rolsuper or rolbypassrls from pg_roles where rolname = current_user")
_SAFE = text(
    "select current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes')"
)


def around(conn: Connection, look: Look) -> list[Finding]:
    """Over an open connection."""
    return [
        *([_writes_fail(look.failing)] if look.failing else []),
        *_connections(conn, look), *_idle(conn), *_unsafe(conn), *_mighty(conn),
    ]  # fmt: skip


def _writes_fail(why: str) -> Finding:
    return Finding(
        cause="writes_fail", what=why, since=None,
        mend="look at the server's log and its disk; the next write tries again by itself",
    )  # fmt: skip


def _connections(conn: Connection, look: Look) -> list[Finding]:
    """Hardly one is left, or hardly one would be once each of our processes has opened all that it may.

    Behind a pooler what they open are not the server's.
    """
    now = read_server(conn)
    assert now is not None
    pooled = look.settings.database_direct_url is not None
    if now.connections >= now.connections_max * (1 - ROOM):
        used = f"{now.connections} of the server's {now.connections_max} connections"
        what = f"{used} are in use, {now.ours} of them ours"
    elif now.could_be > now.connections_max and not pooled:
        what = (
            f"{now.processes} processes may open {now.processes * EACH_MAX} connections, others have"
            f" {now.connections - now.ours}, and the server takes {now.connections_max}"
        )
    else:
        return []
    needed = math.ceil(max(now.connections, now.could_be) / (1 - ROOM))
    return [Finding(
        cause="connections_short", what=what, since=None,
        evidence={
            "used": now.connections, "connections_max": now.connections_max, "ours": now.ours,
            "processes": now.processes, "could_be": now.could_be,
        },
        mend=f"raise max_connections by {needed - now.connections_max} or more, run fewer processes, or put a pooler"
        " before the server",
    )]  # fmt: skip


def _idle(conn: Connection) -> list[Finding]:
    found = conn.first(_IDLE, {"idle_s": IDLE_US / 1e6})
    if found is None:
        return []
    return [Finding(
        cause="transaction_idle", what=f"a transaction of {found[0] or 'an unnamed program'} stands idle",
        since=found[1], evidence={"program": found[0]},
        mend="end that program, or select pg_terminate_backend(pid) of its pid",
    )]  # fmt: skip


def _unsafe(conn: Connection) -> list[Finding]:
    said: Any = dict(zip(("fsync", "synchronous_commit", "full_page_writes"), conn.first(_SAFE) or (), strict=True))
    off = [name for name, value in said.items() if value == "off"]
    if not off:
        return []
    return [Finding(
        cause="server_unsafe", what=f"{', '.join(off)} is off on the server", since=None, evidence=said,
        mend="; ".join(f"alter system set {name} = on" for name in off) + "; select pg_reload_conf()",
    )]  # fmt: skip


def _mighty(conn: Connection) -> list[Finding]:
    if not conn.scalar(_ABLE):
        return []
    return [Finding(
        cause="role_too_mighty", what="this program connects as a role that row-level security does not bind",
        since=None, mend="everkept db sql prints the statements that make a role for it",
    )]  # fmt: skip


def unreachable(name: str, error: EverkeptError) -> Finding:
    """Why the database could not even be opened."""
    if isinstance(error, StoreNotSupported):
        if error.details.get("moving_in"):
            return moving_in(name)
        if "found" not in error.details:
            return Finding(
                cause="store_missing", what=f"{name}: {error.message}", since=None, blind=True,
                mend="everkept config database_url shows which is meant; the first `everkept serve` makes the schema",
            )  # fmt: skip
        newer = str(error.details.get("found") or "") > str(error.details.get("known") or "")
        return Finding(
            cause="store_newer" if newer else "migration_pending", what=error.message, since=None, blind=True,
            mend="pip install --upgrade everkept" if newer else "everkept db upgrade",
        )  # fmt: skip
    return Finding(
        cause="store_unreachable", what=f"{name}: {error.message}", since=None, blind=True,
        mend="see that the server runs and takes this user: everkept config database_url",
    )  # fmt: skip
