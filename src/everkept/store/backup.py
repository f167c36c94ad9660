"""A store's backup, and putting one back: one instant, verified, whole or not at all (G04)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from everkept.errors import Conflict, InvalidInput, NotFound, StoreNotSupported, StoreUnavailable
from everkept.store.copy import opened, our_errors, put_in_place, sync_folder, unfinished, unpack
from everkept.store.migrate import read_revision, read_schema, revision

LOCK_S = 2.0
"""How long a restore waits for a process that is just about to close the store."""
_SIDE_FILES = ("-wal", "-shm", "-journal")
_COUNTS = {
    "projects": "select count(*) from projects where erased_at is null",
    "threads": "select count(*) from streams where erased_at is null",
    "messages": "select count(*) from events where erased_at is null",
    "facts": "select count(*) from facts",
}
_ERASURES = "select id, asked_at, kind, project_id, subject_id, stream_id, seq from erasures order by id"
_NAMES = """select p.name, (select name from subjects where id = :subject), (select name from streams where id = :stream)
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
    with unfinished(store) as partial:
        unpack(backup, partial)
        verified = verify(partial, name=backup)
        if not store.exists():
            _move_side_files(store, _replaced_name(store, now))
            put_in_place(partial, store, replace=True)
            return Restored(verified=verified, replaced=None, erased_since=(), erasures_known=True)
        replaced = _replaced_name(store, now)
        with _held(store) as old:
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
def _held(store: Path) -> Iterator[Any]:
    """The store, held alone, with its write-ahead log moved into the file; None where SQLite cannot read it.

    Raises Conflict where another process has it open.
    """
    try:
        holder = opened(store, mode="rw", busy_s=LOCK_S)
        raw = holder.__enter__()
        _take_alone(raw)
    except StoreUnavailable:
        raise
    try:
        yield raw
    finally:
        holder.__exit__(None, None, None)
