"""What `install` and `uninstall` say to somebody who does not know them yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from everkept import wiring
from everkept.doors.cli.main import run


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("EVERKEPT_HOME", str(tmp_path / ".everkept"))
    return tmp_path


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_an_agent_that_nobody_knows_is_wrong_usage_that_names_the_known_ones(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "vim"]) == 2
    err = capsys.readouterr().err
    assert "vim is none of the agents that can be wired" in err
    assert all(name in err for name in wiring.AGENTS)


def test_uninstall_says_that_the_memory_stays_and_how_it_goes(person: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (person / ".everkept").mkdir()
    assert run(["uninstall", "codex"]) == 0
    err = capsys.readouterr().err
    assert f"the memory itself stays in {person / '.everkept'}; deleting that folder destroys it for good" in err
