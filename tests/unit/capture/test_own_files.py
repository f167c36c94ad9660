"""An agent is not told what stands in a file that it loads by itself."""

import pytest

from everkept.capture.own_files import loads_itself


@pytest.mark.parametrize(
    ("agent", "source"),
    [
        ("claude-code", "file:CLAUDE.md"),
        ("claude-code", "file:web/CLAUDE.md"),
        ("claude-code", "file:.claude/rules/tests.md"),
        ("claude-code", "file:~/.claude/CLAUDE.md"),
        ("claude-code", "file:~/.claude/projects/-code-app/memory/MEMORY.md"),
        ("codex", "file:AGENTS.md"),
        ("codex", "file:~/.codex/AGENTS.md"),
        ("gemini", "file:GEMINI.md"),
        ("gemini", "file:~/.gemini/GEMINI.md"),
        ("cursor", "file:AGENTS.md"),
        ("cursor", "file:web/.cursor/rules/react.mdc"),
        ("opencode", "file:AGENTS.md"),
    ],
)
def test_an_agent_loads_its_own_files(agent: str, source: str) -> None:
    assert loads_itself(agent, source)


@pytest.mark.parametrize(
    ("agent", "source"),
    [
        ("codex", "file:CLAUDE.md"),
        ("claude-code", "file:AGENTS.md"),
        ("cursor", "file:~/.codex/AGENTS.md"),
        ("gemini", "file:~/.claude/CLAUDE.md"),
        ("claude-code", None),
        ("claude-code", "https://example.com/CLAUDE.md"),
        ("", "file:CLAUDE.md"),
    ],
)
def test_it_is_told_what_other_agents_load(agent: str, source: str | None) -> None:
    assert not loads_itself(agent, source)
