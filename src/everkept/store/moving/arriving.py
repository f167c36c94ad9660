"""What the place that a memory moves into knows of it: from where, and how far each kind of rows is.

It is kept in the transactions that write the rows. Until the move has ended the place carries the stamp of a schema
that no program knows (`migrate.MOVING_IN`), so that none opens it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from everkept.errors import Conflict
from everkept.store.connection import Connection
from everkept.store.migrate import MOVING_IN, SCHEMA, SEED
from everkept.store.moving.ground import IN_TABLES, ground
from everkept.store.moving.kept import Kept, Key


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveIn:
    """The one row of `move_in`."""

    move: str
    source: str
    stage: str
    """`copying`: rows come in any order; `following`: it is what the source was at one instant, and unique values are
    watched over."""
    run: str
    """The mover that may write; an earlier one finds that it is another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    after: Key | None
    rows: int
    done: bool


def find_move_in(conn: Connection) -> MoveIn | None:
    if not ground(conn.dialect.name).has_table(conn, "move_in"):
        return None
    row = conn.raw.execute("select move, source, stage, run from move_in").fetchone()
    return None if row is None else MoveIn(move=row[0], source=row[1], stage=row[2], run=row[3])


def begin_arrival(conn: Connection, kept: Sequence[Kept], move: str, source: str, run: str) -> None:
    """Make the empty place one that a memory moves into."""
    ours = ground(conn.dialect.name)
    conn.raw.execute("delete from workspaces")  # the first one, which the memory brings along
    ours.make_in_tables(conn)
    ours.loosen(conn)
    told = source.replace("'", "''")
    conn.raw.execute(
        f"insert into move_in(id, move, source, stage, run) values(1, '{move}', '{told}', 'copying', '{run}')"
    )
    names = ", ".join(f"('{each.name}', 0, 0)" for each in kept)
    conn.raw.execute(f"insert into move_progress(name, rows, done) values {names}")
    ours.stamp(conn, MOVING_IN)


def take_over(conn: Connection, run: str) -> None:
    conn.raw.execute(f"update move_in set run = '{run}'")


def require_run(conn: Connection, run: str) -> MoveIn:
    """Raises Conflict where another mover has taken over, before this one writes again."""
    found = find_move_in(conn)
    if found is None or found.run != run:
        raise Conflict("another `everkept move` goes on with this move; this one wrote nothing more")
    return found


def progress(conn: Connection) -> dict[str, Progress]:
    rows = conn.raw.execute("select name, after, rows, done from move_progress").fetchall()
    return {
        name: Progress(after=None if after is None else tuple(json.loads(after)), rows=done_rows, done=bool(done))
        for name, after, done_rows, done in rows
    }


def set_progress(conn: Connection, name: str, after: Key | None, rows: int, *, done: bool) -> None:
    key = "null" if after is None else "'" + json.dumps(after).replace("'", "''") + "'"
    conn.raw.execute(
        f"update move_progress set after = coalesce({key}, after), rows = rows + {rows}, done = {int(done)}"
        f" where name = '{name}'"
    )


def set_stage(conn: Connection, stage: str) -> None:
    conn.raw.execute(f"update move_in set stage = '{stage}'")


_GIVE_BACK_JOBS = (
    "update jobs set state = 'waiting', owner = null, lease_until = null, fence = fence + 1, due_at = {now},"
    " crashes = case when crashes > 0 then crashes - 1 else 0 end where state = 'leased'"
)
_GIVE_BACK = (
    "update lanes set running = 0 where running <> 0",
    "update lane_groups set running = 0 where running <> 0",
)


def end_arrival(conn: Connection) -> None:
    """Make the place a memory. Jobs that were leased in the old one wait again: whoever held them can write only there.

    Leases of those who follow changes stay: they hold them from outside, and go on with them here.
    """
    ours = ground(conn.dialect.name)
    ours.bind(conn)
    for statement in (_GIVE_BACK_JOBS.format(now=conn.now()), *_GIVE_BACK):
        conn.raw.execute(statement)
    _drop(conn)
    ours.stamp(conn, SCHEMA)


def give_up_arrival(conn: Connection) -> None:
    """Make the place an empty memory again."""
    ours = ground(conn.dialect.name)
    ours.empty(conn)
    ours.tighten(conn)
    ours.bind(conn)
    _drop(conn)
    conn.run(SEED, {"now": conn.now()})
    ours.set_numbers(conn, {"workspaces": 1})
    ours.stamp(conn, SCHEMA)


def _drop(conn: Connection) -> None:
    for table in IN_TABLES:
        conn.raw.execute(f"drop table if exists {table}")
