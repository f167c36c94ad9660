"""Which workers of a home live: each has a file there, locked for as long as its process lives.

What is killed is so known as dead at once by the others of its home, and by its next start; others learn it from three
missed heartbeats. Whoever stands still keeps its lock, and with it what it works at.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import structlog

from everkept.ports.file_locks import try_lock

log = structlog.get_logger("everkept.work")
_MADE: Final = ".made"
"""Ends the name of a file that is not locked yet."""
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


def _machine() -> str:
    """A home may lie on a disk that several machines share, and the locks of the others are none here."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return socket.gethostname()


class Presence:
    """Of the worker `owner`. Where the disk knows no locks, whoever dies is missed by its heartbeats alone."""

    def __init__(self, home: Path, owner: str) -> None:
        self._folder = home / "workers"
        self._file = self._folder / owner
        self._machine = _machine()
        self._held: int | None = None

    def announce(self) -> None:
        """Before the first claim."""
        made = self._folder / f"{self._file.name}{_MADE}"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            log.warning("this worker's death would be noticed late", error=str(error))
            return
        try:
            os.write(file, self._machine.encode())
            if not try_lock(file):
                raise OSError("its lock was taken")
            os.rename(made, self._file)  # nobody finds it before it is locked
        except OSError as error:
            log.warning("this worker's death would be noticed late", error=str(error))
            os.close(file)
            made.unlink(missing_ok=True)
            return
        self._held = file

    def leave(self) -> None:
        """After the last of its leases was given back."""
        if self._held is not None:
            self._file.unlink(missing_ok=True)
            os.close(self._held)
            self._held = None

    def dead(self) -> Iterator[str]:
        """Workers of this home whose processes have ended without a word."""
        try:
            files = sorted(self._folder.iterdir())
        except OSError:
            return
        for path in files:
            if path != self._file and not path.name.endswith(_MADE) and self._is_dead(path):
                yield path.name

    def forget(self, owner: str) -> None:
        (self._folder / owner).unlink(missing_ok=True)

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
