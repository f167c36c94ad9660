"""The life of a launch around its agent: a lease that ended is taken again, unless somebody else has it; what cannot be
told now is told later, and what a dead process left is picked up (I04)."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.stubs.agent_desk import a_desk
from tests.stubs.line_of_work import HERE, LineOfWork, prompt

from everkept.api.service import Service
from everkept.capture.identity import Checkout, look_at
from everkept.doors.cli import launch_tail, launches_left, launching, run
from everkept.doors.cli.launch_tail import Tail
from everkept.doors.cli.launching import Asked, Launching, pick_up
from everkept.errors import NotFound, Unavailable


class Way:
    """To the memory, while it is there."""

    def __init__(self, line: LineOfWork) -> None:
        self.line = line
        self.trouble: Exception | None = None

    @asynccontextmanager
    async def reach(self, _project: str) -> AsyncIterator[Service]:
        if self.trouble is not None:
            raise self.trouble
        yield self.line.service


class EndedAgent:
    """A process that ended at once, with code 3; a real one needs a main thread without others beside it."""

    pid = 4_194_304

    def __init__(self, *_: object) -> None:
        pass

    def started(self) -> AbstractContextManager[None]:
        return nullcontext()

    def wait(self) -> int:
        return 3


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LineOfWork]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    with a_desk(tmp_path / "home") as desk:
        yield LineOfWork(desk)


def launched(line: LineOfWork, way: Way) -> tuple[Launching, str]:
    asked = Asked(workstream=None, agent="claude-code")
    launch = line.desk.run(asked.prepare(line.service, HERE))
    made = Launching.of(launch, asked, project="default", checkout=HERE, home=line.desk.home, reach=way.reach)
    return made, launch.id


def test_a_heartbeat_keeps_the_lease_and_after_a_sleep_it_is_taken_again(line: LineOfWork) -> None:
    made, id_ = launched(line, Way(line))
    first = line.desk.run(line.service.get_launch(id_))
    for _ in range(4):
        line.clock.advance(60)
        line.desk.run(made.beat())
    assert line.desk.run(line.service.get_launch(id_)).fence == first.fence
    line.clock.advance(3_600)
    line.desk.run(made.beat())
    again = line.desk.run(line.service.get_launch(id_))
    assert (again.fence > first.fence, again.lease_until > first.lease_until) == (True, True)
    assert (made.taken_over, made.trouble) == (False, None)
    assert line.desk.run(made.finish(0)) is True
    assert line.desk.run(line.service.get_launch(id_)).state == "finished"


def test_one_that_was_taken_over_holds_nothing_up_and_is_told_so(line: LineOfWork) -> None:
    made, id_ = launched(line, Way(line))
    line.clock.advance(3_600)
    other = line.prepare("another", agent="codex")
    line.desk.run(made.beat())
    assert made.taken_over
    assert line.desk.run(made.finish(0)) is True
    assert line.desk.run(line.service.get_launch(other.id)).state in ("prepared", "running")
    assert line.desk.run(line.service.get_launch(id_)).state == "lost"


def test_what_cannot_be_told_at_the_end_is_picked_up_later(line: LineOfWork) -> None:
    way = Way(line)
    made, id_ = launched(line, way)
    way.trouble = Unavailable("down")
    line.desk.run(made.beat())
    assert line.desk.run(made.finish(3)) is False
    assert made.trouble is way.trouble
    assert line.desk.run(pick_up(line.desk.home, way.reach)) == 0, "whoever lives picks its own up"
    made._mark.release()  # as its death does
    assert line.desk.run(pick_up(line.desk.home, way.reach)) == 0
    way.trouble = None
    assert line.desk.run(pick_up(line.desk.home, way.reach)) == 1
    assert line.desk.run(line.service.get_launch(id_)).state == "finished"
    assert line.desk.run(pick_up(line.desk.home, way.reach)) == 0


def test_a_project_that_is_called_otherwise_meanwhile_loses_nothing_in_silence(
    line: LineOfWork, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is not found may be the project, and not the launch: its end is kept, and said to be untold."""
    way = Way(line)
    launching, launch = launched(line, way)
    way.trouble = NotFound("there is no project 'default'")
    assert not line.desk.run(launching.finish(0))
    assert launching.trouble is not None
    launching._mark.release()
    assert line.desk.run(pick_up(line.desk.home, way.reach)) == 0
    assert "there is no project 'default'" in capsys.readouterr().err
    way.trouble = None
    assert line.desk.run(pick_up(line.desk.home, way.reach)) == 1
    assert line.desk.run(line.service.get_launch(launch)).state == "finished"


