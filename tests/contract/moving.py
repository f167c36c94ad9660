"""Memories that move: one that has lived, places to move it to, and all that a memory holds, to compare."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import psycopg
from tests.contract.engine.test_same_on_both import live, reads
from tests.factories import World, open_store
from tests.postgres import TestedDatabase, new_database, server_url

from everkept.domain.ids import ProjectId
from everkept.domain.scope import Scope
from everkept.models.word_vectors import WordllamaVectors
from everkept.ports.clock import VirtualClock
from everkept.recall.search import Query, Searcher
from everkept.store.connection import Connection
from everkept.store.database import Database, reading
from everkept.store.moving.kept import DERIVED
from everkept.store.moving.mover import move_memory
from everkept.store.moving.pair import Told
from everkept.store.sqlite_database import SqliteDatabase
from everkept.store.store import Store
from everkept.store.tables import metadata

T = TypeVar("T")
OWNER = "everkept_tested"
VECTORS = """
insert into vectors(passage_id, model, project_id, subject_id, own, around)
select id, 'a model', project_id, subject_id, x'00ff', x'01' from passages"""
MANY_COUNTERS = """
insert into counters(name, value)
with recursive n(i) as (select 1 union all select i + 1 from n where i < 1200) select 'counter ' || i, i / 7.0 from n"""
SEARCHER = Searcher(WordllamaVectors())
ASKED = ("where does she live", "Lisbon", "allergic to nuts", "merci Zürich", "東京", "cats")


def with_world(database: Database, home: Path, clock: VirtualClock, act: Callable[[World], T]) -> T:
    """What `act` answers about a world on this memory, which is closed again."""
    store = open_on(database, clock)
    world = World(store, home, clock, script=reads)
    try:
        return act(world)
    finally:
        world.close()
        store.close()


def lived_in(database: Database, home: Path, clock: VirtualClock, seed: int = 1) -> None:
    """Fill an empty memory with a random history."""
    with_world(database, home, clock, lambda world: live(world, random.Random(seed)))


def open_on(database: Database, clock: VirtualClock) -> Store:
    if isinstance(database, SqliteDatabase):
        return open_store(database.path, clock)
    store = Store(database, clock=clock, threads=False)
    store.open()
    return store


def all_of(database: Database, clock: VirtualClock) -> tuple[dict[str, list[Any]], list[Any]]:
    """Every row of every table that moves, and what recall finds, score by score."""
    with reading(database, clock) as conn:
        return {t.name: _rows(conn, t) for t in metadata.sorted_tables if t.name not in DERIVED}, _recalled(conn)


def _rows(conn: Connection, table: Any) -> list[Any]:
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    kept = conn.raw.execute(f'select {columns} from "{table.name}"').fetchall()
    return sorted((tuple(map(_plain, row)) for row in kept), key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return bytes(value)
    return int(value) if isinstance(value, bool) else value


def _recalled(conn: Connection) -> list[Any]:
    scope = Scope(project=ProjectId(1))
    return [
        (asked, each.hit.id, round(each.score, 9))
        for asked in ASKED
        for each in SEARCHER.search(conn, scope, Query(text=asked)).hits[:10]
    ]


def file_at(path: Path) -> SqliteDatabase:
    return SqliteDatabase(path)


def server() -> TestedDatabase:
    """A new database with the schema and no memory in it, for a role that owns its tables and is bound by policies."""
    return TestedDatabase(empty_url())


def empty_url() -> str:
    """A copy of one that was made once: making the schema takes a second."""
    url, made = new_database(), _template()
    name = urlsplit(url).path[1:]
    with psycopg.connect(server_url(), autocommit=True) as raw:
        raw.execute(f"drop database {name}")
        raw.execute(f"create database {name} template {made} owner {OWNER}")
    return _owned(url)


@cache
def _template() -> str:
    url = new_database()
    name = urlsplit(url).path[1:]
    with psycopg.connect(url, autocommit=True) as raw:
        if raw.execute("select 1 from pg_roles where rolname = %s", (OWNER,)).fetchone() is None:
            raw.execute(f"create role {OWNER} login")
        raw.execute("create extension if not exists vector")
        raw.execute(f"alter database {name} owner to {OWNER}")
    TestedDatabase(_owned(url)).prepare(VirtualClock())
    return name


def _owned(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{OWNER}@{parts.netloc.rpartition('@')[2]}"))


def small(world: World) -> None:
    """A little of everything that is cheap to make, with a model, and more rows than are read at once."""
    world.add("one", "I live in Lisbon and I have two cats.", "Ça va bien à 東京 — merci!", subject="ana", key="k")
    world.add("two", "I moved to Porto.", "I'm allergic to peanuts.", subject="zoë")
    world.do(MANY_COUNTERS)
    world.do(VECTORS)
    world.end("one")
    world.live(60.0, every=20.0)
    world.add("two", "Actually I moved to Lisbon now.", subject="zoë")


class Death(BaseException):
    """The mover was killed: from here on it executes nothing."""


def move_until_it_lives(
    pair: Callable[[Fuse], tuple[Database, Database]],
    clock: VirtualClock,
    stride: int,
    between: Callable[[int], None] = lambda _deaths: None,
    from_phase: str = "begin",
) -> int:
    """Each run lives `stride` statements longer than the one before, from a phase on; how many were killed.

    `between` is called after each death with their number.
    """
    for deaths in itertools.count():
        fuse = Fuse(None if from_phase != "begin" else deaths * stride)

        def light(told: Told, fuse: Fuse = fuse, statements: int = deaths * stride) -> None:
            if told.phase == from_phase and fuse.left is None:
                fuse.left = statements

        try:
            move_memory(*pair(fuse), clock, light)
        except Death:
            fuse.bury()
            between(deaths)
        else:
            fuse.bury()
            return deaths
    raise AssertionError("it never ends")


class Fuse:
    """Kills the mover before the statement of this number; None: never."""

    def __init__(self, statements: int | None = None) -> None:
        self.left = statements
        self.opened: list[Any] = []

    def burn(self) -> None:
        if self.left is None:
            return
        self.left -= 1
        if self.left < 0:
            raise Death

    def bury(self) -> None:
        """What the death of a process does to its connections: whatever was not committed never was."""
        for raw in self.opened:
            raw.close()


class Fused:
    """A driver's connection, or its cursor, whose statements burn a fuse."""

    def __init__(self, raw: Any, fuse: Fuse) -> None:
        self._raw = raw
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def execute(self, *args: Any, **kw: Any) -> Any:
        self._fuse.burn()
        return self._raw.execute(*args, **kw)

    def executemany(self, *args: Any) -> Any:
        self._fuse.burn()
        return self._raw.executemany(*args)

    def cursor(self) -> Fused:
        return Fused(self._raw.cursor(), self._fuse)

    def close(self) -> None:
        """A process that is dead closes nothing; `Fuse.bury` does."""
        if self._fuse.left is None or self._fuse.left >= 0:
            self._raw.close()

    def __enter__(self) -> Fused:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FusedFile(SqliteDatabase):
    def __init__(self, path: Path, fuse: Fuse) -> None:
        super().__init__(path)
        self._fuse = fuse

    def connect(self, *, read_only: bool) -> Any:
        raw = super().connect(read_only=read_only)
        raw.execute("pragma synchronous = off")
        self._fuse.opened.append(raw)
        return Fused(raw, self._fuse)


class FusedServer(TestedDatabase):
    def __init__(self, url: str, fuse: Fuse) -> None:
        super().__init__(url)
        self._fuse = fuse

    def connect(self, *, read_only: bool) -> Any:
        raw = super().connect(read_only=read_only)
        raw.prepare_threshold = None
        self._fuse.opened.append(raw)
        return Fused(raw, self._fuse)
