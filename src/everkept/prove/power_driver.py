"""The part of Python's `sqlite3` that Everkept uses, over apsw and the recording disk. Needs apsw.

This module stands where `sqlite3` does, so that store, jobs, backups and migrations run unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from sqlite3 import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from typing import Any, Final

import apsw

from everkept.prove.power_vfs import VFS
from everkept.store.sqlite import Driver

__all__ = [
    "connect", "sqlite_version", "Connection", "Cursor", "Warning", "Error", "InterfaceError", "DatabaseError",
    "DataError", "OperationalError", "IntegrityError", "InternalError", "ProgrammingError", "NotSupportedError",
]  # fmt: skip
Row = tuple[Any, ...]
Values = Sequence[Any] | Mapping[str, Any]
sqlite_version: Final = apsw.sqlite_lib_version()
_OTHER_THAN_OPERATIONAL: Final[Mapping[int, type[Exception]]] = {
    apsw.SQLITE_CORRUPT: DatabaseError,
    apsw.SQLITE_NOTADB: DatabaseError,
    apsw.SQLITE_TOOBIG: DataError,
    apsw.SQLITE_CONSTRAINT: IntegrityError,
    apsw.SQLITE_MISMATCH: IntegrityError,
    apsw.SQLITE_MISUSE: InterfaceError,
    apsw.SQLITE_RANGE: InterfaceError,
    apsw.SQLITE_INTERNAL: InternalError,
    apsw.SQLITE_NOMEM: MemoryError,
}
"""As `sqlite3` sorts the codes of SQLite."""


def driver(*, wal: bool) -> Driver:
    """This module as the store's driver; without `wal` it is treated as a library that is too old for one."""
    return Driver(sys.modules[__name__], sqlite_version, wal=wal)


def connect(database: str, *, timeout: float = 5.0, uri: bool = False, **_mode: Any) -> Connection:
    """As `sqlite3.connect`, always in autocommit and for any thread; the file is reached through the recording disk."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | (apsw.SQLITE_OPEN_URI if uri else 0)
    with _our_errors():
        raw = apsw.Connection(database, flags=flags, vfs=VFS)
    raw.set_busy_timeout(int(timeout * 1000))
    return Connection(raw)


class Connection:
    Warning, Error, InterfaceError, DatabaseError = Warning, Error, InterfaceError, DatabaseError
    DataError, OperationalError, IntegrityError = DataError, OperationalError, IntegrityError
    InternalError, ProgrammingError, NotSupportedError = InternalError, ProgrammingError, NotSupportedError
    isolation_level: str | None = None

    def __init__(self, raw: apsw.Connection) -> None:
        self._raw = raw

    @property
    def in_transaction(self) -> bool:
        return self._raw.in_transaction

    @property
    def total_changes(self) -> int:
        return self._raw.total_changes()

    def cursor(self) -> Cursor:
        return Cursor(self._raw)

    def execute(self, sql: str, values: Values = ()) -> Cursor:
        return self.cursor().execute(sql, values)

    def executemany(self, sql: str, rows: Sequence[Values]) -> Cursor:
        return self.cursor().executemany(sql, rows)

    def create_function(
        self, name: str, narg: int, func: Callable[..., Any], *, deterministic: bool = False
    ) -> None:  # fmt: skip
        self._raw.create_scalar_function(name, func, narg, deterministic=deterministic)

    def commit(self) -> None:
        if self.in_transaction:
            self.execute("commit")

    def rollback(self) -> None:
        if self.in_transaction:
            self.execute("rollback")

    def close(self) -> None:
        with _our_errors():
            self._raw.close(force=True)


class Cursor:
    """Reads all rows at once, so that no statement is left unfinished behind it."""

    arraysize = 1

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._rows: Iterator[Row] = iter(())
        self.description: tuple[Row, ...] | None = None
        self.rowcount = -1

    @property
    def lastrowid(self) -> int:
        return self._connection.last_insert_rowid()

    def execute(self, sql: str, values: Values = ()) -> Cursor:
        self._run(sql, [values])
        return self

    def executemany(self, sql: str, rows: Sequence[Values]) -> Cursor:
        self._run(sql, rows)
        return self

    def _run(self, sql: str, rows: Sequence[Values]) -> None:
        self._rows, self.description, self.rowcount = iter(()), None, -1
        found: list[Row] = []
        changed = 0
        with _our_errors(), closing(self._connection.cursor()) as cursor:
            cursor.exec_trace = self._begins
            for values in rows:
                cursor.execute(sql, values)
                found += cursor
                changed += self._connection.changes()
        self._rows = iter(found)
        if self.description is None:
            self.rowcount = changed

    def _begins(self, cursor: Any, _sql: str, _values: Any) -> bool:
        """Asked here, because apsw forgets the columns once the last row was read."""
        columns = cursor.get_description()
        self.description = tuple((name, None, None, None, None, None, None) for name, _ in columns) or None
        return True

    def __iter__(self) -> Iterator[Row]:
        return self._rows

    def fetchone(self) -> Row | None:
        return next(self._rows, None)

    def fetchmany(self, size: int = 1) -> list[Row]:
        return list(islice(self._rows, size))

    def fetchall(self) -> list[Row]:
        return list(self._rows)

    def close(self) -> None:
        self._rows = iter(())


@contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        code = getattr(error, "result", apsw.SQLITE_ERROR)
        raise _OTHER_THAN_OPERATIONAL.get(code, OperationalError)(str(error)) from error
