"""What an agent is told of instruction files at its start: those of others, as they stand on the disk now (E03)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stubs.agent_desk import Desk, a_checkout, a_desk

from everkept.api.page_files import import_pages


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with a_desk(tmp_path / "home") as made:
        yield made


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return a_checkout(tmp_path / "app")


def take(desk: Desk, app: Path) -> None:
    desk.run(import_pages(desk.app.parts, desk.project_of("s1"), app, app.parent))


def test_an_agent_is_not_told_its_own_file_and_the_others_are(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    (app / "CLAUDE.md").write_text("Use tabs.")
    take(desk, app)
    assert "Use tabs." not in desk.start("claude-code", "s2", app)
    assert "Use tabs." in desk.start("codex", "s3", app)


def test_a_page_that_was_edited_says_more_than_its_file_and_is_told(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    (app / "CLAUDE.md").write_text("Use tabs.")
    take(desk, app)
    desk.run(desk.service(app).write_page("CLAUDE.md", "Use tabs of eight.", slug="claude-md", kind="rule"))
    assert "Use tabs of eight." in desk.start("claude-code", "s2", app)


def test_a_rule_that_its_file_does_not_say_any_more_is_not_handed_out(desk: Desk, app: Path) -> None:
    desk.work("claude-code", "s1", app)
    (app / "CLAUDE.md").write_text("Use tabs.")
    take(desk, app)
    (app / "CLAUDE.md").write_text("Use spaces.")
    os.utime(app / "CLAUDE.md", (time.time() + 60, time.time() + 60))
    given = desk.start("codex", "s2", app)
    assert "Use spaces." in given
    assert "Use tabs." not in given
