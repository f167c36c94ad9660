"""Transactions of SQLite: the write lock, how it is shared with other processes, and checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from everkept.store.reach import Reach

YIELD_S = 0.002
"""How long the lock is left alone after a group while another process writes too (its heartbeat starves without)."""
OTHERS_FOR_S = 30.0
"""For how long another process counts as writing after a commit of its was seen: longer than between two heartbeats."""
LOCK_POLL_S = 0.001
"""Between two tries for the write lock. SQLite's own waiting sleeps up to 100 ms and misses a busy writer's pauses."""
CHECKPOINT_ROWS = 11_000
CHECKPOINT_GROUPS = 64
"""Rows or commits between two checkpoints, whichever comes first: some 6 MB of WAL.

A small commit writes 90 KB, a large one 550 bytes a row, of which a message is five.

The file's size does not tell: a WAL is used again in place.
"""
WAL_BYTES_MAX = 64 << 20


class SqliteTransactions:
    """`transactions.Transactions`. Without `wal_bytes` there is no log to move into the file."""

    def __init__(self, wal_bytes: Callable[[], int] | None = None) -> None:
        self._wal_bytes = wal_bytes
        self._data_version: int | None = None
        self._others_until = 0.0
        self._checkpointed = 0
        self._groups = 0

    def begin(self, raw: Any, reaches: Collection[Reach]) -> None:
        """Raises the driver's error where another process held the lock for all of `busy_timeout`."""
        with _without_waiting(raw) as patience_s:
            deadline = time.monotonic() + patience_s
            while True:
                try:
                    raw.execute("begin immediate")
                except Exception as error:
                    if "database is locked" not in str(error) or time.monotonic() > deadline:
                        raise
                    time.sleep(LOCK_POLL_S)
                else:
                    break
        self._notice_others(raw)

    def mark(self, raw: Any, reaches: Collection[Reach]) -> None:
        raw.execute("savepoint call")

    def together(self, one: Reach, other: Reach) -> bool:
        return True

    def share(self, raw: Any) -> None:
        return None

    def overlap(self, raw: Any) -> AbstractContextManager[None]:
        return nullcontext()

    def is_open(self, raw: Any) -> bool:
        """A full disk rolls the whole transaction back, not the statement."""
        open_: bool = raw.in_transaction
        return open_

    def is_usable(self, raw: Any) -> bool:
        return True

    def tell(self, raw: Any, due: Sequence[int], changed: Sequence[int]) -> None:
        """A file tells nobody: other processes poll."""

    def committed(self) -> None:
        self._groups += 1

    def pause_s(self) -> float:
        return YIELD_S if time.monotonic() < self._others_until else 0.0

    def _notice_others(self, raw: Any) -> None:
        version = raw.execute("pragma data_version").fetchone()[0]
        if self._data_version is not None and version != self._data_version:
            self._others_until = time.monotonic() + OTHERS_FOR_S
        self._data_version = version

    def tidy(self, raw: Any, *, everything: bool = False) -> None:
        """Move the WAL into the file now and then; to its end where it grew past its bound, or at the close."""
        if self._wal_bytes is None:
            return
        few = raw.total_changes - self._checkpointed < CHECKPOINT_ROWS and self._groups < CHECKPOINT_GROUPS
        if few and not everything:
            return
        self._checkpointed, self._groups = raw.total_changes, 0
        mode = "truncate" if everything or self._wal_bytes() > WAL_BYTES_MAX else "passive"
        with _without_waiting(raw):  # a reader's snapshot must not hold every writer up; it is tried again
            raw.execute(f"pragma wal_checkpoint({mode})").fetchall()


@contextmanager
def _without_waiting(raw: Any) -> Iterator[float]:
    """How long the connection waits otherwise, in seconds."""
    patience_ms = raw.execute("pragma busy_timeout").fetchone()[0]
    raw.execute("pragma busy_timeout = 0")
    try:
        yield patience_ms / 1e3
    finally:
        raw.execute(f"pragma busy_timeout = {patience_ms}")
