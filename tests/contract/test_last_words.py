"""The last words of an agent are told where it stands, though no transcript tells them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stubs.agent_desk import a_checkout, a_desk

QUESTION = "Should I delete the old importer as well?"


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_last_words_that_a_hook_tells_stand_in_page_and_handoff(tmp_path: Path, agent: str) -> None:
    with a_desk(tmp_path / "home") as desk:
        app = a_checkout(tmp_path / "app")
        desk.prompt(agent, "s1", app, "Rename the parser and everything that calls it. " * 12)
        desk.hook(agent, "Stop", app, session_id="s1", transcript_path=None, last_assistant_message=QUESTION)
        desk.hook(agent, "SessionEnd", app, session_id="s1", reason="exit")
        desk.settle()
        [(handoff,)] = desk.rows("select body from handoffs where state = 'open'")
        assert f"Where it stands, in the agent's last words:\n> {QUESTION}" in handoff
        assert f"Left open:\n- The agent asked: “{QUESTION}”" in handoff
        [(page,)] = desk.rows(
            "select v.body from page_versions v join pages g on g.id = v.page_id where g.kind = 'session'"
        )
        assert f"## What the agent said\n\n- Last message:\n\n> {QUESTION}" in page
