"""The store: `await store.write(fn, …)` and `await store.read(fn, …)` over plain synchronous functions."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import structlog

from everkept.errors import EverkeptError, StoreUnavailable
from everkept.ports.clock import Clock, SystemClock
from everkept.ports.faults import Faults, NoFaults
from everkept.store.bell import Bell
from everkept.store.connection import Connection
from everkept.store.database import Database
from everkept.store.lookups import Lookups
from everkept.store.reach import Across, Reach
from everkept.store.sqlite_database import SqliteDatabase
from everkept.store.writer import Writer

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A", bound=Hashable)
READERS = 4
log = structlog.get_logger("everkept.store")


class Store:
    """A writer with group commit, and readers that each see one snapshot, over one database.

    With `threads=False` everything runs in the caller's thread, one step at a time: what the simulations use.
    """

    def __init__(
        self, place: Path | Database, *, clock: Clock | None = None, faults: Faults | None = None, threads: bool = True,
        connect: Callable[[Path, bool], Any] | None = None,
    ) -> None:  # fmt: skip
        self.database: Database = SqliteDatabase(place, connect) if isinstance(place, Path) else place
        self.clock = clock or SystemClock()
        self.faults = faults or NoFaults()
        self._threads = threads
        self._local = threading.local()
        self._readers: list[Connection] = []
        self._readers_lock = threading.Lock()
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="everkept-reader") if threads else None
        self.on_due: Callable[[int], None] = lambda _due_at_us: None
        """Called after a commit that scheduled work, with the earliest due time. Only shortens a poll."""
        self.bell = Bell()
        self._lookups = Lookups()
        self.writer = Writer(
            self._write_connection, self.faults, transactions=self.database.transactions(),
            translate=self.database.translate,
        )  # fmt: skip
        self._closed = threading.Event()
        self._reach: Reach = Across.EVERYTHING
        self._deafen: Callable[[], None] = lambda: None

    @property
    def path(self) -> Path | None:
        """The file, where it is one."""
        return self.database.path

    # ---- life

    def open(self) -> None:
        """Make or upgrade the schema, then start the writer.

        A store that can be read and not written (a full disk, a read-only place) is opened: reads answer, and each
        write raises StoreFull until one can be made. Raises StoreNotSupported, StoreUnavailable, StoreFull.
        """
        try:
            self.database.prepare(self.clock)
        except EverkeptError as error:
            if not isinstance(error, StoreUnavailable) or not self.database.is_readable():
                raise
            self.writer.failing = error.message
            log.warning("the store cannot be written; it is only read until it can", error=error.message)
        if self._threads:
            self.writer.start()
            self._deafen = self.database.listen(changed=self.bell.ring, due=lambda at_us: self.on_due(at_us))

    def failing(self) -> str | None:
        """Why what is accepted next may not be written; None while there is no reason to think so."""
        told = self.database.failing()
        return self.writer.failing or told

    def close(self) -> None:
        if self._closed.is_set():
            return
        self._closed.set()
        self._deafen()
        if self._pool is not None:
            self._pool.shutdown(wait=True)
        with self._readers_lock:
            for connection in self._readers:
                connection.raw.close()
            self._readers.clear()
        self.writer.close()

    def _write_connection(self) -> Connection:
        connection = self._connection(self.database.connect(read_only=False))
        connection.on_due = lambda due_at_us: self.on_due(due_at_us)
        connection.on_change = self.bell.ring
        connection.shares, connection.overlaps = self.writer.share, self.writer.overlap
        return connection

    def _connection(self, raw: Any) -> Connection:
        return Connection(raw, self.database.dialect, self.database.clock(raw, self.clock))

    # ---- work

    def reaching(self, reach: Reach) -> Store:
        """This store, for transactions that reach so far: into a project by its id, or across them.

        As it is opened it reaches everything, which is right for all that names no project, and the slowest.
        """
        reaching = copy.copy(self)
        reaching._reach = reach
        return reaching

    async def write(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kw: P.kwargs) -> R:
        """Run `function` in the writer's next transaction; returns once it is durable."""
        assert not kw, "store functions are called with positional arguments"
        if self._threads:
            result: R = await self.writer.ask(function, *args, reach=self._reach)
            return result
        return self.write_now(function, *args)

    async def write_item(self, function: Callable[[Connection, list[Any]], list[Any]], item: Any) -> Any:
        """Run a set-wise function with `item` among all that wait for it; that item's own result."""
        if self._threads:
            return await self.writer.ask(function, item, reach=self._reach)
        return self.write_now(function, item)

    def write_now(self, function: Callable[..., R], *args: Any, urgent: bool = False) -> R:
        """As `write`, for a thread of its own: blocks until durable. `urgent` goes to the head of the queue."""
        future = self.writer.submit(function, *args, urgent=urgent, reach=self._reach)
        if not self._threads:
            self.writer.step()
        result: R = future.result()
        return result

    async def read(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kw: P.kwargs) -> R:
        """Run `function` over one snapshot. It must not write."""
        if self._pool is None:
            return self._read(function, *args, **kw)
        self._require_open()
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: self._read(function, *args, **kw))

    async def glance(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kw: P.kwargs) -> R:
        """As `read`, for a row or two by their key: in the loop's own thread, which saves the hop to another.

        Where a read may have to wait it makes the hop.
        """
        if self.database.reads_wait:
            return await self.read(function, *args, **kw)
        self._require_open()
        return self._read(function, *args, **kw)

    async def look_up(self, function: Callable[[Connection, A], R], asked: A) -> R:
        """As `glance`, for what every request asks first: those who ask the same at once share the way to a server."""
        if not self.database.reads_wait:
            return await self.glance(function, asked)
        found: R = await self._lookups.look_up((function, asked, self._reach), lambda: self.read(function, asked))
        return found

    def read_now(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kw: P.kwargs) -> R:
        """As `read`, for a thread of its own: blocks. One of the readers reads, so that there are never more of them
        than `READERS`, however many threads ask."""
        if self._pool is None:
            return self._read(function, *args, **kw)
        self._require_open()
        return self._pool.submit(lambda: self._read(function, *args, **kw)).result()

    def _require_open(self) -> None:
        if self._closed.is_set():
            raise StoreUnavailable("the store is closed")

    def _read(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kw: P.kwargs) -> R:
        try:
            connection = self._reader()
            try:
                self.database.begin_read(connection.raw, self._reach)
                return function(connection, *args, **kw)
            finally:
                self._leave(connection)
        except Exception as error:
            raise self.database.translate(error) from error

    def _reader(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._open_reader()
        return connection

    def _open_reader(self) -> Connection:
        """This thread's own from now on; where it can only be had otherwise, for one read."""
        try:
            connection = self._connection(self.database.connect(read_only=True))
        except Exception as error:  # noqa: BLE001  (which ones there is a way around is the database's to say)
            return self._connection(self.database.connect_once(error))
        self._local.connection = connection
        with self._readers_lock:
            self._readers.append(connection)
        return connection

    def _leave(self, connection: Connection) -> None:
        if connection is not getattr(self._local, "connection", None):
            connection.raw.close()
            return
        if self.database.is_usable(connection.raw):
            self.database.end_read(connection.raw)
            return
        del self._local.connection  # the next read opens another
        with self._readers_lock:
            self._readers.remove(connection)
        connection.raw.close()
