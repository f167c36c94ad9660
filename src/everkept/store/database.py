"""What the store asks of a database beside statements: connections, transactions, its schema and its errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy.engine import Dialect

from everkept.ports.clock import Clock
from everkept.store.connection import Connection
from everkept.store.reach import Across, Reach
from everkept.store.transactions import Transactions


class Database(Protocol):
    """One SQLite file, or one PostgreSQL database."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def name(self) -> str:
        """Where it is: a file's path, or a URL without its password."""
        ...

    @property
    def path(self) -> Path | None:
        """The file, where it is one."""
        ...

    @property
    def reads_wait(self) -> bool:
        """Whether a writer or the network may hold a read up: then it is never made in an event loop's thread."""
        ...

    @property
    def degraded(self) -> str | None:
        """Why it works more slowly than it could, or None."""
        ...

    @property
    def conflicts(self) -> int:
        """Transactions of this process that the database ended because of another one; always 0 in a file."""
        ...

    @property
    def deaf(self) -> str | None:
        """Why commits of other processes are not heard here, or None: then they are found by polls alone."""
        ...

    def prepare(self, clock: Clock) -> None:
        """Make the schema, or bring it up to date where that may be done unasked.

        Raises StoreNotSupported, StoreUnavailable, StoreFull.
        """
        ...

    def require_schema(self) -> None:
        """Change nothing. Raises StoreNotSupported where it has not this program's schema, and the driver's errors."""
        ...

    def is_readable(self) -> bool:
        """Whether there is a store of this program's schema; asked where `prepare` could not write."""
        ...

    def connect(self, *, read_only: bool) -> Any:
        """The driver's connection, in autocommit: transactions are begun and ended by statements."""
        ...

    def connect_once(self, error: Exception) -> Any:
        """A connection for one read where `connect` raised `error`. Raises it where there is no such way."""
        ...

    def clock(self, raw: Any, clock: Clock) -> Clock:
        """The one that comparisons on this connection use; `clock` is this machine's."""
        ...

    def begin_read(self, raw: Any, reach: Reach = Across.EVERYTHING) -> None:
        """One snapshot from here on, of what is reached."""
        ...

    def end_read(self, raw: Any) -> None: ...

    def is_usable(self, raw: Any) -> bool:
        """Whether the connection can begin another transaction: a server that restarted has ended it."""
        ...

    def transactions(self) -> Transactions:
        """For a writer's connection."""
        ...

    def listen(self, *, changed: Callable[[int], None], due: Callable[[int], None]) -> Callable[[], None]:
        """Call these after commits of other processes, from a thread: with a project, with a moment. How to end it."""
        ...

    def translate(self, error: Exception) -> Exception:
        """The driver's error as one of ours; ours and programming errors come back as they are."""
        ...

    def failing(self) -> str | None:
        """Why what is written next may not be, as far as can be told without writing."""
        ...


@contextmanager
def reading(database: Database, clock: Clock) -> Iterator[Connection]:
    """One snapshot of a store that no process here has open. Raises StoreNotSupported, StoreUnavailable."""
    try:
        database.require_schema()
        raw = database.connect(read_only=True)
        try:
            conn = Connection(raw, database.dialect, database.clock(raw, clock))
            database.begin_read(raw)
            yield conn
        finally:
            raw.close()
    except Exception as error:
        raise database.translate(error) from error
