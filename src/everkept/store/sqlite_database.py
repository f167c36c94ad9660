"""One SQLite file as a database of the store."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from everkept.errors import EverkeptError, StoreFull, StoreNotSupported, StoreUnavailable
from everkept.ports.clock import Clock
from everkept.store.connection import Connection
from everkept.store.dialect import sqlite_dialect
from everkept.store.migrate import SCHEMA, read_schema, upgrade
from everkept.store.reach import Across, Reach
from everkept.store.sqlite import choose_driver, open_file, open_frozen, refuse_network, translate
from everkept.store.sqlite_transactions import SqliteTransactions

ROOM_BYTES = 4 << 20
"""With less than this left on the disk a batch of long messages may not fit, so the disk is called full."""


class SqliteDatabase:
    """`database.Database`. `connect(path, read_only)` opens the file in another way: what tests put in between."""

    conflicts = 0
    deaf: str | None = None

    def __init__(self, path: Path, connect: Callable[[Path, bool], Any] | None = None) -> None:
        self.path: Path = path
        self.name = str(path)
        self.dialect = sqlite_dialect()
        self.driver = choose_driver()
        self.reads_wait = not self.driver.wal
        self.degraded = self.driver.degraded
        self._open = connect or (lambda p, read_only: open_file(self.driver, p, read_only=read_only))
        self._wal = Path(f"{path}-wal")

    def prepare(self, clock: Clock) -> None:
        refuse_network(self.path)
        try:
            raw = self.connect(read_only=False)
            try:
                upgrade(Connection(raw, self.dialect, clock), self.path)
            finally:
                raw.close()
        except Exception as error:
            ours = translate(error)
            if isinstance(ours, StoreUnavailable):
                raise type(ours)(f"{self.path}: {ours.message}", path=str(self.path)) from error
            raise ours from error

    def require_schema(self) -> None:
        raw = self._for_one_read()
        try:
            if (found := read_schema(raw, self.path)) != SCHEMA:
                raise StoreNotSupported(f"{self.path} has schema {found}, and this Everkept has {SCHEMA}")
        finally:
            raw.close()

    def is_readable(self) -> bool:
        try:
            self.require_schema()
        except (OSError, EverkeptError):
            return False
        return True

    def _for_one_read(self) -> Any:
        try:
            return self.connect(read_only=True)
        except Exception as error:  # noqa: BLE001  (which ones there is a way around is said there)
            return self.connect_once(error)

    def connect(self, *, read_only: bool) -> Any:
        return self._open(self.path, read_only)

    def connect_once(self, error: Exception) -> Any:
        """The file as it is, frozen: where nothing can be written beside it, not even the index of its log."""
        ours = translate(error)
        if not isinstance(ours, StoreFull):
            raise ours from error
        return open_frozen(self.driver, self.path)

    def clock(self, raw: Any, clock: Clock) -> Clock:
        """This machine's: whoever has the file open is on it."""
        return clock

    def begin_read(self, raw: Any, reach: Reach = Across.EVERYTHING) -> None:
        raw.execute("begin")

    def end_read(self, raw: Any) -> None:
        if raw.in_transaction:
            raw.execute("rollback")

    def is_usable(self, raw: Any) -> bool:
        return True

    def transactions(self) -> SqliteTransactions:
        return SqliteTransactions(self._wal_bytes)

    def _wal_bytes(self) -> int:
        try:
            return self._wal.stat().st_size
        except OSError:
            return 0

    def listen(self, *, changed: Callable[[int], None], due: Callable[[int], None]) -> Callable[[], None]:
        """Nothing tells of what other processes commit to a file."""
        return lambda: None

    def translate(self, error: Exception) -> Exception:
        return translate(error)

    def failing(self) -> str | None:
        try:
            left = shutil.disk_usage(self.path.parent).free
        except OSError as error:
            return str(translate(error))
        if left < ROOM_BYTES:
            return f"the disk is full: {left >> 10:,} KB are left; free space on it"
        return None
