"""Sessions that exist on the disk are taken in by one command, and every command for agents answers in their folder."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.acceptance.test_cli import environment, serving

from everkept.doors.cli.main import run

__all__ = ["environment"]
"""A fixture that is another module's."""

TRANSCRIPTS = Path(__file__).parents[1] / "data" / "transcripts"
SOURCE = TRANSCRIPTS / "claude-reliability" / "claude-code-coverage-test-fix.jsonl"
REMOTE = "github.com/acme/app"


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


class Desk:
    """Somebody's home folder, with a clone in it and what Claude Code keeps of a session there.

    Commands run in this process, on a store of their own: that saves loading everything dozens of times.
    """

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.patch, self._capsys = monkeypatch, capsys
        self.clone = home / "code" / "app"
        self.kept = home / ".claude" / "projects" / "-code-app"
        (self.clone / ".git").mkdir(parents=True)
        (self.clone / ".git" / "config").write_text('[remote "origin"]\n\turl = git@github.com:Acme/App.git\n', "utf-8")
        (self.clone / ".git" / "HEAD").write_text("ref: refs/heads/main\n", "utf-8")
        self.kept.mkdir(parents=True)
        lines = [json.loads(line) for line in SOURCE.read_text("utf-8").splitlines()]
        self.lines = [json.dumps(one | {"cwd": str(self.clone)} if "cwd" in one else one) for one in lines]
        self.write(len(self.lines))

    def write(self, lines: int) -> None:
        (self.kept / "session.jsonl").write_text("\n".join(self.lines[:lines]) + "\n", "utf-8")

    def __call__(self, *arguments: str, stdin: str = "", cwd: Path | None = None) -> Done:
        self.patch.chdir(cwd or self.clone)
        self.patch.setattr("sys.stdin", io.StringIO(stdin))
        self._capsys.readouterr()
        code = run(arguments)
        return Done(code, *self._capsys.readouterr())

    def json(self, *arguments: str) -> Any:
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def desk(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Desk:
    home = tmp_path / "user"
    for name in set(os.environ) - set(environment):
        monkeypatch.delenv(name)
    for name, value in environment.items():
        if name.startswith("EVERKEPT_"):
            monkeypatch.setenv(name, value)
    for name, value in {"HOME": str(home), "USERPROFILE": str(home), "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)
    return Desk(home, monkeypatch, capsys)


def test_what_exists_is_found_by_itself_and_every_line_is_accounted_for(desk: Desk) -> None:
    unknown = desk("sessions")
    assert (unknown.returncode, unknown.stdout) == (4, "")
    assert "everkept import claude-code" in unknown.stderr
    done = desk("import", "claude-code")
    assert done.returncode == 0, done.stderr
    assert "38 lines = 24 used + 13 merged + 1 passed by + 0 unreadable" in done.stdout
    assert f"events: 24 new, 0 known, 0 revised → {REMOTE} (found by the remote)" in done.stdout
    assert "using the store in" in done.stderr
    assert "1 unchanged since" in desk("import", "claude-code").stdout
    again = desk.json("import", "claude-code", "--again")
    assert (again["sum"]["new"], again["sum"]["known"], again["sum"]["lines"]) == (0, 24, 38)


def test_a_file_that_has_grown_adds_its_tail_only(desk: Desk) -> None:
    desk.write(20)
    first = desk.json("import", "claude-code")["sum"]
    desk.write(38)
    second = desk.json("import", "claude-code")["sum"]
    assert first["new"] + second["new"] == 24
    assert 0 < second["new"] < 24
    for report in (first, second):
        passed = sum(report["passed_by"].values())
        assert report["lines"] == report["used"] + report["merged"] + passed + report["unreadable"]
    assert len(desk.json("sessions")["items"]) == 1


def test_the_folder_answers_wherever_one_stands_in_it_and_says_how_it_was_found(desk: Desk) -> None:
    desk("import", "claude-code")
    (desk.clone / "src").mkdir()
    listed = desk("sessions", cwd=desk.clone / "src")
    assert listed.returncode == 0, listed.stderr
    assert f"project {REMOTE}, found by the remote" in listed.stderr
    assert "digested" in listed.stdout
    session = desk.json("sessions")["items"][0]
    shown = desk("sessions", "show", session["id"])
    assert "multiply_numbers" in shown.stdout
    assert session["page"] in shown.stderr
    assert "multiply_numbers" in desk("pages", "show", session["page"]).stdout
    assert {item["kind"] for item in desk.json("timeline")["items"]} == {"session", "handoff"}
    assert desk("sessions", "--project", "nothing").returncode == 4


def test_a_handoff_is_offered_here_and_taken_once(desk: Desk) -> None:
    desk("import", "claude-code")
    listed = desk("handoffs")
    assert "left in this worktree" in listed.stderr
    handoff = desk.json("handoffs")["items"][0]["id"]
    assert "math_utils.py" in desk("handoffs", "show", handoff).stdout
    assert desk.json("handoffs")["items"][0]["state"] == "open"
    assert "math_utils.py" in desk("handoffs", "take", handoff, "--by", "ana").stdout
    assert desk("handoffs", "take", handoff).returncode == 4
    assert desk.json("handoffs")["items"] == []


def test_a_page_goes_through_its_versions_and_stays_deleted(desk: Desk) -> None:
    desk("import", "claude-code")
    assert desk("pages", "write", "House rules", "--kind", "rule", stdin="Use ruff.").returncode == 0
    assert "version 2" in desk("pages", "write", "House rules", "--kind", "rule", stdin="Use ruff, mypy.").stdout
    assert desk("pages", "write", "House rules", "--base", "1", stdin="Use flake8.").returncode == 4
    assert [one["version"] for one in desk.json("pages", "history", "house-rules")["items"]] == [2, 1]
    assert desk("pages", "show", "house-rules", "--version", "1").stdout == "Use ruff.\n"
    assert desk("pages", "delete", "house-rules").returncode == 0
    assert desk("pages", "show", "house-rules").returncode == 4
    assert desk.json("pages", "--kind", "rule")["items"] == []


def test_beside_a_server_of_this_home_the_import_goes_into_the_same_store(
    desk: Desk, environment: dict[str, str]
) -> None:
    url = f"http://{environment['EVERKEPT_BIND']}"
    with serving(environment):
        done = desk("import", "claude-code")
        assert done.returncode == 0, done.stderr
        assert f"beside the server at {url}" in done.stderr
        listed = desk("sessions")
        assert f"using the server at {url}" in listed.stderr
        assert f"project {REMOTE}, found by the remote" in listed.stderr
        assert "digested" in listed.stdout
        assert desk("sessions", cwd=desk.clone.parent).returncode == 4
        handoff = desk.json("handoffs")["items"][0]["id"]
        assert desk("handoffs", "take", handoff).returncode == 0
        desk.patch.setenv("EVERKEPT_URL", url)
        assert desk("import", "claude-code").returncode == 0
    refused = desk("import", "claude-code")
    assert refused.returncode == 2
    assert "EVERKEPT_URL" in refused.stderr


def test_a_session_is_erased_with_its_page_and_handoff(desk: Desk) -> None:
    desk("import", "claude-code")
    session = desk.json("sessions")["items"][0]["id"]
    assert desk.json("erase", "--session", session, "--yes")["residue"] == 0
    for command in ("sessions", "pages", "handoffs", "timeline"):
        assert desk.json(command)["items"] == []
    assert desk.json("import", "claude-code", "--again")["sum"]["new"] == 0


def test_an_import_may_leave_the_digests_to_a_worker_and_name_the_project(desk: Desk) -> None:
    done = desk("import", "claude-code", str(desk.kept), "--project", "mine", "--no-wait")
    assert done.returncode == 0, done.stderr
    assert "everkept worker --until-idle" in done.stderr
    assert [one["state"] for one in desk.json("sessions", "--project", "mine")["items"]] == ["open"]
    assert desk("worker", "--until-idle").returncode == 0
    assert [one["state"] for one in desk.json("sessions", "--project", "mine")["items"]] == ["digested"]


def test_what_is_no_transcript_of_the_agent_is_told(desk: Desk, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    shutil.copytree(TRANSCRIPTS / "entireio-cli", mixed)
    other = desk("import", "codex", str(mixed / "gemini-cli-session.json"))
    assert other.returncode == 5
    assert "codex writes no files like this" in other.stdout
    assert desk.json("import", "claude-code", str(mixed))["sum"]["files"] == 4
    assert desk("import", "claude-code", str(tmp_path / "nowhere")).returncode == 4
    nothing = desk("import", "codex")
    assert nothing.returncode == 0
    assert "no transcripts of codex" in nothing.stderr
    (desk.kept / "broken.jsonl").write_text(desk.lines[0] + '\n{"half of a li\n', "utf-8")
    broken = desk("import", "claude-code")
    assert broken.returncode == 5
    assert "line 2 cannot be read" in broken.stdout
