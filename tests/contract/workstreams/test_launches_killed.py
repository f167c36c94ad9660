"""A process dies at each statement of prepare, accept and finish: the packet after it is the same packet, the cursor
where it belongs, and nothing is there twice (G11, I01)."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
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

pytestmark = pytest.mark.only_on("sqlite", reason="each death starts from a copy of the file as it was before")


class Died(Exception):
    """The process is gone: nothing after it happens."""


class Dying:
    """A driver's connection that does nothing any more from its statement number `at` on."""

    def __init__(self, raw: Any, at: int | None) -> None:
        self._raw = raw
        self._at = at
        self.passed = 0

    def execute(self, *args: Any) -> Any:
        return self._pass(self._raw.execute, *args)

    def executemany(self, *args: Any) -> Any:
        return self._pass(self._raw.executemany, *args)

    def _pass(self, statement: Callable[..., Any], *args: Any) -> Any:
        self.passed += 1
        if self._at is not None and self.passed >= self._at:
            raise Died
        return statement(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


class Process:
    """A client with the store in its own process, which dies where it is told."""

    def __init__(self, path: Path, *, die_at: int | None = None) -> None:
        self._die_at: int | None = None
        self.writing: list[Dying] = []
        self.clock = VirtualClock()
        self.store = Store(path, clock=self.clock, threads=False, connect=self._connect)
        self.store.open()
        project = self.store.write_now(ensure_project, "default", SECRET)
        tools = Tools(model=None, words=None, embedder=None)
        parts = Parts(
            store=self.store, settings=settings_of(path.parent), clock=self.clock, tools=tools,
            searcher=lambda: Searcher(None, Weights()), model_name="none",
        )  # fmt: skip
        self.service = LocalService(parts, project)
        for connection in self.writing:  # from here on
            connection.passed, connection._at = 0, die_at

    def _connect(self, path: Path, read_only: bool) -> Any:
        raw = connect_unsynced(path, read_only)
        if read_only:
            return raw
        self.writing.append(Dying(raw, None))
        return self.writing[-1]

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(work)

    def die(self) -> None:
        """The system takes its files, and with them its locks."""
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


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Claude Code built something in a launch that has ended."""
    path = tmp_path_factory.mktemp("worked") / "everkept.db"
    process = Process(path)
    first = process.run(process.service.prepare_launch(OWNER, checkout=HERE, agent="claude-code", key="k1"))
    process.run(process.service.finish_launch(
        first.id, fence=first.fence, native_session=CLAUDE, events=[prompt("Build the login"), said("Built")],
    ))  # fmt: skip
    process.store.close()
    return path


def killed_everywhere(worked: Path, folder: Path, act: Callable[[Process], object]) -> list[Process]:
    """A process for each instant, opened on what one left behind that died there; the last one lived."""
    survivors: list[Process] = []
    die_at = 1
    while True:
        path = folder / f"{act.__name__}-{die_at}" / "everkept.db"
        path.parent.mkdir()
        shutil.copy(worked, path)
        process = Process(path, die_at=die_at)
        with suppress(EverkeptError, Died):
            act(process)
        lived = process.passed < die_at
        process.die()
        survivors.append(Process(path))
        if lived:
            return survivors
        die_at += 1


def test_the_packet_after_a_crash_is_the_same_packet(worked: Path, tmp_path: Path) -> None:
    survivors = killed_everywhere(worked, tmp_path, prepare)
    assert len(survivors) > 10
    packets = set()
    for process in survivors:
        left = process.rows("select body from offers where launch_id = 2")
        launch = prepare(process)
        assert left in ([], [(text_of(launch),)])
        assert process.rows("select count(*) from launches") == [(2,)]
        assert process.rows("select count(*) from offers where launch_id = 2") == [(1,)]
        packets.add((launch.id, launch.fence, text_of(launch)))
    assert len(packets) == 1
    assert "Build the login" in next(iter(packets))[2]


def test_an_accept_that_died_is_offered_again_or_done(worked: Path, tmp_path: Path) -> None:
    for process in killed_everywhere(worked, tmp_path, accept):
        before = process.rows("select delivered from workstream_cursors where agent = 'codex'")
        accepted = process.rows("select accepted_at is not null from launches where id = 2")
        assert bool(before) == (accepted == [(1,)])
        accept(process)
        assert process.rows("select delivered from workstream_cursors where agent = 'codex'") == process.rows(
            "select packet_through from launches where id = 2"
        )
        assert process.rows("select state from offers where launch_id = 2") == [("acknowledged",)]


def test_a_finish_that_died_is_told_again_and_is_one_finish(worked: Path, tmp_path: Path) -> None:
    for process in killed_everywhere(worked, tmp_path, finish):
        finish(process)
        assert process.rows("select state, exit_code, source_cursor from launches where id = 2") == [
            ("finished", 0, "7")
        ]
        assert process.rows("select count(*) from events where content = 'Written'") == [(1,)]
        assert process.rows("select source_cursor from workstream_cursors where agent = 'codex'") == [("7",)]
        told = process.run(process.service.workstream_events("app/main")).items
        assert [e.text for e in told] == ["Build the login", "Built", "Written"]
