"""What the database that holds the store says of itself."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import text

from everkept.store.connection import Connection
from everkept.store.moving.away import find_move_out, refusal
from everkept.store.newer_schema import find_newer_schema

_SQLITE: Final = text("""
select sqlite_version(), journal_mode, page_count * page_size
from pragma_journal_mode, pragma_page_count, pragma_page_size""")
_POSTGRES: Final = text("""
select current_setting('server_version'), pg_database_size(current_database())""")


def described(conn: Connection) -> dict[str, Any]:
    """library with its version, journal_mode (a server has none), size_bytes, degraded: why the store is slower than it
    could be, or None, failing: why nothing can be written for good, or None, and newer: that its schema is newer than
    this program, or None.
    """
    newer = find_newer_schema(conn)
    said = None if newer is None else str(newer)
    out = find_move_out(conn)
    failing = refusal(out.target) if out is not None and out.state == "moved" else None
    if conn.dialect.name == "sqlite":
        version, mode, size = conn.first(_SQLITE) or ()
        slower = f"journal_mode={mode.upper()}: writes are slower (docs/operations.md)"
        return {
            "library": f"SQLite {version}", "journal_mode": mode, "size_bytes": size,
            "degraded": None if mode == "wal" else slower, "failing": failing, "newer": said,
        }  # fmt: skip
    version, size = conn.first(_POSTGRES) or ()
    return {
        "library": f"PostgreSQL {version.split()[0]}", "journal_mode": None, "size_bytes": size,
        "degraded": None, "failing": failing, "newer": said,
    }  # fmt: skip
