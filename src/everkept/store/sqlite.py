"""SQLite: which library is trusted, how a file is opened, and what its errors mean."""

from __future__ import annotations

import errno
import importlib
import os
import sqlite3
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from everkept.errors import EverkeptError, StoreFull, StoreMoved, StoreNotSupported, StoreUnavailable

WAL_TRUSTED = (3, 51, 3)
"""Before this version a WAL could be corrupted by a checkpoint racing a writer (design §4)."""
OLDEST = (3, 42, 0)
"""FTS5's secure-delete appeared here; without it erased words stay in the file."""
_UNWRITABLE = {
    "database or disk is full": "free space on its disk",
    "disk I/O error": "look at its disk: space, quota, limits, faults",
    "attempt to write a readonly database": "it can only be read: mend its permissions or its mount",
    "unable to open database file": "mend the permissions or the mount of its folder, or free space there",
}
"""How SQLite says that it cannot write, and what mends it."""
_UNWRITABLE_ERRNO = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "fuse.sshfs", "ceph", "glusterfs", "lustre"}


@dataclass(frozen=True, slots=True)
class Driver:
    module: ModuleType
    version: str
    wal: bool

    @property
    def degraded(self) -> str | None:
        """Why the journal mode is the slow one, or None."""
        if self.wal:
            return None
        return f"SQLite {self.version} has a WAL bug (mended in 3.51.3); running with journal_mode=TRUNCATE"


def choose_driver() -> Driver:
    """The standard library's module where it is new enough, else pysqlite3, else whichever there is, without WAL."""
    driver = _newest_driver()
    # Both modules look for an adapter of every None they bind, and raise inside when there is none: 3 µs each, more
    # than all else about a row. `{}.get` answers None with None.
    driver.module.register_adapter(type(None), {}.get)
    return driver


def _newest_driver() -> Driver:
    best: Driver | None = None
    for name in ("sqlite3", "pysqlite3.dbapi2"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        number = tuple(int(x) for x in module.sqlite_version.split("."))
        driver = Driver(module, module.sqlite_version, wal=number >= WAL_TRUSTED)
        if driver.wal:
            return driver
        if number >= OLDEST and best is None:
            best = driver
    if best is None:
        raise StoreNotSupported(
            f"SQLite {sqlite3.sqlite_version} is too old (3.42 is needed): install `pysqlite3`, or a newer Python",
            version=sqlite3.sqlite_version,
        )
    return best


def refuse_network(path: Path) -> None:
    """Raise StoreNotSupported where the file would lie on a network file system: its locks cannot be trusted."""
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return
    place = str(path.resolve())
    best, kind = "", ""
    for line in mounts:
        _, mount, fstype, *_ = line.split(" ")
        mount = mount.replace("\\040", " ")
        inside = place == mount or place.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, fstype
    if kind in _NETWORK:
        raise StoreNotSupported(
            f"{path} lies on a network file system ({kind}); use a local disk, or PostgreSQL", path=place
        )


def open_file(driver: Driver, path: Path, *, read_only: bool = False, busy_s: float = 30.0) -> Any:
    """A driver connection in autocommit, at full sync. The file is made with mode 0600."""
    if not read_only:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if sys.platform != "win32" and not path.exists():
            sync_way_to(path.parent)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    raw = driver.module.connect(str(path), isolation_level=None, check_same_thread=False, timeout=busy_s)
    try:
        _set_up(driver, raw, read_only=read_only, busy_s=busy_s)
    except BaseException:
        raw.close()
        raise
    return raw


def sync_way_to(folder: Path) -> None:
    """Make the folders durable that lead to a new store, as nobody else does: a power cut must not take one with it.

    Before the store's file is made, so that one which exists has been through here. Whose parent belongs to somebody
    else was not made by us.
    """
    if sys.platform == "win32":
        return
    for made in (folder.resolve(), *folder.resolve().parents):
        if made.parent.stat().st_uid != os.geteuid() or made == made.parent:
            return
        sync_folder(made.parent)


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable; Windows does so by itself."""
    if sys.platform == "win32":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def open_frozen(driver: Driver, path: Path) -> Any:
    """A connection to a file that cannot be opened as usual, as nothing can be written beside it (the WAL's index).

    It takes the file for one that nobody changes, so it is for one read, and only where no WAL holds more than the
    file. Raises StoreUnavailable where one does.
    """
    wal = Path(f"{path}-wal")
    if wal.exists() and wal.stat().st_size:
        raise StoreUnavailable(
            f"{path} was not closed, and its log {wal.name} cannot be read where nothing can be written", path=str(path)
        )
    raw = driver.module.connect(
        f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None, check_same_thread=False
    )
    raw.execute("pragma temp_store = memory")
    return raw


def _set_up(driver: Driver, raw: Any, *, read_only: bool, busy_s: float) -> None:
    raw.execute(f"pragma busy_timeout = {int(busy_s * 1000)}")
    raw.execute("pragma foreign_keys = on")
    if read_only:
        raw.execute("pragma query_only = on")
        raw.execute("pragma mmap_size = 268435456")
    else:
        raw.execute(f"pragma journal_mode = {'wal' if driver.wal else 'truncate'}")
        raw.execute("pragma synchronous = full")
        raw.execute("pragma secure_delete = on")
        raw.execute("pragma wal_autocheckpoint = 0")  # the writer owns checkpoints
    raw.execute("pragma cache_size = -65536")
    raw.execute("pragma temp_store = memory")


def translate(error: Exception) -> Exception:
    """The driver's or the disk's error as one of ours; ours and programming errors come back as they are."""
    if isinstance(error, EverkeptError):
        return error
    kind = type(error).__name__
    text = str(error)
    mend = next((mend for told, mend in _UNWRITABLE.items() if text.startswith(told)), None)
    if isinstance(error, OSError):
        unwritable = error.errno in _UNWRITABLE_ERRNO
        ours: Exception = (StoreFull if unwritable else StoreUnavailable)(f"{error.filename}: {error.strerror or text}")
    elif kind == "OperationalError" and mend is not None:
        ours = StoreFull(f"the database could not be written: {text}; {mend}, then try again")
    elif kind == "IntegrityError" and text.startswith(StoreMoved.told):
        ours = StoreMoved(text)
    elif isinstance(error, UnicodeDecodeError):  # what the driver says of a page that was torn
        ours = StoreUnavailable("the database is damaged: a text in it is not UTF-8")
    elif kind in ("OperationalError", "DatabaseError"):
        ours = StoreUnavailable(f"the database is not available: {text}")
    else:
        return error
    ours.__cause__ = error
    return ours
