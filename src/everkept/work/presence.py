"""Which workers of a home live: each has a file there, locked for as long as its process lives.

What is killed is so known as dead by the others of its home, and by its next start; others learn it from three missed
heartbeats. Whoever stands still keeps its lock, and with it what it works at.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from everkept.ports.file_locks import try_lock

log = structlog.get_logger("everkept.work")
KEPT_S: Final = 86_400.0
"""How long the file of a worker is kept that nobody can call dead: of another boot, or of another machine."""
_TRIES: Final = 20
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


def _machine() -> str:
    """A home may lie on a disk that several machines share, and the locks of the others are none here."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return socket.gethostname()


class Presence:
    """Of the worker `owner` of a database. Where the disk knows no locks, its death is told by its heartbeats alone."""

    def __init__(self, home: Path, database: str, owner: str) -> None:
        self._folder = home / "workers" / hashlib.blake2b(database.encode(), digest_size=6).hexdigest()
        self._file = self._folder / owner
        self._machine = _machine()
        self._held: int | None = None

    def announce(self) -> None:
        """Before the first claim."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._tidy()
            self._held = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            self._lock(self._held)
            os.write(self._held, self._machine.encode())  # until then it is nobody's, and nobody is found dead
        except OSError as error:
            log.warning("this worker's death would be noticed late", error=str(error))
            self.leave(signed_off=True)  # it has begun nothing

    def leave(self, *, signed_off: bool) -> None:
        """At its own end. Where it could not sign off its file stays, and others take up what it holds still."""
        if self._held is not None:
            os.close(self._held)  # first: an open file cannot be removed everywhere
            self._held = None
            if signed_off:
                self.forget(self._file.name)

    def dead(self) -> Iterator[str]:
        """Workers of this home that have ended without signing off."""
        for path in self._others():
            if self._is_dead(path):
                yield path.name

    def forget(self, owner: str) -> None:
        with suppress(OSError):
            (self._folder / owner).unlink()

    def _lock(self, file: int) -> None:
        for _ in range(_TRIES):
            if try_lock(file):
                return
            time.sleep(0.01)  # somebody looks whether it is dead
        raise OSError("the lock of its file could not be had")

    def _others(self) -> list[Path]:
        try:
            return sorted(path for path in self._folder.iterdir() if path != self._file)
        except OSError:
            return []

    def _is_dead(self, path: Path) -> bool:
        try:
            file = os.open(path, os.O_RDWR)
        except OSError:
            return False
        try:
            return try_lock(file) and os.read(file, 100).decode(errors="replace") == self._machine
        except OSError:
            return False
        finally:
            os.close(file)

    def _tidy(self) -> None:
        for path in self._others():
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > KEPT_S and self._is_free(path):
                    path.unlink()

    def _is_free(self, path: Path) -> bool:
        """Whether nobody holds it and it is no dead worker's, whose work somebody takes up."""
        file = os.open(path, os.O_RDWR)
        try:
            return try_lock(file) and os.read(file, 100).decode(errors="replace") != self._machine
        finally:
            os.close(file)
