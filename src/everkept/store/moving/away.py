"""What the memory that moves knows of it: where to, and the keys of the rows that were written since."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from everkept.errors import StoreMoved
from everkept.store.connection import Connection
from everkept.store.moving.ground import ground
from everkept.store.moving.kept import Kept, Key

KEYS_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveOut:
    """The one row of `move_out`."""

    move: str
    """What both sides call this move."""
    target: str
    state: str
    """`tracking` until every table tells what is written; then `moving`; then, for good, `moved`."""
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """Entries of `move_touched`, oldest first."""

    numbers: tuple[int, ...]
    keys: dict[str, dict[Key, None]]
    """{kind of rows: their keys}."""


def find_move_out(conn: Connection) -> MoveOut | None:
    if not ground(conn.dialect.name).has_table(conn, "move_out"):
        return None
    row = conn.raw.execute("select move, target, state, since from move_out").fetchone()
    return None if row is None else MoveOut(move=row[0], target=row[1], state=row[2], since=row[3])


def begin_move(conn: Connection, move: str, target: str) -> None:
    ground(conn.dialect.name).make_away_tables(conn)
    row = f"1, '{move}', {_text(target)}, 'tracking', {conn.now()}"
    conn.raw.execute(f"insert into move_out(id, move, target, state, since) values({row})")


def track(conn: Connection, kept: Kept, target: str) -> None:
    ground(conn.dialect.name).track(conn, kept, refusal(target))


def refusal(target: str) -> str:
    return f"{StoreMoved.told}{target}: set EVERKEPT_DATABASE_URL to that; here it is only read"


def set_state(conn: Connection, state: str) -> None:
    conn.raw.execute(f"update move_out set state = '{state}'")


def touched(conn: Connection, limit: int = KEYS_AT_ONCE) -> Touched:
    rows = conn.raw.execute(f"select number, name, key from move_touched order by number limit {limit}").fetchall()
    keys: dict[str, dict[Key, None]] = {}
    for _, name, key in rows:
        keys.setdefault(name, {})[tuple(json.loads(key))] = None
    return Touched(numbers=tuple(row[0] for row in rows), keys=keys)


def waiting_keys(conn: Connection, names: Collection[str]) -> dict[str, set[Key]]:
    """{kind of rows: keys that were written and wait to follow}."""
    asked = ", ".join(f"'{name}'" for name in names)
    keys: dict[str, set[Key]] = {}
    for name, key in conn.raw.execute(
        f"select distinct name, key from move_touched where name in ({asked})"
    ).fetchall():
        keys.setdefault(name, set()).add(tuple(json.loads(key)))
    return keys


def count_touched(conn: Connection) -> int:
    return int(conn.raw.execute("select count(*) from move_touched").fetchone()[0])


def forget_touched(conn: Connection, numbers: Collection[int]) -> None:
    if numbers:
        conn.raw.execute(f"delete from move_touched where number in ({', '.join(map(str, numbers))})")


def end_move(conn: Connection, kept: Sequence[Kept]) -> None:
    """As if none had been begun."""
    ground(conn.dialect.name).untrack(conn, kept)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
