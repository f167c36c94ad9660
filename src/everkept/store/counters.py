"""Counters that `status` shows: what happened that left no row."""

from __future__ import annotations

from sqlalchemy import text

from everkept.store.connection import Connection

_COUNT = text("""
insert into counters(name, value) values(:name, :n)
on conflict(name) do update set value = counters.value + excluded.value""")


def count(conn: Connection, name: str, n: int = 1) -> None:
    """Add to a counter that `status` shows."""
    conn.share()
    conn.run(_COUNT, {"name": name, "n": n})
