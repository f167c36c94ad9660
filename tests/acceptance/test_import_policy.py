"""What `.everkept.toml`, `EVERKEPT_OFF` and `<private>` keep out of an import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.stubs.replayed import RECORDED

from everkept.doors.cli.main import run

RECORDING = RECORDED / "claude-reliability" / "claude-code-coverage-test-fix.jsonl"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the recorded session worked; its transcript lies beside."""
    top = tmp_path / "app"
    (top / ".git").mkdir(parents=True)
    text = RECORDING.read_text("utf-8")
    worked_in = next(cwd for line in text.splitlines() if (cwd := json.loads(line).get("cwd")))
    (tmp_path / "session.jsonl").write_text(text.replace(worked_in, str(top)), "utf-8")
    monkeypatch.setenv("EVERKEPT_BIND", "127.0.0.1:1")
    monkeypatch.chdir(top)
    return top


def imported(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(["import", "claude-code", str(folder.parent / "session.jsonl"), "--no-wait", "--json"])
    out, told = capsys.readouterr()
    return code, out, told


def kept(capsys: pytest.CaptureFixture[str]) -> str:
    """Every word that is kept of the session."""
    words = ["sessions", "--json"]
    assert run(words) == 0
    (session,) = json.loads(capsys.readouterr().out)["items"]
    assert run(["sessions", "show", session["id"], "--json"]) == 0
    return capsys.readouterr().out


def test_everkept_off_refuses_an_import_and_says_why(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERKEPT_OFF", "1")
    code, out, told = imported(folder, capsys)
    assert (code, out) == (2, "")
    assert "EVERKEPT_OFF keeps everything out" in told
    monkeypatch.setenv("EVERKEPT_OFF", "0")
    assert imported(folder, capsys)[0] == 0


def test_a_folder_that_is_off_keeps_an_import_out_and_the_report_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / ".everkept.toml").write_text("off = true\n")
    code, out, _ = imported(folder, capsys)
    report: dict[str, Any] = json.loads(out)
    assert (code, report["sum"]["new"], report["sum"]["projects"]) == (0, 0, {})
    (note,) = report["files"][0]["notes"]
    assert note.startswith("kept out as the folder's .everkept.toml says: ")
    assert note.endswith("by off = true")


def test_an_import_keeps_no_words_of_prompts_where_the_folder_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.loads(line) for line in (folder.parent / "session.jsonl").read_text("utf-8").splitlines()]
    first = next(
        line["message"]["content"] for line in lines
        if line.get("type") == "user" and isinstance(line["message"]["content"], str)
    )  # fmt: skip
    (folder / ".everkept.toml").write_text("prompts = false\n")
    code, out, _ = imported(folder, capsys)
    assert code == 0
    assert "by prompts = false" in json.loads(out)["files"][0]["notes"][-1]
    told = kept(capsys)
    assert "not kept" in told
    assert json.dumps(first[:60])[1:-1] not in told
