"""The life of a launch around its agent: a lease that ended is taken again, unless somebody else has it; what cannot be
told now is told later, and what a dead process left is picked up (I04)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.stubs.agent_desk import a_desk
from tests.stubs.line_of_work import HERE, LineOfWork

from everkept.api.service import Service
from everkept.doors.cli import launches_left
from everkept.doors.cli.launching import Asked, Launching, pick_up
from everkept.errors import EverkeptError, Unavailable


class Way:
    """To the memory, while it is there."""

    def __init__(self, line: LineOfWork) -> None:
        self.line = line
        self.trouble: EverkeptError | None = None

    @asynccontextmanager
    async def reach(self, _project: str) -> AsyncIterator[Service]:
        if self.trouble is not None:
            raise self.trouble
        yield self.line.service


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
    launching, id_ = launched(line, Way(line))
    first = line.desk.run(line.service.get_launch(id_))
    for _ in range(4):
        line.clock.advance(60)
        line.desk.run(launching.beat())
    assert line.desk.run(line.service.get_launch(id_)).fence == first.fence
    line.clock.advance(3_600)
    line.desk.run(launching.beat())
    again = line.desk.run(line.service.get_launch(id_))
    assert (again.fence > first.fence, again.lease_until > first.lease_until) == (True, True)
    assert (launching.taken_over, launching.trouble) == (False, None)
    assert line.desk.run(launching.finish(0)) is True
    assert line.desk.run(line.service.get_launch(id_)).state == "finished"


def test_one_that_was_taken_over_holds_nothing_up_and_is_told_so(line: LineOfWork) -> None:
    launching, id_ = launched(line, Way(line))
    line.clock.advance(3_600)
    other = line.prepare("another", agent="codex")
    line.desk.run(launching.beat())
    assert launching.taken_over
    assert line.desk.run(launching.finish(0)) is True
    assert line.desk.run(line.service.get_launch(other.id)).state in ("prepared", "running")
    assert line.desk.run(line.service.get_launch(id_)).state == "lost"


def test_what_cannot_be_told_at_the_end_is_picked_up_later(line: LineOfWork) -> None:
    way = Way(line)
    launching, id_ = launched(line, way)
    way.trouble = Unavailable("down")
    line.desk.run(launching.beat())
    assert line.desk.run(launching.finish(3)) is False
    assert launching.trouble is way.trouble
    assert line.desk.run(pick_up(line.desk.home, way.reach)) == 0, "whoever lives picks its own up"
    launching._mark.release()  # as its death does
    assert line.desk.run(pick_up(line.desk.home, way.reach)) == 0
    way.trouble = None
    assert line.desk.run(pick_up(line.desk.home, way.reach)) == 1
    assert line.desk.run(line.service.get_launch(id_)).state == "finished"
    assert line.desk.run(pick_up(line.desk.home, way.reach)) == 0


def test_while_the_agent_of_a_dead_process_lives_its_launch_is_not_ended(line: LineOfWork) -> None:
    way = Way(line)
    launching, id_ = launched(line, way)
    launching.agent_is(os.getpid())
    launching._mark.release()
    assert line.desk.run(pick_up(line.desk.home, way.reach)) == 1
    assert line.desk.run(line.service.get_launch(id_)).state in ("prepared", "running")
    [(mark, running)] = launches_left.left_behind(line.desk.home)
    assert running.launch == id_
    mark.release()
