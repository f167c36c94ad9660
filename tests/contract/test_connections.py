"""How many connections a process opens to a database server is bounded, counted and told (G14)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
from tests.factories import settings_of
from tests.postgres import TestedDatabase, empty_database, ordinary_role, server_url

from everkept.bootstrap import open_application
from everkept.config import load
from everkept.ports.clock import SystemClock
from everkept.store.connection import Connection
from everkept.store.diagnosis.diagnose import Diagnosis, diagnose_database
from everkept.store.diagnosis.look import Look
from everkept.store.postgres import PostgresDatabase
from everkept.store.projects import list_projects
from everkept.store.server_state import EACH_MAX, ServerRow, read_server
from everkept.store.store import READERS, Store

pytestmark = pytest.mark.only_on("postgresql", reason="a file has no connections to run out of")
T = TypeVar("T")
SAFE = "&options=-c%20synchronous_commit%3Don"


@pytest.fixture
def url() -> str:
    return empty_database()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = Store(TestedDatabase(url))
    opened.open()
    yield opened
    opened.close()


def seen(store: Store) -> ServerRow:
    row = store.read_now(read_server)
    assert row is not None
    return row


def looked(home: Path, url: str, **settings: object) -> Diagnosis:
    database = PostgresDatabase(url)
    look = Look(settings=settings_of(home, **settings), name=database.name, around=None)
    return diagnose_database(look, SystemClock(), database)


def test_however_many_threads_read_there_are_never_more_connections_than_are_told(store: Store) -> None:
    together = threading.Barrier(READERS)

    def read(conn: Connection) -> int:
        together.wait(timeout=20)
        return len(list_projects(conn))

    threads = [threading.Thread(target=lambda: store.read_now(read)) for _ in range(6 * READERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in threads)
    store.write_now(list_projects)
    now = _with_its_listener(store)
    assert (now.processes, now.ours) == (1, EACH_MAX)


def _with_its_listener(store: Store) -> ServerRow:
    assert _first(lambda: seen(store).processes)
    return seen(store)


def _first(look: Callable[[], T]) -> T:
    """What is seen as soon as there is something to see, else what is seen after twenty seconds."""
    ends_s = time.monotonic() + 20
    while not (found := look()) and time.monotonic() < ends_s:
        time.sleep(0.02)
    return found


def test_a_whole_process_with_a_worker_and_a_wiki_opens_no_more(url: str, tmp_path: Path) -> None:
    told = {"EVERKEPT_DATABASE_URL": url, "EVERKEPT_WIKI__INTERVAL_S": "1", "EVERKEPT_WORK__TICK_S": "0.05"}
    settings = load(told, tmp_path)

    async def go() -> None:
        application = await open_application(settings, worker=True)
        try:
            memory = await application.service()
            for n in range(8):
                await asyncio.gather(*(memory.status() for _ in range(12)), asyncio.sleep(0.3))
                await memory.write_page(f"Page {n}", "What it says.")
            status = await memory.status()
        finally:
            await application.close()
        assert status.server is not None
        assert (status.server.processes, status.server.each_max) == (1, EACH_MAX)
        assert status.server.ours <= EACH_MAX
        assert (status.server.deadlocks, status.server.conflicts, status.server.deaf) == (0, 0, None)

    asyncio.run(go())


def test_an_ordinary_role_counts_the_connections_of_others_too(url: str) -> None:
    with ExitStack() as more, psycopg.connect(ordinary_role(), autocommit=True) as raw:
        database = PostgresDatabase(ordinary_role())
        before = read_server(Connection(raw, database.dialect, SystemClock()))
        for _ in range(5):
            more.enter_context(psycopg.connect(server_url()))  # as another role, in another database
        after = read_server(Connection(raw, database.dialect, SystemClock()))
    assert before is not None
    assert after is not None
    assert (after.connections - before.connections, after.ours) == (5, before.ours)


def test_processes_that_may_open_more_than_the_server_takes_are_told_before_they_do(url: str, tmp_path: Path) -> None:
    with ExitStack() as more:
        for _ in range(17):
            more.enter_context(psycopg.connect(url, application_name="everkept-listener"))
        found = looked(tmp_path, ordinary_role() + SAFE)
        pooled = looked(tmp_path, ordinary_role() + SAFE, database_direct_url=url)
    (finding,) = found.findings
    assert finding.cause == "connections_short"
    assert finding.what.startswith("17 processes may open 102 connections, others have ")
    assert "raise max_connections by" in finding.mend
    assert (finding.evidence["processes"], finding.evidence["connections_max"]) == (17, 97)
    assert pooled.findings == []


def test_a_transaction_that_another_one_ended_is_counted(url: str, store: Store) -> None:
    """Two that want the same two rows in another order: the server ends one, which is told so and is taken back."""
    store.write_now(_add_two)
    ours_has_one, theirs_has_other = threading.Event(), threading.Event()

    def ours(conn: Connection) -> None:
        conn.raw.execute("update counters set value = 5 where name = 'one'")
        ours_has_one.set()
        theirs_has_other.wait(timeout=20)
        conn.raw.execute("update counters set value = 5 where name = 'other'")

    def theirs() -> None:
        with psycopg.connect(url) as raw:
            raw.execute("set deadlock_timeout = '60s'")
            raw.execute("update counters set value = 7 where name = 'other'")
            ours_has_one.wait(timeout=20)
            theirs_has_other.set()
            raw.execute("update counters set value = 7 where name = 'one'")

    thread = threading.Thread(target=theirs)
    thread.start()
    with pytest.raises(Exception, match="deadlock"):
        store.write_now(ours)
    thread.join(timeout=20)
    assert store.database.conflicts == 1
    assert store.read_now(_two) == [(7,), (7,)]


def _add_two(conn: Connection) -> None:
    conn.raw.execute("insert into counters(name, value) values('one', 1), ('other', 1)")


def _two(conn: Connection) -> list[Any]:
    return list(conn.raw.execute("select value from counters where name in ('one', 'other')"))


def test_a_process_that_is_not_heard_says_why_until_it_is(url: str, store: Store) -> None:
    assert _with_its_listener(store).processes == 1
    assert store.database.deaf is None
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'everkept-listener'"
        )
    why = _first(lambda: store.database.deaf)
    assert why is not None
    assert "connection" in why
    assert _first(lambda: store.database.deaf is None)
