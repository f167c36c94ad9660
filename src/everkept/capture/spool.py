"""The reading side of the hooks' spool, and the lock that keeps one worker awake and no more.

A hook writes one file a record in `tmp/` and renames it into `new/`. Here records are read in the order of their names,
which are their delivery keys, and taken away after the caller's commit; what cannot be read is set aside with the
reason beside it. Nothing else is ever taken away.
"""

from __future__ import annotations

import errno
import json
import os
import re
import time
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from everkept.hook.hook_script import FORMAT, LOCK_FD
from everkept.ports.file_locks import try_lock, unlock

RECORD_BYTES_MAX: Final = 64 * 2**20
HALF_WRITTEN_AFTER_S: Final = 3_600.0
"""A file of this age in `tmp/` belongs to a hook that was killed."""
HALF_WRITTEN_FOR_S: Final = 60.0
"""No hook that lives takes so long."""
HEARD_MAX: Final = 200
"""Records of so many are read to see whose they are."""
_NO_RECORD = frozenset({errno.ELOOP, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOTDIR})
"""What the system says of something that is no file of a hook, and of what no record can name."""
_REASON: Final = ".reason"
_NAME = re.compile(r"(\d{15,25})-\d{1,10}-\d{1,6}\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRecord:
    """One record as a hook wrote it (fields: `everkept.hook.hook_script`)."""

    name: str
    """Its file's name: the delivery key, which is the same however often the record is read."""
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolState:
    """How much waits, and since when."""

    waiting: int
    oldest_at_us: int | None
    """When the oldest waiting record was written, microseconds since 1970."""
    aside: int
    """Files that could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A file that no store takes in, and that may hold what somebody said."""

    path: Path
    fields: Mapping[str, Any] | None
    """Of a record; None where it cannot be read."""


class Unreadable(Exception):
    """Why a file in the spool is no record."""


class Spool:
    """The spool of one home. Any number of readers may work on it; who commits a record takes it away."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._new, self._half, self._aside = (home / "spool" / name for name in ("new", "tmp", "aside"))
        self.unread: dict[str, str] = {}
        """{record: why the machine could not read it at the last look}: it waits."""

    def records(self, limit: int, *, without: Container[str] = (), before: str | None = None) -> list[HookRecord]:
        """At most `limit` records, oldest first, but for those named `without`; only those `before` one of that name.

        Files that are no record are set aside on the way. Raises OSError.
        """
        self.unread = {}
        self._rescue_half_written()
        found: list[HookRecord] = []
        for name in sorted(_names(self._new)):
            if len(found) == limit or (before is not None and name >= before):
                break
            if name in without:
                continue
            if (record := self._read(self._new / name)) is not None:
                found.append(record)
        return found

    def done(self, names: Iterable[str]) -> None:
        """Take records away, after the commit. A crash before this only brings them again, under the same names."""
        for name in names:
            if _NAME.fullmatch(name) is None:
                raise ValueError(f"{name!r} is no record's name")
            (self._new / name).unlink(missing_ok=True)

    def set_aside(self, name: str, reason: str) -> None:
        """Take a record out of the way that will never be taken in, with the reason beside it. Raises OSError."""
        self._set_aside(self._new / name, reason)

    def aside(self) -> list[SetAside]:
        """What was set aside, and what killed hooks left half written. Raises OSError."""
        left = [self._aside / name for name in _names(self._aside) if not name.endswith(_REASON)]
        old = time.time() - HALF_WRITTEN_FOR_S
        half = [self._half / name for name in _names(self._half)]
        return [SetAside(path=path, fields=_fields_of(path)) for path in (*left, *(p for p in half if _older(p, old)))]

    def forget(self, aside: Iterable[SetAside]) -> int:
        """Take these away for good, with their reasons; how many. Raises OSError."""
        count = 0
        for one in aside:
            count += one.path.exists()
            for path in (one.path, one.path.with_name(f"{one.path.name}{_REASON}")):
                path.unlink(missing_ok=True)
        return count

    def names(self) -> frozenset[str]:
        """Of all that waits."""
        return frozenset(_names(self._new))

    def state(self) -> SpoolState:
        names = _names(self._new)
        times = [int(match[1]) // 1_000 for name in names if (match := _NAME.fullmatch(name))]
        aside = sum(not name.endswith(_REASON) for name in _names(self._aside))
        return SpoolState(waiting=len(names), oldest_at_us=min(times, default=None), aside=aside)

    def heard(self) -> dict[str, int]:
        """{agent: when the newest of its records that wait was written}, microseconds, of the newest of all."""
        heard: dict[str, int] = {}
        for name in sorted(_names(self._new), reverse=True)[:HEARD_MAX]:
            fields, match = _fields_of(self._new / name), _NAME.fullmatch(name)
            if match is not None and fields is not None and isinstance(agent := fields.get("agent"), str):
                heard.setdefault(agent, int(match[1]) // 1_000)
        return heard

    def _read(self, path: Path) -> HookRecord | None:
        try:
            return HookRecord(name=path.name, fields=_parse(path))
        except FileNotFoundError:  # another reader was faster
            return None
        except Unreadable as error:
            self._set_aside(path, str(error))
            return None
        except OSError as error:
            if is_of_machine(error):
                self.unread[path.name] = str(error)
            else:
                self._set_aside(path, str(error))
            return None

    def _set_aside(self, path: Path, reason: str) -> None:
        """Out of the way, with the reason in a file beside it. Raises OSError."""
        self._aside.mkdir(mode=0o700, parents=True, exist_ok=True)
        note = self._aside / f"{path.name}{_REASON}"
        opened = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(opened, "w", encoding="utf-8", errors="replace") as file:
            file.write(f"{reason}\n")
        try:
            path.rename(self._aside / path.name)
        except FileNotFoundError:  # another reader was faster: it has written the note, or taken the record in
            if not (self._aside / path.name).exists():
                note.unlink(missing_ok=True)

    def _rescue_half_written(self) -> None:
        """What a killed hook left: a record that is whole after all is taken in, a torn one set aside."""
        old = time.time() - HALF_WRITTEN_AFTER_S
        for name in _names(self._half):
            path = self._half / name
            try:
                if path.lstat().st_mtime > old:
                    continue
                _parse(path)
                path.rename(self._new / name)
            except FileNotFoundError:
                continue
            except (Unreadable, OSError) as error:
                if isinstance(error, OSError) and is_of_machine(error):
                    self.unread[name] = str(error)
                else:
                    self._set_aside(path, f"left by a hook that was killed: {error}")


def is_of_machine(error: OSError) -> bool:
    """Whether the machine could not, and the same may do the next time; else it is about what a name stands for."""
    return error.errno not in _NO_RECORD


def _names(folder: Path) -> list[str]:
    """Of the files in a folder; none where the folder is not there yet."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]
    except FileNotFoundError:
        return []


def _older(path: Path, than: float) -> bool:
    try:
        return path.lstat().st_mtime < than
    except FileNotFoundError:
        return False


def _fields_of(path: Path) -> Mapping[str, Any] | None:
    try:
        return _parse(path)
    except (Unreadable, OSError):  # why is known; here it counts that nobody can tell what it says
        return None


def _parse(path: Path) -> Mapping[str, Any]:
    """The record in a file. Raises Unreadable or OSError."""
    if _NAME.fullmatch(path.name) is None:
        raise Unreadable("its name is not that of a record")
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(file, "rb") as opened:
        data = opened.read(RECORD_BYTES_MAX + 1)
    if len(data) > RECORD_BYTES_MAX:
        raise Unreadable(f"it is larger than {RECORD_BYTES_MAX} bytes")
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is torn or no JSON: {error}") from error
    if not isinstance(fields, dict) or not isinstance(fields.get("format"), int):
        raise Unreadable("it is not a record of a hook")
    if fields["format"] > FORMAT:
        raise Unreadable(f"its format {fields['format']} is newer than this program, which knows {FORMAT}")
    return fields


# ---- the worker


class WorkerLock:
    """Held by the one worker that is awake for a home; a hook that finds it free starts one (POSIX and Windows).

    The operating system frees it when its holder dies. A worker that a hook started holds it from its birth.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / "worker.lock"
        self._spool = Spool(home)
        self._file = self._inherited()
        self._held = self._file is not None

    def take(self) -> bool:
        """Whether it is ours now. Raises OSError where the file cannot be opened."""
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        if not self._held:
            self._held = try_lock(self._file)
        return self._held

    def release(self) -> None:
        if self._file is not None and self._held:
            self._held = False
            unlock(self._file)

    def close(self) -> None:
        """Release it and let go of its file."""
        self.release()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def until_idle(
        self,
        drain: Callable[[], int],
        idle_s: float,
        *,
        poll_s: float = 0.25,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> bool:
        """Drain until nothing came for `idle_s` seconds; False where another worker is awake.

        `drain` takes in what waits and says how many records that were. A hook that writes while the lock is held
        starts nobody. So the lock is released, then the spool is looked at once more, and if anything came meanwhile
        the lock is taken again; where that fails, a hook was faster and its worker is awake.
        """
        worked = False
        while self.take():
            worked = True
            try:
                seen = self._stay(drain, idle_s, poll_s, pause, clock)
            finally:
                self.release()
            if not self._came_since(seen):
                break
        return worked

    def _stay(
        self,
        drain: Callable[[], int],
        idle_s: float,
        poll_s: float,
        pause: Callable[[float], None],
        clock: Callable[[], float],
    ) -> frozenset[str]:
        """The names that waited at the end: what cannot be taken in now keeps nobody awake."""
        last = clock()
        while True:
            seen = self._spool.names()
            if drain():
                last = clock()
            elif clock() - last >= idle_s:
                return seen
            pause(poll_s)

    def _came_since(self, seen: frozenset[str]) -> bool:
        return not self._spool.names() <= seen

    def _inherited(self) -> int | None:
        """The file that the hook locked for us, if this process was started by one."""
        told = os.environ.pop(LOCK_FD, "")
        if not told.isdecimal():
            return None
        file = int(told)
        try:
            if not os.path.samestat(os.fstat(file), os.stat(self._path)):
                return None
            os.set_inheritable(file, False)
        except OSError:
            return None
        return file
