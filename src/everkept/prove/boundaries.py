"""Every instant at which a process may die: before and after each statement, each change of a folder, each fault point.

After one statement inside a transaction is before the next one: nothing else happens between them, and it counts once.
A kill leaves behind the files as they are, and of those only some instants change a byte; which ones is measured.
Only for a process that was forked to die: it changes the driver's module and the interpreter's audit hooks for good.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from everkept.store.sqlite import choose_driver

_FOLDER_EVENTS = {"os.rename": "rename", "os.link": "link", "os.remove": "remove", "os.mkdir": "mkdir"}


SETTLED_NS = 100_000_000
"""A file that was written longer ago has another time of writing if it is written again: systems count in some ms."""


class Watched:
    """The files of a folder, byte for byte: all that a killed process leaves behind.

    No file is closed before the process ends: closing one would end the locks that SQLite holds on it.
    """

    def __init__(self, folder: Path, beside: Callable[[], int] = lambda: 0) -> None:
        """`beside`: how often something changed that lies elsewhere."""
        self._folder = str(folder)
        self._beside = beside
        self._open: dict[int, int] = {}
        self._settled: dict[tuple[int, int, int], bytes] = {}
        self._last: tuple[int, dict[str, bytes]] | None = None

    def changed(self) -> bool:
        """Whether a byte is another than when this was asked last."""
        now = (self._beside(), dict(self._files(self._folder)))
        changed, self._last = now != self._last, now
        return changed

    def _files(self, folder: str) -> Iterator[tuple[str, bytes]]:
        for entry in os.scandir(folder):
            if entry.is_dir():
                yield entry.path, b""
                yield from self._files(entry.path)
            # The log's index is left out: whoever opens the store first after a death makes it anew from the log.
            elif not entry.name.endswith("-shm"):
                yield entry.path, self._bytes(entry.path)

    def _bytes(self, file: str) -> bytes:
        found = os.stat(file)
        written = (found.st_ino, found.st_size, found.st_mtime_ns)
        if written in self._settled:
            return self._settled[written]
        if found.st_ino not in self._open:
            self._open[found.st_ino] = os.open(file, os.O_RDONLY)
        content = os.pread(self._open[found.st_ino], found.st_size, 0)
        if time.time_ns() - found.st_mtime_ns > SETTLED_NS:
            self._settled[written] = content
        return content


class Boundaries:
    """Counts the instants that this process passes, from 1, and dies at the one it was told to."""

    def __init__(self, die_at: int | None) -> None:
        self._die_at = die_at
        self._watched: Watched | None = None
        self.passed: list[str] = []
        """What each instant was, in order."""
        self.changed: list[int] = []
        """The instants at which the watched files are not what they were at the instant before."""
        self.statements: set[str] = set()
        """Every statement that a connection with the right to write has run, as the driver got it."""

    def watch(self, watched: Watched) -> None:
        """From here on tell which instants are not what the one before was."""
        self._watched = watched

    def reach(self, point: str) -> None:
        """As `ports.faults.Faults`: a fault point is an instant too."""
        self.pass_by(f"at {point}")

    def pass_by(self, what: str) -> None:
        self.passed.append(what)
        if self._watched is not None and self._watched.changed():
            self.changed.append(len(self.passed))
        if len(self.passed) == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def run(self, connection: Any, sql: str, execute: Callable[[], Any]) -> Any:
        self.statements.add(sql)
        name = " ".join(sql[:300].split())[:100]
        self.pass_by(f"before {name}")
        done = execute()
        if not connection.in_transaction:
            self.pass_by(f"after {name}")
        return done


def install(boundaries: Boundaries) -> None:
    """From here on every connection that this process opens, and every file it moves, counts."""
    module: Any = choose_driver().module
    connection = _counting(module, boundaries)
    connect = module.connect
    module.connect = lambda *args, **kw: connect(*args, **{"factory": connection, **kw})

    def notice(event: str, args: tuple[Any, ...]) -> None:
        if event in _FOLDER_EVENTS:
            boundaries.pass_by(f"before {_FOLDER_EVENTS[event]} {os.path.basename(str(args[0]))[:60]}")

    sys.addaudithook(notice)


_READS_ONLY = re.compile(r"\s*pragma query_only = on")


def _counting(module: Any, boundaries: Boundaries) -> Any:
    """The driver's connection, counting. A connection counts from its opening until it may only read."""

    class Cursor(module.Cursor):  # type: ignore[misc]
        def execute(self, sql: str, *args: Any) -> Any:
            if not self.connection.counts:
                return super().execute(sql, *args)
            if _READS_ONLY.match(sql):
                self.connection.counts = False
            return boundaries.run(self.connection, sql, lambda: super(Cursor, self).execute(sql, *args))

        def executemany(self, sql: str, *args: Any) -> Any:
            if not self.connection.counts:
                return super().executemany(sql, *args)
            return boundaries.run(self.connection, sql, lambda: super(Cursor, self).executemany(sql, *args))

        def executescript(self, sql: str) -> Any:
            return boundaries.run(self.connection, sql, lambda: super(Cursor, self).executescript(sql))

    class Connection(module.Connection):  # type: ignore[misc]
        counts = True

        def cursor(self, factory: Any = Cursor) -> Any:
            return super().cursor(factory)

        def execute(self, sql: str, *args: Any) -> Any:
            return self.cursor().execute(sql, *args)

        def executemany(self, sql: str, *args: Any) -> Any:
            return self.cursor().executemany(sql, *args)

        def executescript(self, sql: str) -> Any:
            return self.cursor().executescript(sql)

        def commit(self) -> None:
            boundaries.run(self, "commit()", super().commit)

        def rollback(self) -> None:
            boundaries.run(self, "rollback()", super().rollback)

        def backup(self, *args: Any, **kw: Any) -> None:
            boundaries.run(self, "backup()", lambda: super(Connection, self).backup(*args, **kw))

    return Connection


def mute() -> None:
    """What a dying process would print belongs nowhere."""
    silence = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):
        os.dup2(silence, 1)
        os.dup2(silence, 2)
