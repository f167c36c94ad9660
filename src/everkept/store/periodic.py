"""Periodic work: its cadence and its last runs are rows, so a restart neither skips nor repeats."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from everkept.store.connection import Connection

_ADD = text("""
insert into periodic(name, every_us, next_due_at) values(:name, :every, :now)
on conflict(name) do update set every_us = excluded.every_us,
  next_due_at = case when periodic.next_due_at > :now + excluded.every_us then :now + excluded.every_us
    else periodic.next_due_at end""")
_TAKE = text("""
update periodic set last_start_at = :now, next_due_at = :now + every_us
where name = :name and (next_due_at <= :now or next_due_at > :now + every_us) returning cursor""")
_END = text("""
update periodic set last_success_at = case when :error is null then :now else last_success_at end, last_error = :error,
  rows_repaired = rows_repaired + :repaired, cursor = :cursor where name = :name""")
_LIST = text("""
select name, every_us, last_start_at, last_success_at, last_error, next_due_at, rows_repaired from periodic
order by name""")


def register_periodic(conn: Connection, tasks: dict[str, float]) -> None:
    """Make the rows of all tasks ({name: every, in seconds}); a new one is due at once."""
    now = conn.now()
    conn.many(_ADD, [{"name": name, "every": int(every * 1e6), "now": now} for name, every in tasks.items()])


def take_periodic(conn: Connection, name: str) -> int | None:
    """Start a due task and say where its last run stopped; None where it is not due or another process took it.

    One that is due further away than its interval is due now: the clock was set back.
    """
    cursor = conn.scalar(_TAKE, {"name": name, "now": conn.now()})
    return None if cursor is None else int(cursor)


def end_periodic(conn: Connection, name: str, error: str | None, repaired: int, cursor: int) -> None:
    conn.run(_END, {"name": name, "now": conn.now(), "error": error, "repaired": repaired, "cursor": cursor})


def list_periodic(conn: Connection) -> list[tuple[Any, ...]]:
    """(name, every_us, last_start, last_success, last_error, next_due, rows_repaired)."""
    return conn.rows(_LIST)
