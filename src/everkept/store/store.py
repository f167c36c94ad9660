"""The store: `await store.write(fn, …)` and `await store.read(fn, …)` over plain synchronous functions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from everkept.errors import StoreUnavailable
from everkept.ports.clock import Clock, SystemClock
from everkept.ports.faults import Faults, NoFaults
from everkept.store.connection import Connection
from everkept.store.dialect import sqlite_dialect
from everkept.store.migrate import upgrade
from everkept.store.sqlite import choose_driver, open_file, refuse_network, translate
from everkept.store.writer import Writer

P = ParamSpec("P")
R = TypeVar("R")
READERS = 4


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
        self.writer = Writer(self._write_connection, self.faults, wal_bytes=self._wal_bytes)
        self._wal = Path(f"{path}-wal")
        self._closed = False

    # ---- life

    def open(self) -> None:
        """Make or upgrade the schema, then start the writer. Raises StoreNotSupported, StoreUnavailable, StoreFull."""
        refuse_network(self.path)
        try:
            connection = self._write_connection()
            try:
                upgrade(connection, self.path)
            finally:
                connection.raw.close()
        except Exception as error:
            raise translate(error) from error
        if self._threads:
            self.writer.start()

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
                if connection.raw.in_transaction:
                    connection.raw.execute("rollback")
        except Exception as error:
            raise translate(error) from error

    def _reader(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = Connection(self._open_raw(self.path, True), self._dialect, self.clock)
            self._local.connection = connection
            with self._readers_lock:
                self._readers.append(connection)
        return connection
