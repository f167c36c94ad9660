"""The store: `await store.write(fn, …)` and `await store.read(fn, …)` over plain synchronous functions."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import structlog

from everkept.errors import EverkeptError, StoreFull, StoreUnavailable
from everkept.ports.clock import Clock, SystemClock
from everkept.ports.faults import Faults, NoFaults
from everkept.store.bell import Bell
from everkept.store.connection import Connection
from everkept.store.dialect import sqlite_dialect
from everkept.store.migrate import SCHEMA, read_schema, upgrade
from everkept.store.sqlite import choose_driver, open_file, open_frozen, refuse_network, translate
from everkept.store.writer import Writer

P = ParamSpec("P")
R = TypeVar("R")
READERS = 4
ROOM_BYTES = 4 << 20
"""With less than this left on the disk a batch of long messages may not fit, so the disk is called full."""
log = structlog.get_logger("everkept.store")


class Store:
    """One SQLite file: a writer thread with group commit, and read-only connections that each see one snapshot.

    With `threads=False` everything runs in the caller's thread, one step at a time: what the simulations use.
    """

    def __init__(
        self, path: Path, *, clock: Clock | None = None, faults: Faults | None = None, threads: bool = True,
        connect: Callable[[Path, bool], Any] | None = None,
    ) -> None:  # fmt: skip
        self.path = path
        self.clock = clock or SystemClock()
        self.faults = faults or NoFaults()
        self.driver = choose_driver()
        self._dialect = sqlite_dialect()
        self._threads = threads
        self._open_raw = connect or (lambda p, read_only: open_file(self.driver, p, read_only=read_only))
        self._local = threading.local()
        self._readers: list[Connection] = []
        self._readers_lock = threading.Lock()
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="everkept-reader") if threads else None
        self.on_due: Callable[[int], None] = lambda _due_at_us: None
        """Called after a commit that scheduled work, with the earliest due time. Only shortens a poll."""
        self.bell = Bell()
        self.writer = Writer(self._write_connection, self.faults, wal_bytes=self._wal_bytes)
        self._wal = Path(f"{path}-wal")
        self._closed = False

    # ---- life

    def open(self) -> None:
        """Make or upgrade the schema, then start the writer.

        A store that can be read and not written (a full disk, a read-only place) is opened: reads answer, and each
        write raises StoreFull until one can be made. Raises StoreNotSupported, StoreUnavailable, StoreFull.
        """
        refuse_network(self.path)
        try:
            self._upgrade()
        except EverkeptError as error:
            if not isinstance(error, StoreUnavailable) or not self._can_be_read():
                raise
            self.writer.failing = error.message
            log.warning("the store cannot be written; it is only read until it can", error=error.message)
        if self._threads:
            self.writer.start()

    def _upgrade(self) -> None:
        try:
            connection = self._write_connection()
            try:
                upgrade(connection, self.path)
            finally:
                connection.raw.close()
        except Exception as error:
            ours = translate(error)
            if isinstance(ours, StoreUnavailable):
                raise type(ours)(f"{self.path}: {ours.message}", path=str(self.path)) from error
            raise ours from error

    def _can_be_read(self) -> bool:
        """Whether there is a store of this program's schema."""
        try:
            return self.path.stat().st_size > 0 and self.read_now(lambda c: read_schema(c.raw, self.path)) == SCHEMA
        except (OSError, EverkeptError):
            return False

    def failing(self) -> str | None:
        """Why what is accepted next may not be written; None while there is no reason to think so."""
        try:
            left = shutil.disk_usage(self.path.parent).free
        except OSError as error:
            return str(translate(error))
        if left < ROOM_BYTES:
            return self.writer.failing or f"the disk is full: {left >> 10:,} KB are left; free space on it"
        return self.writer.failing

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=True)
        with self._readers_lock:
            for connection in self._readers:
                connection.raw.close()
            self._readers.clear()
        self.writer.close()

    def _write_connection(self) -> Connection:
        connection = Connection(self._open_raw(self.path, False), self._dialect, self.clock)
        connection.on_due = lambda due_at_us: self.on_due(due_at_us)
        connection.on_change = self.bell.ring
        return connection

    def _wal_bytes(self) -> int:
        try:
            return self._wal.stat().st_size
        except OSError:
            return 0

    # ---- work

    async def write(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kw: P.kwargs) -> R:
        """Run `function` in the writer's next transaction; returns once it is durable."""
        assert not kw, "store functions are called with positional arguments"
        if self._threads:
            result: R = await self.writer.ask(function, *args)
            return result
        return self.write_now(function, *args)

    async def write_item(self, function: Callable[[Connection, list[Any]], list[Any]], item: Any) -> Any:
        """Run a set-wise function with `item` among all that wait for it; that item's own result."""
        return await self.writer.ask(function, item) if self._threads else self.write_now(function, item)

    def write_now(self, function: Callable[..., R], *args: Any, urgent: bool = False) -> R:
        """As `write`, for a thread of its own: blocks until durable. `urgent` goes to the head of the queue."""
        future = self.writer.submit(function, *args, urgent=urgent)
        if not self._threads:
            self.writer.step()
        result: R = future.result()
        return result

    async def read(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kw: P.kwargs) -> R:
        """Run `function` over one snapshot. It must not write."""
        if self._pool is None:
            return self.read_now(function, *args, **kw)
        if self._closed:
            raise StoreUnavailable("the store is closed")
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, lambda: self.read_now(function, *args, **kw)
        )

    async def glance(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kw: P.kwargs) -> R:
        """As `read`, for a row or two by their key: in the loop's own thread, which saves the hop to another.

        Where a writer can hold readers up (no WAL) it makes the hop.
        """
        if not self.driver.wal:
            return await self.read(function, *args, **kw)
        if self._closed:
            raise StoreUnavailable("the store is closed")
        return self.read_now(function, *args, **kw)

    def read_now(self, function: Callable[Concatenate[Connection, P], R], *args: P.args, **kw: P.kwargs) -> R:
        try:
            connection = self._reader()
            connection.raw.execute("begin")
            try:
                return function(connection, *args, **kw)
            finally:
                self._leave(connection)
        except Exception as error:
            raise translate(error) from error

    def _reader(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._open_reader()
        return connection

    def _open_reader(self) -> Connection:
        """This thread's own from now on; where it can only be had frozen, for one read."""
        try:
            connection = Connection(self._open_raw(self.path, True), self._dialect, self.clock)
        except Exception as error:
            if not isinstance(translate(error), StoreFull):
                raise
            return Connection(open_frozen(self.driver, self.path), self._dialect, self.clock)
        self._local.connection = connection
        with self._readers_lock:
            self._readers.append(connection)
        return connection

    def _leave(self, connection: Connection) -> None:
        if connection is not getattr(self._local, "connection", None):
            connection.raw.close()
        elif connection.raw.in_transaction:
            connection.raw.execute("rollback")
