"""What a move takes along: the rows of every table, and of the full-text index, in the same words on both databases.

A row is a tuple of None, bool, int, float, str and bytes; its key is the tuple of its key columns. `digest` is the same
for a row on both databases: a NUL in a text counts as its picture, which is how PostgreSQL keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from hashlib import blake2b
from typing import Any, Final, Protocol

from sqlalchemy import Boolean, Column, Float, LargeBinary, Table

from everkept.store.connection import Connection, Row
from everkept.store.moving.texts import Texts

Key = tuple[Any, ...]
DERIVED: Final = ("workers",)
"""Tables that say something of the processes of a database: they are made again by those of the other one."""
_READ_AS: Final[dict[type[Any], Callable[[Any], Any]]] = {Boolean: bool, Float: float, LargeBinary: bytes}


class Kept(Protocol):
    """The rows of one kind."""

    @property
    def name(self) -> str: ...

    def place(self, dialect: str) -> tuple[str, tuple[str, ...]]:
        """The table whose rows tell when one of these changed, and its key columns."""
        ...

    def key(self, row: Row) -> Key: ...

    def after(self, conn: Connection, key: Key | None, limit: int) -> list[Row]:
        """The next rows in the order of their keys; from the first one without a key."""
        ...

    def at(self, conn: Connection, keys: Sequence[Key]) -> list[Row]:
        """Those of these that there are, in no order."""
        ...

    def put(self, conn: Connection, keys: Sequence[Key], rows: Sequence[Row]) -> None:
        """Leave, of these keys, exactly these rows."""
        ...


class TableRows:
    """`Kept`: the rows of one table of the schema, without what the database computes by itself."""

    def __init__(self, table: Table) -> None:
        self.name = table.name
        columns = [column for column in table.columns if column.computed is None]
        self._columns = ", ".join(f'"{column.name}"' for column in columns)
        self._width = len(columns)
        self._keys = tuple(column.name for column in table.primary_key)
        self._places = tuple(next(n for n, c in enumerate(columns) if c.name == key) for key in self._keys)
        self._read_as = tuple((place, how) for place, column in enumerate(columns) if (how := _how(column)))

    def place(self, dialect: str) -> tuple[str, tuple[str, ...]]:
        return self.name, self._keys

    def key(self, row: Row) -> Key:
        return tuple(row[place] for place in self._places)

    def after(self, conn: Connection, key: Key | None, limit: int) -> list[Row]:
        there = "" if key is None else f"where ({self._key_columns}) > ({_marks(conn, len(self._keys))})"
        asked = f'select {self._columns} from "{self.name}" {there} order by {self._key_columns} limit {limit}'
        return self._read(conn.raw.execute(asked, key or ()).fetchall())

    def at(self, conn: Connection, keys: Sequence[Key]) -> list[Row]:
        if not keys:
            return []
        asked = f'select {self._columns} from "{self.name}" where {self._among(conn, keys)}'
        return self._read(conn.raw.execute(asked, _flat(keys)).fetchall())

    def put(self, conn: Connection, keys: Sequence[Key], rows: Sequence[Row]) -> None:
        if keys:
            conn.raw.execute(f'delete from "{self.name}" where {self._among(conn, keys)}', _flat(keys))
        if rows:
            # On a file a row also takes the place of one that is about to lose a unique value to it; on PostgreSQL such
            # values are not watched over until the copy stands (`ground.loosen`).
            insert = "insert or replace into" if conn.dialect.name == "sqlite" else "insert into"
            put = f'{insert} "{self.name}"({self._columns}) values({_marks(conn, self._width)})'
            conn.raw.cursor().executemany(put, rows)

    @property
    def _key_columns(self) -> str:
        return ", ".join(f'"{key}"' for key in self._keys)

    def _among(self, conn: Connection, keys: Sequence[Key]) -> str:
        one = _marks(conn, len(self._keys))
        if len(self._keys) == 1:
            return f"{self._key_columns} in ({', '.join([one] * len(keys))})"
        return f"({self._key_columns}) in (values {', '.join([f'({one})'] * len(keys))})"

    def _read(self, rows: Iterable[Row]) -> list[Row]:
        if not self._read_as:
            return [tuple(row) for row in rows]
        return [self._typed(row) for row in rows]

    def _typed(self, row: Row) -> Row:
        typed = list(row)
        for place, how in self._read_as:
            if typed[place] is not None:
                typed[place] = how(typed[place])
        return tuple(typed)


def _how(column: Column[Any]) -> Callable[[Any], Any] | None:
    return next((how for kind, how in _READ_AS.items() if isinstance(column.type, kind)), None)


def _marks(conn: Connection, count: int) -> str:
    return ", ".join(["?" if conn.dialect.name == "sqlite" else "%s"] * count)


def _flat(keys: Sequence[Key]) -> Row:
    return tuple(value for key in keys for value in key)


@cache
def everything() -> tuple[Kept, ...]:
    """All there is to move, each after what it refers to."""
    from everkept.store.tables import metadata

    tables = [TableRows(table) for table in metadata.sorted_tables if table.name not in DERIVED]
    return (*tables, Texts())


def counts(conn: Connection, kept: Sequence[Kept]) -> dict[str, int]:
    """{kind of rows: how many}, in one trip."""
    each = (f"select '{k.name}', count(*) from \"{k.place(conn.dialect.name)[0]}\"" for k in kept)
    return {name: int(count) for name, count in conn.raw.execute(" union all ".join(each)).fetchall()}


def numbered_tables() -> tuple[str, ...]:
    """The tables that number their rows by themselves."""
    from everkept.store.tables import metadata

    return tuple(t.name for t in metadata.sorted_tables if t.dialect_options["sqlite"]["autoincrement"])


def canonical(values: Row) -> Row:
    """As both databases have them."""
    return tuple(v.replace("\x00", "\u2400") if isinstance(v, str) else v for v in values)


def digest(row: Row) -> int:
    """128 bits over a row's values and their types; sums of them do not depend on an order."""
    return int.from_bytes(blake2b(repr(canonical(row)).encode("utf-8", "surrogatepass"), digest_size=16).digest())
