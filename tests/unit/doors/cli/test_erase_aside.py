"""`erase` names what it could not tell whose it is, and `erase --set-aside` destroys it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.doors.cli.fake_service import FakeService

from everkept.api import views as v
from everkept.doors.cli.main import run


@pytest.fixture
def aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a home in which one record lies aside."""
    monkeypatch.setenv("EVERKEPT_HOME", str(tmp_path))
    folder = tmp_path / "spool" / "aside"
    folder.mkdir(parents=True)
    (folder / "1700000000000000000-1-1.json").write_text("{torn")
    (folder / "1700000000000000000-1-1.json.reason").write_text("it is torn")
    return folder


def test_erase_names_the_records_that_may_hold_words_of_it_and_what_erases_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = v.ErasePlan(scope="session ses_1", rows={"sessions": 1}, residue=0, dry_run=False, set_aside=2)
    assert run(["erase", "--subject", "anna", "--yes"], opener=FakeService(erase=plan)) == 0
    told = capsys.readouterr().err
    assert "2 records of hooks that could not be taken in may hold words of it" in told
    assert "everkept erase --set-aside" in told


def test_what_lies_aside_is_erased_with_its_reasons(aside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["erase", "--set-aside", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"set_aside": 1, "erased": 0, "dry_run": True}
    assert len(list(aside.iterdir())) == 2
    assert run(["erase", "--set-aside", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"set_aside": 1, "erased": 1, "dry_run": False}
    assert list(aside.iterdir()) == []


def test_what_lies_aside_is_erased_by_itself_and_not_without_a_yes(aside: Path) -> None:
    assert run(["erase", "--set-aside", "--session", "ses_1", "--yes"]) == 2
    assert run(["erase", "--set-aside"]) == 2
    assert len(list(aside.iterdir())) == 2
