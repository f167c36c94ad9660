"""Workspaces and projects that are asked for by name: made once, whoever asks and however often (G12)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.factories import SECRET
from tests.postgres import TestedDatabase, empty_database

from everkept import AsyncMemory
from everkept.api import views as v
from everkept.errors import Conflict, InvalidInput
from everkept.ports.clock import SystemClock
from everkept.store.connection import Connection
from everkept.store.isolation import reach_statement
from everkept.store.projects import ensure_project, ensure_project_in, ensure_workspace
from everkept.store.reach import Across
from everkept.store.store import Store

TWO = pytest.mark.only_on("postgresql", reason="a file has one writer at a time in any case")
IDLE = {"window.idle_s": 900.0}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "everkept.db", threads=False)
    made.open()
    yield made
    made.close()


def ensured(store: Store, workspace: str, name: str, settings: dict[str, Any] | None = None) -> tuple[int, str]:
    row = store.write_now(ensure_project_in, workspace, name, SECRET, settings)
    return row.id, row.name


def test_the_first_asking_makes_it_and_every_other_finds_it(store: Store) -> None:
    made = store.write_now(ensure_workspace, "research")
    assert store.write_now(ensure_workspace, "research") == made
    number, name = ensured(store, "research", "bot")
    assert name == "research/bot"
    assert [ensured(store, "research", "bot") for _ in range(2)] == [(number, name)] * 2
    assert ensured(store, "default", "bot") != (number, name)
    assert store.read_now(lambda conn: conn.raw.execute("select count(*) from workspaces").fetchone()[0]) == 2


def test_a_name_that_would_read_as_another_projects_is_refused(store: Store) -> None:
    ensured(store, "research", "bot")
    with pytest.raises(Conflict, match="in another workspace"):
        ensured(store, "default", "research/bot")
    store.write_now(ensure_project, "science/bot", SECRET)
    with pytest.raises(Conflict, match="in another workspace"):
        ensured(store, "science", "bot")
    with pytest.raises(InvalidInput, match="no slash"):
        store.write_now(ensure_workspace, "a/b")


def test_settings_that_are_given_are_its_own_from_then_on_and_none_leave_them(tmp_path: Path) -> None:
    async def go() -> list[v.Project]:
        async with AsyncMemory.open(tmp_path, worker=False) as memory:
            return [
                await memory.ensure_project("bot", workspace="research", settings=settings)
                for settings in (None, IDLE, None, IDLE, {})
            ]

    answers = asyncio.run(go())
    assert [answer.settings for answer in answers] == [{}, IDLE, IDLE, IDLE, {}]
    assert len({(answer.id, answer.name, answer.created_at) for answer in answers}) == 1


@TWO
def test_two_that_ask_at_the_same_moment_get_the_same_answer_whatever_lock_they_hold() -> None:
    """Two transactions that do not wait for each other: only the rows themselves keep one from being made twice."""
    database = TestedDatabase()
    both_begun = threading.Barrier(2)
    found: list[tuple[int, str]] = []

    @contextmanager
    def connected() -> Iterator[Connection]:
        raw = database.connect(read_only=False)
        try:
            yield Connection(raw, database.dialect, SystemClock())
        finally:
            raw.close()

    def ask() -> None:
        with connected() as conn:
            conn.raw.execute("begin")
            conn.raw.execute(reach_statement({Across.EVERYTHING}))
            both_begun.wait(timeout=20)
            row = ensure_project_in(conn, "research", "bot", SECRET, None)
            found.append((row.id, row.name))
            conn.raw.execute("commit")

    _at_once(ask)
    assert found == [found[0]] * 2
    with connected() as conn:
        conn.raw.execute("begin")
        conn.raw.execute(reach_statement({Across.EVERYTHING}))
        assert conn.raw.execute("select count(*) from projects where name = 'bot'").fetchone() == (1,)
        assert conn.raw.execute("select count(*) from workspaces").fetchone() == (2,)


@TWO
def test_two_replicas_that_ask_at_the_same_time_get_the_same_answers() -> None:
    url = empty_database()
    replicas = [Store(TestedDatabase(url)) for _ in range(2)]
    for replica in replicas:
        replica.open()
    found: list[list[tuple[int, str]]] = []
    waiting = list(replicas)

    def ask() -> None:
        replica = waiting.pop()
        found.append([ensured(replica, f"w{n}", "bot") for n in range(8)])

    try:
        _at_once(ask)
    finally:
        for replica in replicas:
            replica.close()
    assert found[0] == found[1]
    assert len(set(found[0])) == 8


def _at_once(ask: Callable[[], None]) -> None:
    """Two threads; whatever either raises is raised here."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            ask()
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)
