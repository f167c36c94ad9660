"""A clear or compaction that is told twice is one: for what was shown, and in the log (H03)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stubs.agent_desk import Desk, a_checkout, a_desk

from everkept.store.offers import SAME_START_US

SESSION = "019ae2f0-6b1d-7c3e-9a52-4f1d08b7c6e1"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with a_desk(tmp_path / "home") as made:
        yield made


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return a_checkout(tmp_path / "app")


def epochs(desk: Desk) -> list[int]:
    return [epoch for (epoch,) in desk.rows("select epoch from offers where native_id = :s order by id", s=SESSION)]


@pytest.mark.parametrize("source", ["clear", "compact"])
def test_a_start_that_is_heard_twice_begins_one_epoch(desk: Desk, app: Path, source: str) -> None:
    desk.work("codex", "019ae2f0-0000-7c3e-9a52-4f1d08b7c6e1", app)
    for told in ("startup", source, source):
        assert desk.start("claude-code", SESSION, app, told) != ""
    assert epochs(desk) == [0, 1], "the same start has the same offer"
    desk.clock.advance(SAME_START_US / 1e6)
    assert desk.start("claude-code", SESSION, app, source) != ""
    assert epochs(desk) == [0, 1, 2]


def test_a_boundary_that_two_hooks_tell_is_one_event(desk: Desk, app: Path) -> None:
    desk.prompt("claude-code", SESSION, app, "Fix the login")
    for event, more in (("SessionStart", {"source": "clear"}), ("PreCompact", {"trigger": "auto"}),
                        ("PostCompact", {"trigger": "auto"}), ("SessionEnd", {"reason": "other"})):  # fmt: skip
        for _ in range(2):  # a second apart
            desk.hook("claude-code", event, app, session_id=SESSION, **more)
    desk.hook("claude-code", "SessionStart", app, session_id=SESSION, source="resume")
    desk.settle()
    told = desk.rows("select word_in(metadata, 'kind'), word_in(metadata, 'detail') from events order by seq")
    assert told == [
        ("prompt", None), ("session_start", "clear"), ("compaction", "auto"), ("compaction", "auto"),
        ("session_end", "other"), ("session_start", "resume"),
    ]  # fmt: skip


def test_a_boundary_that_comes_again_later_is_another_one(desk: Desk, app: Path) -> None:
    desk.prompt("claude-code", SESSION, app, "Fix the login")
    for _ in range(2):
        desk.hook("claude-code", "PreCompact", app, session_id=SESSION, trigger="auto")
        desk.clock.advance(60)
    desk.settle()
    assert desk.rows("select count(*) from events where word_in(metadata, 'kind') = 'compaction'") == [(2,)]
