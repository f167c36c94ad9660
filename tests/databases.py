"""Each test once a database: on SQLite as it is written, and on PostgreSQL with a database where it names a file."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.postgres import InPlaceOfFiles, ordinary

from everkept.ports.clock import Clock, VirtualClock
from everkept.store.sqlite_database import SqliteDatabase

OPENED_IN = ("everkept.store.store.SqliteDatabase", "everkept.bootstrap.SqliteDatabase")


class UrlOf:
    """Of what is opened where a test names a file."""

    def __init__(self, in_place: InPlaceOfFiles | None) -> None:
        self._in_place = in_place

    def __call__(self, path: Path) -> str:
        return f"sqlite:///{path}" if self._in_place is None else ordinary(self._in_place.url_of(path))

    def copy(self, path: Path, to: Path) -> None:
        """As a file is copied that nobody has open; not of the first that a test names."""
        if self._in_place is None:
            shutil.copyfile(path, to)
        else:
            self._in_place.copy(path, to)


@pytest.fixture(params=["sqlite", "postgresql"])
def each_database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[UrlOf]:
    """The URL of what is opened where a file is named, for other processes of the test.

    A test marked `only_on` runs on that database alone, for the reason that the mark gives.
    """
    database = request.param
    if (marked := request.node.get_closest_marker("only_on")) is not None and marked.args[0] != database:
        pytest.skip(marked.kwargs["reason"])
    if database == "sqlite":
        quick_files(monkeypatch)
        yield UrlOf(None)
        return
    in_place = InPlaceOfFiles()
    for name in OPENED_IN:
        monkeypatch.setattr(name, in_place)
    monkeypatch.setattr(SqliteDatabase, "connect", _refuse)
    yield UrlOf(in_place)
    # Neither had another process of the test a store in a file.
    assert list(tmp_path.rglob("everkept.db")) == [], "it ran on a file: open what the test names, or say only_on"


def quick_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new file begins as a copy: making the schema takes a fifth of a second, and nearly every test needs it.

    What this process asks of it in no order comes in the reverse of the usual one. No statement, be it the store's or a
    test's, may lean on the usual one: PostgreSQL has none.
    """
    monkeypatch.setattr(SqliteDatabase, "prepare", _prepare_quickly)
    monkeypatch.setattr(SqliteDatabase, "connect", _connect_in_reverse)


@cache
def empty_store() -> bytes:
    """Of a file with the schema and nothing in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "everkept.db"
        _prepare(SqliteDatabase(path), VirtualClock())
        return path.read_bytes()


_prepare = SqliteDatabase.prepare
_connect = SqliteDatabase.connect


def _prepare_quickly(database: SqliteDatabase, clock: Clock) -> None:
    if not database.path.exists() and database.path.parent.is_dir():
        database.path.touch(mode=0o600)
        database.path.write_bytes(empty_store())
    _prepare(database, clock)


def _connect_in_reverse(database: SqliteDatabase, *, read_only: bool) -> Any:
    raw = _connect(database, read_only=read_only)
    raw.execute("pragma reverse_unordered_selects = on")
    return raw


def _refuse(database: SqliteDatabase, *, read_only: bool) -> None:
    raise AssertionError(f"{database.path} is opened in a test that is said to run on PostgreSQL")
