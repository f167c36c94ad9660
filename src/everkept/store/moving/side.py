"""One of the two databases of a move: its connection, and transactions on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from everkept.ports.clock import Clock
from everkept.store.connection import Connection
from everkept.store.database import Database
from everkept.store.moving.ground import Ground, ground
from everkept.store.reach import Across


class Side:
    """Every error of its driver comes out as one of ours. `close` takes back what was not committed."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self.name = name_of(database)
        self.ground: Ground = ground(database.dialect.name)
        self._clock = clock
        self._transactions = database.transactions()
        self._connection: Connection | None = None

    def require_schema(self) -> None:
        with self._our_errors():
            self.database.require_schema()

    def open(self) -> None:
        """Again, too."""
        self.close()
        with self._our_errors():
            raw = self.database.connect(read_only=False)
            self.ground.set_up(raw)
            self._connection = Connection(raw, self.database.dialect, self.database.clock(raw, self._clock))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.raw.close()
            self._connection = None

    @property
    def connection(self) -> Connection:
        assert self._connection is not None, "opened first"
        return self._connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One snapshot."""
        with self._our_errors():
            self.database.begin_read(self.connection.raw)
            try:
                yield self.connection
            finally:
                self.database.end_read(self.connection.raw)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction in which nobody else writes; durable at its end, and nothing where it raises."""
        with self._our_errors():
            raw = self.connection.raw
            self._transactions.begin(raw, (Across.EVERYTHING,))
            try:
                yield self.connection
                raw.execute("commit")
            except BaseException:
                if self._transactions.is_open(raw):
                    raw.execute("rollback")
                raise
            self._transactions.committed()
            self._transactions.tidy(raw)

    @contextmanager
    def alone(self) -> Iterator[Connection]:
        """Each statement is a transaction of its own, and holds nobody up."""
        with self._our_errors():
            yield self.connection

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            ours = self.database.translate(error)
            if ours is error:
                raise
            raise ours from error


def name_of(database: Database) -> str:
    """Where it is, whatever folder it is named from and whatever role it is opened as; without a password."""
    if database.path is not None:
        return str(database.path.resolve())
    scheme, named, place = database.name.partition("://")
    host, slash, rest = place.partition("/")
    return f"{scheme}{named}{host.rpartition('@')[2]}{slash}{rest}"
