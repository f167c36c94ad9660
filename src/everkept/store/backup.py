"""A store's backup, and putting one back: one instant, verified, whole or not at all (G04)."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from everkept.domain.ids import event_id
from everkept.errors import Conflict, InvalidInput, NotFound, StoreNotSupported, StoreUnavailable
from everkept.store.copy import opened, our_errors, put_in_place, unfinished, unpack
from everkept.store.migrate import read_revision, read_schema, revision
from everkept.store.project_names import shown
from everkept.store.sqlite import choose_driver, sync_folder, sync_way_to, translate

LOCK_S = 2.0
"""How long a restore waits for a process that is just about to close the store."""
SEEN_S = 60.0
"""How fresh a worker's sign of life must be to count as a running process."""
_SIDE_FILES = ("-wal", "-shm", "-journal")
_COUNTS = {
    "projects": "select count(*) from projects where erased_at is null",
    "threads": "select count(*) from streams where erased_at is null",
    "messages": "select count(*) from events where erased_at is null",
    "facts": "select count(*) from facts",
}
_ERASURES = "select id, asked_at, kind, project_id, subject_id, stream_id, seq from erasures order by id"
_NAMES = f"""
select {shown("p")}, (select name from subjects where id = :subject), (select name from streams where id = :stream)
from projects p where p.id = :project"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A store that was read from end to end and found whole."""

    schema: int
    size_bytes: int
    counts: dict[str, int]
    """Projects, threads, messages and facts that it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedSince:
    """An erase of which the restored store knows nothing, so that what it destroyed is back."""

    asked_at: datetime
    kind: str
    """`event`, `stream`, `subject` or `project`."""
    project: str
    name: str
    """What it is called in the restored store: an event's id, or a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    verified: Verified
    replaced: Path | None
    """The store that was there before; None where there was none."""
    erased_since: tuple[ErasedSince, ...]
    """Erasures that have to be made again, oldest first."""
    erasures_known: bool
    """Whether the replaced store could be read for them."""


def back_up(store: Path, target: Path, *, force: bool = False) -> Verified:
    """Write one instant of the store to `target`, while others use it. Verified before it gets its name.

    Raises NotFound without a store, Conflict where `target` exists and not `force`, StoreFull, StoreUnavailable.
    """
    _require_file(store, "store")
    if target.resolve() in {store.resolve(), *(_beside(store.resolve(), end) for end in _SIDE_FILES)}:
        raise InvalidInput(f"{target} is the store itself", field="file")
    if target.is_dir():
        raise InvalidInput(f"{target} is a folder; name a file in it", field="file")
    if not target.parent.is_dir():
        raise InvalidInput(f"there is no folder {target.parent}", field="file")
    if target.exists() and not force:
        raise Conflict(f"{target} exists; --force replaces it", path=str(target))
    with unfinished(target) as partial:
        unpack(store, partial)
        verified = verify(partial, name=target)
        put_in_place(partial, target, replace=force)
    return verified


def verify(path: Path, *, name: Path | None = None) -> Verified:
    """Read a store or a backup from end to end. `name` stands for it in errors.

    Raises StoreNotSupported where it is damaged, none of ours, or newer than this program.
    """
    shown = name or path
    try:
        with opened(path) as raw:
            schema = _require_ours(raw, shown)
            _require_whole(raw, shown)
            counts = {kind: int(raw.execute(query).fetchone()[0]) for kind, query in _COUNTS.items()}
    except StoreUnavailable as error:
        # The file is there and nobody holds it: what SQLite cannot read of it is damaged, or was never a store.
        raise StoreNotSupported(f"{shown} cannot be read as a store: {error.message}", path=str(shown)) from error
    return Verified(schema=schema, size_bytes=path.stat().st_size, counts=counts)


def _require_ours(raw: Any, path: Path) -> int:
    schema = read_schema(raw, path)
    if schema == 0 or read_revision(raw) != revision(schema):
        raise StoreNotSupported(f"{path} is a database, but not one of Everkept", path=str(path))
    return schema


def _require_whole(raw: Any, path: Path) -> None:
    faults = [str(row[0]) for row in raw.execute("pragma integrity_check(10)").fetchall()]
    faults = [] if faults == ["ok"] else faults
    faults += [f"a row of {row[0]} refers to nothing" for row in raw.execute("pragma foreign_key_check").fetchmany(10)]
    if faults:
        raise StoreNotSupported(f"{path} is damaged: {faults[0]}", path=str(path), faults=faults)


def restore(backup: Path, store: Path, now: datetime) -> Restored:
    """Put a backup in the place of the store, which is kept beside as `<name>.replaced-<time>`.

    At every instant the old or the new store is in its place, whole. Raises NotFound without a backup,
    StoreNotSupported where it cannot be used, Conflict while a process has the store open, StoreFull, StoreUnavailable.
    """
    _require_file(backup, "backup")
    if store.exists() and backup.samefile(store):
        raise InvalidInput(f"{backup} is the store itself", field="file")
    verify(backup)
    with our_errors(store):
        store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_way_to(store.parent)
    with unfinished(store) as partial:
        unpack(backup, partial)
        verified = verify(partial, name=backup)
        if not store.exists():
            _move_side_files(store, _replaced_name(store, now))
            sync_folder(store.parent)  # or a power cut could leave the old log beside the new store
            put_in_place(partial, store, replace=True)
            return Restored(verified=verified, replaced=None, erased_since=(), erasures_known=True)
        replaced = _replaced_name(store, now)
        with _held(store, now) as old:
            erased = None if old is None else _erased_since(old, partial)
            _keep(old, store, replaced)
            if sys.platform == "win32" and old is not None:
                old.close()  # an open file cannot be replaced there
            put_in_place(partial, store, replace=True)
    return Restored(
        verified=verified, replaced=replaced, erased_since=erased or (), erasures_known=erased is not None
    )  # fmt: skip


