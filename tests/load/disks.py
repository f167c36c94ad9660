"""Disks that fill and empty under a running process, and places that can only be read.

`LimitedFiles` works on every Linux: the kernel refuses a process every write past the first bytes of a file, so no page
and no frame of a store can be written. `Tmpfs` is a real file system of a few megabytes, where one may be mounted.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TMPFS_BYTES = 24 << 20
_CHUNK = 4096
_REFUSED_FROM = 4096
"""Bytes into a file: no page and no frame of a store fits below."""


class Disk(ABC):
    """Where a process keeps its files."""

    def __init__(self, place: Path) -> None:
        self.place = place

    @abstractmethod
    def fill(self, pid: int) -> None:
        """From now on the process cannot write anything new to the place."""

    @abstractmethod
    def free(self, pid: int) -> None:
        """From now on it can again."""

    @contextmanager
    def full(self, pid: int) -> Iterator[None]:
        self.fill(pid)
        try:
            yield
        finally:
            self.free(pid)


class LimitedFiles(Disk):
    def fill(self, pid: int) -> None:
        import resource  # which Windows has not

        resource.prlimit(pid, resource.RLIMIT_FSIZE, (_REFUSED_FROM, resource.RLIM_INFINITY))

    def free(self, pid: int) -> None:
        import resource

        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class Tmpfs(Disk):
    @property
    def _ballast(self) -> Path:
        return self.place / "ballast"

    def fill(self, pid: int = 0) -> None:
        self.leave(0)

    def leave(self, room_bytes: int) -> None:
        """Fill all but this much."""
        with self._ballast.open("ab", buffering=0) as file:
            while True:
                try:
                    file.write(bytes(_CHUNK))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    break
            file.truncate(max(0, file.tell() - room_bytes))

    def free(self, pid: int = 0) -> None:
        self._ballast.unlink(missing_ok=True)


@contextmanager
def tmpfs(place: Path, size_bytes: int = TMPFS_BYTES) -> Iterator[Tmpfs]:
    place.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(place))
    try:
        yield Tmpfs(place)
    finally:
        _run("umount", "--lazy", str(place))


def can_mount() -> bool:
    """Root in a container may often mount nothing; tried in a namespace of its own, which leaves nothing behind."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    tried = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


@contextmanager
def only_read(path: Path) -> Iterator[None]:
    """A folder or a file that nobody can write: root, whom no mode binds, gets it mounted so. See `can_bind`."""
    if os.geteuid() == 0:
        _run("mount", "--bind", str(path), str(path))
        _run("mount", "-o", "remount,bind,ro", str(path))
        try:
            yield
        finally:
            _run("umount", "--lazy", str(path))
        return
    mode = path.stat().st_mode
    path.chmod(mode & ~0o222)
    try:
        yield
    finally:
        path.chmod(mode)


def can_bind() -> bool:
    return os.geteuid() != 0 or can_mount()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
