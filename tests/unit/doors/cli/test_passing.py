"""What stands behind an agent is the agent's own, whatever it looks like."""

from __future__ import annotations

import pytest

from everkept.doors.cli.passing import marked, ours


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("run claude --help -x", "run claude -- --help -x"),
        ("run claude", "run claude --"),
        ("run claude -- --json", "run claude -- -- --json"),
        ("run --workstream w --project=p claude --project q", "run --workstream w --project=p claude -- --project q"),
        ("run --help", "run --help"),
        ("run --odd claude", "run --odd claude"),
        ("run", "run"),
        ("continue --model opus", "continue -- --model opus"),
        ("continue --agent codex --workstream w go", "continue --agent codex --workstream w -- go"),
        ("continue", "continue --"),
        ("continue --help", "continue --help --"),
        ("recall --json run claude", "recall --json run claude"),
    ],
)
def test_the_first_word_of_the_agent_is_marked(said: str, heard: str) -> None:
    assert marked(said.split()) == heard.split()


def test_an_agents_json_is_not_ours() -> None:
    assert "--json" not in ours(marked(["run", "claude", "--json"]))
    assert "--json" in ours(["recall", "x", "--json"])