def _require_file(path: Path, what: str) -> None:
    if not path.is_file():
        raise NotFound(f"there is no {what} at {path}", path=str(path))


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _replaced_name(store: Path, now: datetime) -> Path:
    """A name that is free; two restores within a second are told apart by a number."""
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    first = store.with_name(f"{store.stem}.replaced-{stamp}{store.suffix}")
    names = (first, *(first.with_stem(f"{first.stem}-{number}") for number in range(2, 100)))
    return next(name for name in names if not name.exists())


@contextmanager
def _held(store: Path, now: datetime) -> Iterator[Any]:
    """The store, held alone, its write-ahead log moved into the file; None where SQLite cannot read it.

    Raises Conflict where another process has it open.
    """
    raw = choose_driver().module.connect(
        f"{store.resolve().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=LOCK_S
    )
    try:
        yield raw if _take_alone(raw, store, now) else None
    finally:
        raw.close()


def _take_alone(raw: Any, store: Path, now: datetime) -> bool:
    driver = choose_driver().module
    try:
        mode = raw.execute("pragma journal_mode").fetchone()[0]
        # Leaving WAL needs the file for oneself: any process that has it open, idle or not, makes this fail.
        raw.execute("pragma locking_mode = exclusive")
        raw.execute("pragma journal_mode = delete").fetchall()
        raw.execute("begin exclusive")
        raw.execute("commit")
    except driver.DatabaseError as error:
        if "locked" in str(error):
            raise _in_use(store) from error
        if type(error) is driver.DatabaseError:  # not readable as a database; all else that can happen has its own kind
            return False
        raise translate(error) from error
    if mode != "wal" and _was_seen(raw, now):
        raise _in_use(store)
    return True


def _in_use(store: Path) -> Conflict:
    return Conflict(
        f"another process has {store} open; stop it (`everkept serve`, `everkept worker`, your program), then restore",
        path=str(store),
    )


def _was_seen(raw: Any, now: datetime) -> bool:
    """Whether a worker gave a sign of life lately. Without WAL an idle process holds no lock that could tell."""
    since = int((now.timestamp() - SEEN_S) * 1e6)
    try:
        return raw.execute("select 1 from workers where seen_at > ?", (since,)).fetchone() is not None
    except choose_driver().module.DatabaseError:
        return False  # it has no such table, so it has no such workers


def _erased_since(old: Any, new: Path) -> tuple[ErasedSince, ...] | None:
    """Erasures that the old store knows and the new one does not; None where the old one cannot be read."""
    try:
        rows = old.execute(_ERASURES).fetchall()
    except choose_driver().module.DatabaseError:
        return None
    with opened(new) as raw:
        known = {row[:2] for row in raw.execute(_ERASURES).fetchall()}
        found = [(row, _names(raw, row)) for row in rows if row[:2] not in known]
    return tuple(_erasure(row, names) for row, names in found if names is not None)


def _names(raw: Any, row: tuple[Any, ...]) -> tuple[str, str | None, str | None] | None:
    """Project, subject and stream as the new store calls them; None where it has no such project."""
    _, _, _, project, subject, stream, _ = row
    found: tuple[str, str | None, str | None] | None = raw.execute(
        _NAMES, {"project": project, "subject": subject, "stream": stream}
    ).fetchone()
    return found


def _erasure(row: tuple[Any, ...], names: tuple[str, str | None, str | None]) -> ErasedSince:
    _, asked_at, kind, _, _, stream, seq = row
    project, subject, thread = names
    name = {"event": event_id(stream or 0, seq or 0), "stream": thread, "subject": subject, "project": project}[kind]
    return ErasedSince(
        asked_at=datetime.fromtimestamp(asked_at / 1e6, UTC), kind=kind, project=project, name=name or ""
    )  # fmt: skip


def _keep(old: Any, store: Path, replaced: Path) -> None:
    """Give the old store a second name, so that its place is never empty. A damaged one takes its side files along."""
    with our_errors(replaced):
        try:
            os.link(store, replaced)
        except OSError:  # a file system without second names
            if old is None:
                shutil.copyfile(store, replaced)
            else:
                old.execute("vacuum into ?", (str(replaced),))
        if old is None:
            _move_side_files(store, replaced)
        sync_folder(store.parent)


def _move_side_files(store: Path, replaced: Path) -> None:
    """A write-ahead log beside a file to which it does not belong would be played into it."""
    for end in _SIDE_FILES:
        with suppress(FileNotFoundError):
            os.replace(_beside(store, end), _beside(replaced, end))
