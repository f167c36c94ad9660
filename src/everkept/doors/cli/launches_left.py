"""What a launch leaves on disk while it runs, so that a later one can pick up the rest of one that was killed.

One file a launch in `launches/` of the home. Whoever runs the launch holds a lock on it, which the system frees when
that process dies; a file whose lock is free belongs to a dead one.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from everkept.doors.cli import screen
from everkept.ports.file_locks import try_lock

ROOM_BYTES: Final = 4_096
"""Taken at once, so that what is noted later needs no more of the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A launch and the agent that was started for it."""

    launch: str
    project: str
    agent: str
    owner: str
    key: str
    asked_workstream: str | None
    asked_agent: str | None
    available: list[str]
    """Of its `prepare`, which is asked again in the same words."""
    fence: int
    directory: str
    started_at_us: int
    pid: int
    """Of the agent; 0 until it is started."""


class Mark:
    """The file of one launch, locked by this process."""

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file = file

    def write(self, running: Running) -> None:
        """Over what is there, never shorter: killed at any moment it leaves what can be read. Raises OSError."""
        data = json.dumps(asdict(running)).encode().ljust(max(ROOM_BYTES, os.fstat(self._file).st_size))
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, data)

    def remove(self) -> None:
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        os.close(self._file)


def mark(home: Path, running: Running) -> Mark:
    """Raises OSError, also where another process has the launch."""
    folder = home / "launches"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{running.launch}.json"
    made = Mark(path, os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
    if not try_lock(made._file):
        made.release()
        raise BlockingIOError(errno.EAGAIN, "another process has this launch", str(path))
    made.write(running)
    return made


def left_behind(home: Path) -> Iterator[tuple[Mark, Running]]:
    """The launches whose process is dead, each locked; whoever takes one removes or releases it."""
    for path in sorted((home / "launches").glob("*.json")):
        try:
            file = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        except OSError:  # another one was faster
            continue
        found = Mark(path, file)
        running = _left_dead(path, file)
        if running is None:
            found.release()
        else:
            yield found, running


def _left_dead(path: Path, file: int) -> Running | None:
    """None where its process lives, or it cannot be read: then it stays, for nobody knows what it stands for."""
    if os.fstat(file).st_size == 0:  # of a launch that is about to begin: a lock would take it from its owner
        return None
    if not try_lock(file):
        return None
    try:
        os.lseek(file, 0, os.SEEK_SET)
        return Running(**json.loads(os.read(file, 65_536)))
    except (ValueError, TypeError, OSError) as error:
        screen.warn(f"{path} cannot be read, and stays; what its launch left is not told: {error}")
        return None


def lives(pid: int) -> bool:
    """Whether there is a process of this number: an agent that outlived what had started it."""
    if pid <= 0 or sys.platform == "win32":  # there it cannot be asked without a signal
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's by now
        return False
    return True
