"""What a move asks of a database that each says in its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from everkept.store.connection import Connection
from everkept.store.moving.kept import Kept

AWAY_TABLES = ("move_out", "move_touched")
IN_TABLES = ("move_in", "move_progress", "move_loosened")


class Ground(Protocol):
    # ---- of the memory that moves

    def make_away_tables(self, conn: Connection) -> None:
        """`move_out`, one row that says where it moves; `move_touched`, the keys of rows that were written since."""
        ...

    def track(self, conn: Connection, kept: Kept, refusal: str) -> None:
        """From this commit on each written row leaves its key; once the memory has moved, writing raises `refusal`."""
        ...

    def untrack(self, conn: Connection, kept: Sequence[Kept]) -> None: ...

    def hold(self, conn: Connection, kept: Sequence[Kept]) -> None:
        """Nobody writes any of these until this transaction ends."""
        ...

    # ---- of the place it moves into

    def set_up(self, raw: Any) -> None:
        """Of a connection that writes rows before what they refer to."""
        ...

    def make_in_tables(self, conn: Connection) -> None:
        """`move_in`, one row that says what moves in; `move_progress`, how far each kind of rows is."""
        ...

    def loosen(self, conn: Connection) -> None:
        """Watch over no unique value, reference or policy, so that whoever owns the tables can write in any order."""
        ...

    def tighten(self, conn: Connection) -> None:
        """Watch over unique values again, and learn how much there is of what.

        Raises the driver's error where one is there twice.
        """
        ...

    def bind(self, conn: Connection) -> None:
        """Watch over policies again, and over the references of what is written from now on."""
        ...

    def prove(self, conn: Connection) -> None:
        """Look once over the references of what was there before, in no transaction: nobody has to wait."""
        ...

    def empty(self, conn: Connection) -> None:
        """Leave no row."""
        ...

    def stamp(self, conn: Connection, schema: int) -> None:
        """Say which schema this is: programs open none that they do not know."""
        ...

    # ---- of both

    def has_table(self, conn: Connection, name: str) -> bool: ...

    def hurry_not(self, conn: Connection) -> None:
        """In this transaction a statement may take as long as it needs."""
        ...

    def numbers(self, conn: Connection, tables: Sequence[str]) -> dict[str, int]:
        """The last row number that each table has given out; 0 for none."""
        ...

    def set_numbers(self, conn: Connection, numbers: Mapping[str, int]) -> None: ...


def ground(dialect: str) -> Ground:
    if dialect == "sqlite":
        from everkept.store.moving.sqlite_ground import SqliteGround

        return SqliteGround()
    from everkept.store.moving.postgres_ground import PostgresGround

    return PostgresGround()
