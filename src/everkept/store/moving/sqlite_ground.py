"""`ground.Ground` of a SQLite file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from everkept.store.connection import Connection
from everkept.store.migrate import revision
from everkept.store.moving.ground import AWAY_TABLES
from everkept.store.moving.kept import Kept

_KEYS: Final = {"insert": ("new",), "update": ("old", "new"), "delete": ("old",)}


class SqliteGround:
    def make_away_tables(self, conn: Connection) -> None:
        conn.raw.execute(
            "create table if not exists move_out(id integer primary key check (id = 1), move text not null,"
            " target text not null, state text not null, since integer not null)"
        )
        # A number is never given out twice: a mover that was slow could else take back a key that came after.
        conn.raw.execute(
            "create table if not exists move_touched(number integer primary key autoincrement, name text not null,"
            " key text not null)"
        )

    def track(self, conn: Connection, kept: Kept, refusal: str) -> None:
        table, keys = kept.place("sqlite")
        quoted = refusal.replace("'", "''")
        for event, images in _KEYS.items():
            touched = " union ".join(f"select '{kept.name}', json_array({_of(image, keys)})" for image in images)
            conn.raw.execute(
                f'create trigger if not exists move_touch_{kept.name}_{event} after {event} on "{table}" begin'
                f" select raise(abort, '{quoted}') from move_out where state = 'moved';"
                f" insert into move_touched(name, key) {touched}; end"
            )

    def untrack(self, conn: Connection, kept: Sequence[Kept]) -> None:
        for each in kept:
            for event in _KEYS:
                conn.raw.execute(f"drop trigger if exists move_touch_{each.name}_{event}")
        for table in AWAY_TABLES:
            conn.raw.execute(f"drop table if exists {table}")

    def hold(self, conn: Connection, kept: Sequence[Kept]) -> None:
        """A file has one lock, and the transaction has it."""

    def set_up(self, raw: Any) -> None:
        raw.execute("pragma foreign_keys = off")

    def make_in_tables(self, conn: Connection) -> None:
        conn.raw.execute(
            "create table move_in(id integer primary key check (id = 1), move text not null, source text not null,"
            " stage text not null, run text not null)"
        )
        conn.raw.execute(
            "create table move_progress(name text primary key, after text, rows integer not null,"
            " done integer not null)"
        )

    def loosen(self, conn: Connection) -> None:
        """References are off for the connection, and a unique value goes to the row that came last."""

    def tighten(self, conn: Connection) -> None:
        return None

    def bind(self, conn: Connection) -> None:
        return None

    def prove(self, conn: Connection) -> None:
        return None

    def empty(self, conn: Connection) -> None:
        from everkept.store.tables import metadata

        conn.raw.execute("delete from passage_text")
        for table in metadata.sorted_tables:
            conn.raw.execute(f'delete from "{table.name}"')
        conn.raw.execute("delete from sqlite_sequence")

    def stamp(self, conn: Connection, schema: int) -> None:
        conn.raw.execute("update alembic_version set version_num = ?", (revision(schema),))
        conn.raw.execute(f"pragma user_version = {schema}")

    def has_table(self, conn: Connection, name: str) -> bool:
        asked = "select 1 from sqlite_master where type = 'table' and name = ?"
        return conn.raw.execute(asked, (name,)).fetchone() is not None

    def hurry_not(self, conn: Connection) -> None:
        return None

    def numbers(self, conn: Connection, tables: Sequence[str]) -> dict[str, int]:
        given = dict(conn.raw.execute("select name, seq from sqlite_sequence").fetchall())
        return {table: int(given.get(table, 0)) for table in tables}

    def set_numbers(self, conn: Connection, numbers: Mapping[str, int]) -> None:
        for table, last in numbers.items():
            conn.raw.execute("delete from sqlite_sequence where name = ?", (table,))
            if last:
                conn.raw.execute("insert into sqlite_sequence(name, seq) values(?, ?)", (table, last))


def _of(image: str, keys: Sequence[str]) -> str:
    return ", ".join(f'{image}."{key}"' for key in keys)
