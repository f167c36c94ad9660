"""What the pages ask the store: each answer bounded, and no large table read from end to end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.bench.web_pages import visited
from tests.bench.web_store import fill

from everkept.bootstrap import Application, open_application
from everkept.config import load
from everkept.doors.http.app import create_app
from everkept.store.sqlite import choose_driver, open_file
from everkept.store.store import Store

EVENTS, JOBS = 6_000, 600
ROWS_MAX = 501
"""The longest list that a page reads in one go, and one more to know whether there is more."""
RECALL_TABLE = "select p.id, case p.kind when"
"""What recall holds in memory of each passage: read once, and then what is new."""
LARGE = (
    "events", "passages", "jobs", "facts", "fact_events", "windows", "replies", "vectors", "page_versions", "handoffs",
)  # fmt: skip


@dataclass(slots=True)
class Recorder:
    """Connections that note each statement with its parameters and the number of rows it gave."""

    rows: dict[tuple[str, str], int] = field(default_factory=dict)
    asked: dict[tuple[str, str], Any] = field(default_factory=dict)
    page: str = ""

    def connect(self, path: Path, read_only: bool) -> Any:
        raw = open_file(choose_driver(), path, read_only=read_only)
        return _Connection(raw, self)

    def note(self, sql: str, given: Any, rows: int) -> None:
        key = self.page, " ".join(sql.split())
        self.rows[key] = max(rows, self.rows.get(key, 0))
        self.asked[key] = given


class _Connection:
    def __init__(self, raw: Any, recorder: Recorder) -> None:
        self._raw, self._recorder = raw, recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def execute(self, sql: str, given: Any = ()) -> Any:
        return _Cursor(self._raw.execute(sql, given), sql, given, self._recorder)


class _Cursor:
    def __init__(self, raw: Any, sql: str, given: Any, recorder: Recorder) -> None:
        self._raw, self._note = raw, lambda rows: recorder.note(sql, given, rows)
        self._rows = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())

    def fetchall(self) -> list[Any]:
        found: list[Any] = self._raw.fetchall()
        self._note(len(found))
        return found

    def fetchone(self) -> Any:
        self._note(1)
        return self._raw.fetchone()


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recorder, Path]:
    """Every page was visited once, over a store that has more of everything than a page shows."""
    home = tmp_path_factory.mktemp("large") / "home"
    fill(home, events=EVENTS, jobs_wanted=JOBS)
    recorder = Recorder()
    asyncio.run(_visit_all(home, recorder))
    return recorder, home / "everkept.db"


async def _visit_all(home: Path, recorder: Recorder) -> None:
    settings = load({"EVERKEPT_HOME": str(home)}, home)
    plain = await open_application(settings, worker=False)
    store = Store(home / "everkept.db", connect=recorder.connect)
    await asyncio.to_thread(store.open)
    application = Application(replace(plain.parts, store=store), None)
    try:
        transport = httpx2.ASGITransport(create_app(application, settings))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for path in await visited(client):
                recorder.page = path
                assert (await client.get(path, headers={"Accept": "text/html"})).status_code == 200, path
    finally:
        await application.close()
        await plain.close()


def test_no_statement_of_a_page_gives_more_rows_than_a_list_holds(asked: tuple[Recorder, Path]) -> None:
    recorder, _ = asked
    assert len(recorder.rows) > 200
    assert {
        (page, sql): rows
        for (page, sql), rows in recorder.rows.items() if rows > ROWS_MAX and not sql.startswith(RECALL_TABLE)
    } == {}  # fmt: skip


def test_no_page_reads_a_large_table_from_end_to_end(asked: tuple[Recorder, Path]) -> None:
    recorder, path = asked
    raw = open_file(choose_driver(), path, read_only=True)
    scanned = {
        (page, sql, name)
        for (page, sql), given in recorder.asked.items() if sql.startswith(("select", "with"))
        for name in _scanned([row[3] for row in raw.execute(f"explain query plan {sql}", given)], sql)
    }  # fmt: skip
    raw.close()
    assert scanned == set()


def _scanned(plan: list[str], sql: str) -> Iterator[str]:
    """The large tables that are read from end to end, and not in the order of their rows until a limit is reached."""
    made = {step.split()[1] for step in plan if step.startswith(("CO-ROUTINE", "MATERIALIZE"))}
    for step in plan:
        found = re.fullmatch(r"SCAN (\w+)", step)
        if found is None or found[1] in made or re.search(r"order by (\w+\.)?id( desc)? limit", sql):
            continue
        called = re.search(rf"(?:from|join|,) (\w+)(?: as)? {found[1]}\b", sql)
        table = called[1] if called else found[1]
        if table in LARGE:
            yield table
