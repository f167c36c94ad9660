"""What was shown is noted in the project of its offer, wherever the session had gone by then (G11)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stubs.agent_desk import Desk, a_checkout, a_desk

SESSION = "0199aaaa-1111-7222-8333-444455556666"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with a_desk(tmp_path / "home") as made:
        yield made


def test_a_session_that_went_to_another_project_is_not_shown_the_same_twice(desk: Desk, tmp_path: Path) -> None:
    app = a_checkout(tmp_path / "app")
    other = a_checkout(tmp_path / "other", remote="https://example.com/acme/other")
    desk.work("claude-code", "s0", app)
    desk.work("claude-code", "s9", other)
    desk.hook("codex", "UserPromptSubmit", app, session_id=SESSION, prompt="hello there")
    desk.settle()
    given = desk.prompt("codex", SESSION, other, "Where did we stop?")
    assert "project example.com/acme/app, found by session" in given
    assert "Where the last session left off" in given
    assert "Where the last session left off" not in desk.prompt("codex", SESSION, other, "Where did we stop?")
    assert desk.rows("select state from offers where id = (select min(id) from offers)") == [("shown",)]


def test_who_is_confined_to_a_project_notes_nothing_in_another(desk: Desk, tmp_path: Path) -> None:
    app = a_checkout(tmp_path / "app")
    desk.work("claude-code", "s0", app)
    asked = desk.hook("codex", "SessionStart", app, session_id=SESSION)
    name = asked.pop("name")
    answer = desk.run(desk.hooks.answer({"hook": asked, "name": name, "budget_ms": 10_000}))
    shown = {"format": 1, "event": "shown", "agent": "codex", "session": SESSION, "cwd": str(app), "at_ns": 1}
    for project, confined, state in [("default", True, "offered"), ("example.com/acme/app", True, "shown")]:
        ingest = desk.app.ingest(project=project, confined=confined)
        assert desk.run(ingest.record("1-1-1.json", {**shown, "offer": answer["offer"]})) == []
        assert desk.rows("select state from offers") == [(state,)]