def test_while_the_agent_of_a_dead_process_lives_its_launch_is_not_ended(line: LineOfWork) -> None:
    way = Way(line)
    made, id_ = launched(line, way)
    made.agent_is(os.getpid())
    made._mark.release()
    assert line.desk.run(pick_up(line.desk.home, way.reach)) == 1
    assert line.desk.run(line.service.get_launch(id_)).state in ("prepared", "running")
    [(mark, running)] = launches_left.left_behind(line.desk.home)
    assert running.launch == id_
    mark.release()


def test_what_fails_once_the_agent_has_run_takes_neither_its_exit_code_nor_its_launch(
    line: LineOfWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = Way(line)
    made, id_ = launched(line, way)
    way.trouble = OSError(errno.ENOSPC, "no space left")

    async def prepared(*_: object) -> tuple[Launching, str]:
        return made, "claude-code"

    monkeypatch.setattr(run, "_prepare", prepared)
    monkeypatch.setattr("everkept.config.load", lambda: SimpleNamespace(home=line.desk.home))
    monkeypatch.setattr(run, "is_off", lambda _: False)

    monkeypatch.setattr(run, "AgentProcess", EndedAgent)

    async def ask(_: object) -> Asked:
        raise AssertionError("it is prepared")

    assert run.launch_agent(ask, [], project=None, path="/bin/true") == 3
    assert "no space left" in str(made.trouble)
    assert line.desk.run(line.service.get_launch(id_)).state in ("prepared", "running")
    made._mark.release()
    way.trouble = None
    assert line.desk.run(pick_up(line.desk.home, way.reach)) == 1


def test_a_transcript_that_cannot_be_read_leaves_the_lease_alone(
    line: LineOfWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, id_ = launched(line, Way(line))
    before = line.desk.run(line.service.get_launch(id_))

    async def send(*_: object) -> int:
        raise PermissionError(errno.EACCES, "not yours")

    monkeypatch.setattr(Tail, "send", send)
    line.clock.advance(60)
    line.desk.run(made.beat())
    assert line.desk.run(line.service.get_launch(id_)).lease_until > before.lease_until
    assert "not yours" in str(made.trouble)


def test_one_that_cannot_be_picked_up_does_not_keep_the_next_from_being_launched(
    line: LineOfWork, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    way = Way(line)
    made, id_ = launched(line, way)
    made._mark.release()

    def no_disk(_: Path) -> Checkout:
        raise OSError(errno.EIO, "the disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(launching, "look_at", no_disk)
        assert line.desk.run(pick_up(line.desk.home, way.reach)) == 0
    assert f"what {id_} left cannot be told now: OSError: [Errno 5] the disk is gone" in capsys.readouterr().err
    assert line.desk.run(pick_up(line.desk.home, way.reach)) == 1


def test_a_mark_can_be_read_wherever_its_writing_was_cut_off(line: LineOfWork, monkeypatch: pytest.MonkeyPatch) -> None:
    made, id_ = launched(line, Way(line))

    def killed(*_: object) -> int:
        raise OSError(errno.EINTR, "killed")

    with monkeypatch.context() as broken:
        broken.setattr("os.write", killed)
        made.agent_is(os.getpid())
    made._mark.release()
    [(mark, running)] = launches_left.left_behind(line.desk.home)
    assert (running.launch, running.pid) == (id_, 0)
    mark.write(replace(running, pid=4_194_304))
    mark.write(replace(running, pid=7))
    mark.release()
    [(mark, running)] = launches_left.left_behind(line.desk.home)
    assert running.pid == 7
    mark.release()


def test_a_mark_that_says_nothing_or_nothing_clear_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "launches"
    folder.mkdir()
    beginning, broken = folder / "lch_1.json", folder / "lch_2.json"
    beginning.touch()
    broken.write_text('{"launch": "lch_')
    assert list(launches_left.left_behind(tmp_path)) == []
    assert (beginning.exists(), broken.exists()) == (True, True)
    said = capsys.readouterr().err
    assert (str(broken) in said, str(beginning) in said) == (True, False)


def test_a_launch_that_another_process_has_is_not_begun_again(line: LineOfWork) -> None:
    made, _ = launched(line, Way(line))
    with pytest.raises(BlockingIOError):
        launches_left.mark(line.desk.home, made._running)


@pytest.mark.parametrize(("folder", "told"), [("", 1), ("elsewhere", 0)], ids=["here", "elsewhere"])
def test_a_linked_session_without_a_unique_id_is_told_from_its_folder_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, told: int
) -> None:
    (tmp_path / "elsewhere").mkdir()
    cwd = str(tmp_path / folder)
    event = prompt("Go on", "main", "gemini", cwd=cwd)
    monkeypatch.setattr(launch_tail, "read_allowed", lambda *_, **__: (SimpleNamespace(events=[event]), None))
    tail = Tail("lch_1", "gemini", look_at(tmp_path), 0, tmp_path)
    assert len(tail._new_in(tmp_path / "chat.json", frozenset({"main"}))) == told
    assert tail._new_in(tmp_path / "chat.json", frozenset({"another"})) == []
