"""SQLite's way to the disk, written down deed by deed: a VFS over the default one, and the few calls beside it.

Needs apsw. Nothing is really synced: what would last is worked out from the deeds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import apsw

from everkept.prove.power_disk import FOLDER, Disk

VFS: Final = "everkept-power"
_PASSING: Final = (
    apsw.SQLITE_OPEN_DELETEONCLOSE | apsw.SQLITE_OPEN_TEMP_DB | apsw.SQLITE_OPEN_TEMP_JOURNAL
    | apsw.SQLITE_OPEN_TRANSIENT_DB | apsw.SQLITE_OPEN_SUBJOURNAL
)  # fmt: skip
"""Files that no start after a cut will look at."""
_LOGS: Final = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
"""Where SQLite has opened one of these to create it, its first sync is one of its folder, too (`unixOpen`)."""


class RecordingVfs(apsw.VFS):
    """Writes down what happens below the disk's root; all else goes through."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(VFS, "")
        self._disk = disk

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802  (apsw's)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        place = None if path is None or flags[0] & _PASSING else self._disk.place(path)
        if place is None:
            return apsw.VFSFile("", name, flags)
        return RecordingFile(self._disk, place, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001, N802  (apsw's)
        super().xDelete(filename, syncdir)
        place = self._disk.place(filename)
        if place is not None:
            self._disk.rename({place: None})
            if syncdir:
                self._disk.sync_folder(place.rpartition("/")[0])


class RecordingFile(apsw.VFSFile):
    def __init__(self, disk: Disk, place: str, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._node = disk.create(place)
        made = bool(flags[0] & apsw.SQLITE_OPEN_CREATE and flags[0] & _LOGS)
        self._folder: str | None = place.rpartition("/")[0] if made else None

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802  (apsw's)
        super().xWrite(data, offset)
        self._disk.write(self._node, offset, bytes(data))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802  (apsw's)
        super().xTruncate(newsize)
        self._disk.truncate(self._node, newsize)

    def xSync(self, _flags: int) -> None:  # noqa: N802  (apsw's)
        self._disk.sync(self._node)
        if self._folder is not None:
            self._disk.sync_folder(self._folder)
            self._folder = None

    def xDeviceCharacteristics(self) -> int:  # noqa: N802  (apsw's)
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE

    def xSectorSize(self) -> int:  # noqa: N802  (apsw's)
        return 4096


@contextmanager
def recorded_calls(disk: Disk) -> Iterator[None]:
    """The program's own calls to the disk: names, syncs and new files. For a process that does nothing else meanwhile.

    Content that is written past SQLite is not seen; comparing the replayed disk with the real one shows that there was
    none.
    """
    calls = _Calls(disk)
    taken = {name: getattr(os, name) for name in _Calls.NAMES}
    for name, original in taken.items():
        setattr(os, name, getattr(calls, name)(original))
    try:
        yield
    finally:
        for name, original in taken.items():
            setattr(os, name, original)


class _Calls:
    """Each takes the original and gives what stands in its place."""

    NAMES: Final = ("open", "close", "fsync", "replace", "rename", "link", "unlink", "remove", "mkdir", "rmdir")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._open: dict[int, int | str] = {}
        """What each number stands for: the node of a file, the place of a folder."""

    def open(self, original: Callable[..., int]) -> Callable[..., int]:
        def opened(path: Any, flags: int, *args: Any, **kw: Any) -> int:
            number = original(path, flags, *args, **kw)
            place = self._place(path)
            if place is not None:
                self._open[number] = self._opened(place, flags)
            return number

        return opened

    def _opened(self, place: str, flags: int) -> int | str:
        if place == "" or self._disk.node(place) == FOLDER:
            return place
        node = self._disk.create(place)
        if flags & os.O_TRUNC:
            self._disk.truncate(node, 0)
        return node

    def close(self, original: Callable[[int], None]) -> Callable[[int], None]:
        def closed(number: int) -> None:
            self._open.pop(number, None)
            original(number)

        return closed

    def fsync(self, original: Callable[[int], None]) -> Callable[[int], None]:
        def synced(number: int) -> None:
            match self._open.get(number):
                case None:
                    original(number)
                case str(folder):
                    self._disk.sync_folder(folder)
                case node:
                    self._disk.sync(node)

        return synced

    def replace(self, original: Callable[..., None]) -> Callable[..., None]:
        def replaced(source: Any, target: Any) -> None:
            original(source, target)
            self._moved(source, target)

        return replaced

    rename = replace

    def _moved(self, source: Any, target: Any) -> None:
        old, new = self._place(source), self._place(target)
        node = None if old is None else self._disk.node(old)
        changes: dict[str, int | None] = {}
        if old is not None:
            changes[old] = None
        if new is not None and node is not None:
            changes[new] = node
        if changes:
            self._disk.rename(changes)

    def link(self, original: Callable[..., None]) -> Callable[..., None]:
        def linked(source: Any, target: Any) -> None:
            original(source, target)
            old, new = self._place(source), self._place(target)
            node = None if old is None else self._disk.node(old)
            if new is not None and node is not None:
                self._disk.rename({new: node})

        return linked

    def unlink(self, original: Callable[..., None]) -> Callable[..., None]:
        def unlinked(path: Any, **kw: Any) -> None:
            original(path, **kw)
            place = self._place(path)
            if place is not None:
                self._disk.rename({place: None})

        return unlinked

    remove = rmdir = unlink

    def mkdir(self, original: Callable[..., None]) -> Callable[..., None]:
        def made(path: Any, *args: Any, **kw: Any) -> None:
            original(path, *args, **kw)
            place = self._place(path)
            if place is not None:
                self._disk.make_folder(place)

        return made

    def _place(self, path: Any) -> str | None:
        return None if isinstance(path, int) else self._disk.place(os.fspath(path))
