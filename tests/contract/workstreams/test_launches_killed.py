"""A process dies at each statement of prepare, accept and finish: the packet after it is the same packet, the cursor
where it belongs, and nothing is there twice (G11, I01)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.databases import UrlOf
from tests.factories import SECRET, connect_unsynced, settings_of
from tests.stubs.line_of_work import CLAUDE, CODEX, HERE, OWNER, prompt, said, text_of

from everkept.api.base import Parts
from everkept.api.local import LocalService
from everkept.api.workstream_views import Launch
from everkept.derive.tools import Tools
from everkept.errors import EverkeptError
from everkept.ports.clock import VirtualClock
from everkept.recall.rank import Weights
from everkept.recall.search import Searcher
from everkept.store.projects import ensure_project
from everkept.store.store import Store


class Died(Exception):
    """The process is gone: nothing after it happens."""


class Dying:
    """A driver's connection that does nothing any more from its statement number `at` on."""

    def __init__(self, raw: Any, at: int | None) -> None:
        self._raw = raw
        self._at = at
        self.passed = 0

    def execute(self, *args: Any, **kw: Any) -> Any:
        return self._pass(self._raw.execute, *args, **kw)

    def executemany(self, *args: Any) -> Any:
        return self._pass(self._raw.executemany, *args)

    def _pass(self, statement: Callable[..., Any], *args: Any, **kw: Any) -> Any:
        self.passed += 1
        if self._at is not None and self.passed >= self._at:
            raise Died
        return statement(*args, **kw)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


class Process:
    """A client with the store in its own process, which dies where it is told."""

    def __init__(self, path: Path, *, die_at: int | None = None) -> None:
        self._die_at: int | None = None
        self.writing: list[Dying] = []
        self.clock = VirtualClock()
        self.store = Store(path, clock=self.clock, threads=False, connect=connect_unsynced)
        self.store.open()
        self._connect, self.store.database.connect = self.store.database.connect, self._connect_to_die  # type: ignore[method-assign]
        project = self.store.write_now(ensure_project, "default", SECRET)
        tools = Tools(model=None, words=None, embedder=None)
        parts = Parts(
            store=self.store, settings=settings_of(path.parent), clock=self.clock, tools=tools,
            searcher=lambda: Searcher(None, Weights()), model_name="none",
        )  # fmt: skip
        self.service = LocalService(parts, project)
        for connection in self.writing:  # from here on
            connection.passed, connection._at = 0, die_at

    def _connect_to_die(self, *, read_only: bool) -> Any:
        raw = self._connect(read_only=read_only)
        if read_only:
            return raw
        self.writing.append(Dying(raw, None))
        return self.writing[-1]

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(work)

    def die(self) -> None:
        """The system takes its files and connections, and with them its locks."""
        for connection in self.writing:
            connection._raw.close()
        self.store.close()

    @property
    def passed(self) -> int:
        return sum(connection.passed for connection in self.writing)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self.store.read_now(lambda conn: conn.raw.execute(sql).fetchall())
        return found


def prepare(process: Process) -> Launch:
    launch: Launch = process.run(process.service.prepare_launch(
        OWNER, checkout=HERE, agent="codex", native_session=CODEX, key="k2"))  # fmt: skip
    return launch


def accept(process: Process) -> None:
    process.run(process.service.accept_offer(str(prepare(process).offer)))


def finish(process: Process) -> None:
    launch = prepare(process)
    process.run(process.service.finish_launch(
        launch.id, fence=launch.fence, native_session=CODEX, events=[said("Written", CODEX, "codex")],
        source_cursor="7", exit_code=0,
    ))  # fmt: skip


@dataclass(frozen=True)
class Worked:
    """Where a store is, and how another one is made that begins as it is."""

    path: Path
    places: UrlOf


@pytest.fixture
def worked(tmp_path: Path, each_database: UrlOf) -> Worked:
    """Claude Code built something in a launch that has ended."""
    each_database(tmp_path / "first.db")
    path = tmp_path / "worked.db"
    process = Process(path)
    first = process.run(process.service.prepare_launch(OWNER, checkout=HERE, agent="claude-code", key="k1"))
    process.run(process.service.finish_launch(
        first.id, fence=first.fence, native_session=CLAUDE, events=[prompt("Build the login"), said("Built")],
    ))  # fmt: skip
    process.store.close()
    return Worked(path, each_database)


def killed_everywhere(worked: Worked, folder: Path, act: Callable[[Process], object]) -> Iterator[Process]:
    """A process for each instant, opened on what one left behind that died there; the last one lived."""
    die_at, lived = 1, False
    while not lived:
        path = folder / f"{act.__name__}-{die_at}" / "store.db"
        path.parent.mkdir()
        worked.places.copy(worked.path, path)
        process = Process(path, die_at=die_at)
        with suppress(EverkeptError, Died):
            act(process)
        lived = process.passed < die_at
        process.die()
        survivor = Process(path)
        yield survivor
        survivor.store.close()
        die_at += 1


def test_the_packet_after_a_crash_is_the_same_packet(worked: Worked, tmp_path: Path) -> None:
    packets = []
    for process in killed_everywhere(worked, tmp_path, prepare):
        left = process.rows("select body from offers where launch_id > 1")
        launch = prepare(process)
        assert left in ([], [(text_of(launch),)])
        assert process.rows("select count(*) from launches") == [(2,)]
        assert process.rows("select count(*) from offers where launch_id > 1") == [(1,)]
        # A server gives the number of an offer that died with its transaction to no other.
        packets.append((launch.fence, re.sub(r"off_\d+", "off_", text_of(launch))))
    assert len(packets) > 10
    assert len(set(packets)) == 1
    assert "Build the login" in packets[0][1]


def test_an_accept_that_died_is_offered_again_or_done(worked: Worked, tmp_path: Path) -> None:
    for process in killed_everywhere(worked, tmp_path, accept):
        before = process.rows("select delivered from workstream_cursors where agent = 'codex'")
        accepted = process.rows("select accepted_at is not null from launches where id > 1")
        assert bool(before) == (accepted == [(1,)])
        accept(process)
        assert process.rows("select delivered from workstream_cursors where agent = 'codex'") == process.rows(
            "select packet_through from launches where id > 1"
        )
        assert process.rows("select state from offers where launch_id > 1") == [("acknowledged",)]


def test_a_finish_that_died_is_told_again_and_is_one_finish(worked: Worked, tmp_path: Path) -> None:
    for process in killed_everywhere(worked, tmp_path, finish):
        finish(process)
        assert process.rows("select state, exit_code, source_cursor from launches where id > 1") == [
            ("finished", 0, "7")
        ]
        assert process.rows("select count(*) from events where content = 'Written'") == [(1,)]
        assert process.rows("select source_cursor from workstream_cursors where agent = 'codex'") == [("7",)]
        told = process.run(process.service.workstream_events("app/main")).items
        assert [e.text for e in told] == ["Build the login", "Built", "Written"]
