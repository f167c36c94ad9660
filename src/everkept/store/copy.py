"""Copying a store: one instant of it, while others write, as one new file that is wholly on disk.

`VACUUM INTO` and not SQLite's online backup, which copies pages as they are: a copy must not have free pages and page
ends in which erased words could still stand.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from everkept.errors import Conflict, EverkeptError
from everkept.store.sqlite import choose_driver, sync_folder, translate

BUSY_S = 30.0


@contextmanager
def opened(path: Path, *, mode: str = "ro", busy_s: float = BUSY_S) -> Iterator[Any]:
    """A driver connection to a file that exists; `mode` is `ro` or `rw`. Driver errors come out as ours."""
    with our_errors(path):
        raw = choose_driver().module.connect(
            f"{path.resolve().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=busy_s
        )
        try:
            yield raw
        finally:
            raw.close()


@contextmanager
def our_errors(path: Path) -> Iterator[None]:
    """Errors of the driver and of the disk as StoreFull and StoreUnavailable, with the file's name."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        ours = translate(error)
        assert isinstance(ours, EverkeptError)
        raise type(ours)(ours.message, path=str(path)) from error
    except choose_driver().module.DatabaseError as error:
        ours = translate(error)
        if isinstance(ours, EverkeptError):
            raise type(ours)(f"{path}: {ours.message}", path=str(path)) from error
        raise


def copy_store(source: Path, target: Path, *, replace: bool) -> None:
    """Write a copy of `source` to `target`, whole or not at all, readable by its owner only.

    Raises Conflict where `target` exists and may not be replaced, StoreFull, StoreUnavailable.
    """
    with unfinished(target) as partial:
        unpack(source, partial)
        put_in_place(partial, target, replace=replace)


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """A new, empty file beside `target` to write to; removed at the end unless it was put in place."""
    partial = target.with_name(f"{target.name}.partial-{os.getpid()}")
    with our_errors(target):
        os.close(os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600))
    try:
        yield partial
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()


def unpack(source: Path, partial: Path) -> None:
    """Write one instant of `source` into the empty file `partial`, down to the disk."""
    with opened(source, mode="ro") as raw, our_errors(partial):
        raw.execute("vacuum into ?", (str(partial),))
    with our_errors(partial):
        _sync(partial)


def put_in_place(partial: Path, target: Path, *, replace: bool) -> None:
    with our_errors(target):
        if replace:
            os.replace(partial, target)
        else:
            _link(partial, target)
            partial.unlink()
        sync_folder(target.parent)


def _link(existing: Path, new: Path) -> None:
    """Give a file a second name. Where the file system has no such thing, it is renamed instead.

    Raises Conflict if that name is taken.
    """
    try:
        os.link(existing, new)
    except FileExistsError:
        raise Conflict(f"{new} exists; --force replaces it", path=str(new)) from None
    except OSError:
        if new.exists():
            raise Conflict(f"{new} exists; --force replaces it", path=str(new)) from None
        os.replace(existing, new)
        existing.touch()


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDWR)
    try:
        os.fsync(number)
    finally:
        os.close(number)
