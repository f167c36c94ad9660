"""`backup`, `restore` and `db` as people use them: real processes, a store of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.stubs.real_server import serving

from everkept.store.sqlite import choose_driver

TIMEOUT_S = 60
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def everkept(home: Path) -> Run:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("EVERKEPT_")}

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        own = {"EVERKEPT_HOME": str(home), "EVERKEPT_BIND": "127.0.0.1:1", "COLUMNS": "100"}
        return subprocess.run(
            [sys.executable, "-m", "everkept", *arguments], env=plain | own | environment,
            capture_output=True, encoding="utf-8", timeout=TIMEOUT_S, check=False,
        )  # fmt: skip

    return run


def test_a_backup_is_restored_and_what_was_erased_since_is_named(everkept: Run, home: Path, tmp_path: Path) -> None:
    backup = str(tmp_path / "b.db")
    assert everkept("add", "I live in Lisbon.", "--subject", "anna").returncode == 0
    made = everkept("backup", backup)
    assert made.returncode == 0, made.stderr
    assert "1 message" in made.stdout
    assert "verified" in made.stdout
    assert everkept("erase", "--thread", "cli-anna", "--yes").returncode == 0
    assert "Lisbon" not in everkept("recall", "Lisbon", "--subject", "anna").stdout

    restored = everkept("restore", backup)
    assert restored.returncode == 0, restored.stderr
    assert "everkept erase --project default --thread cli-anna" in restored.stderr
    assert "Lisbon" in everkept("recall", "Lisbon", "--subject", "anna").stdout
    assert len(list(home.glob("everkept.replaced-*.db"))) == 1


def test_json_has_the_facts_of_backup_and_restore(everkept: Run, tmp_path: Path) -> None:
    backup = str(tmp_path / "b.db")
    everkept("add", "hello")
    made = json.loads(everkept("backup", backup, "--json").stdout)
    assert (made["path"], made["counts"]["messages"]) == (backup, 1)
    restored = json.loads(everkept("restore", backup, "--json").stdout)
    assert restored["counts"] == made["counts"]
    assert Path(restored["replaced"]).is_file()
    assert restored["erased_since"] == []


def test_a_backup_does_not_overwrite_unless_forced(everkept: Run, tmp_path: Path) -> None:
    backup = str(tmp_path / "b.db")
    everkept("add", "hello")
    assert everkept("backup", backup).returncode == 0
    again = everkept("backup", backup)
    assert again.returncode == 4
    assert "--force" in again.stderr
    assert everkept("backup", backup, "--force").returncode == 0


def test_without_a_store_there_is_nothing_to_back_up_or_check(everkept: Run, home: Path, tmp_path: Path) -> None:
    for arguments in (("backup", str(tmp_path / "b.db")), ("db", "check"), ("db", "upgrade")):
        done = everkept(*arguments)
        assert done.returncode == 4
        assert "there is no store" in done.stderr
    assert not home.exists()
    assert everkept("restore", str(tmp_path / "b.db")).returncode == 4


def test_a_backup_needs_the_store_itself(everkept: Run, tmp_path: Path) -> None:
    done = everkept("backup", str(tmp_path / "b.db"), EVERKEPT_URL="http://127.0.0.1:1")
    assert done.returncode == 2
    assert "EVERKEPT_URL" in done.stderr


def test_a_running_server_is_backed_up_and_not_restored_over(everkept: Run, home: Path, tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    backup = str(tmp_path / "b.db")
    with serving(home):
        assert everkept("backup", backup).returncode == 0
        assert everkept("db", "check").returncode == 0
        refused = everkept("restore", backup)
        assert refused.returncode == 4
        assert "another process" in refused.stderr
        assert not list(home.glob("*.replaced-*"))
    assert everkept("restore", backup).returncode == 0


def test_a_damaged_backup_cannot_be_restored(everkept: Run, home: Path, tmp_path: Path) -> None:
    everkept("add", "hello")
    (tmp_path / "b.db").write_text("no database")
    done = everkept("restore", str(tmp_path / "b.db"))
    assert done.returncode == 3
    assert "cannot be read as a store" in done.stderr
    assert sorted(path.name for path in home.glob("*.db")) == ["everkept.db"]


def test_check_says_what_is_fine_and_what_is_not(everkept: Run, home: Path) -> None:
    everkept("add", "hello")
    fine = everkept("db", "check", "--json")
    assert fine.returncode == 0, fine.stderr
    names = {check["name"] for check in json.loads(fine.stdout)["checks"]}
    assert names >= {"journal", "sync", "integrity", "full text"}

    raw = choose_driver().module.connect(str(home / "everkept.db"))
    raw.execute("delete from passage_text")
    raw.execute("update streams set subject_id = 999")
    raw.commit()
    raw.close()
    (home / "everkept.db").chmod(0o644)
    wrong = everkept("db", "check")
    assert wrong.returncode == 5
    tripped = {line.split()[1].rstrip(":") for line in wrong.stdout.splitlines() if line.startswith("TRIP")}
    assert tripped == {"private", "references", "full"}


def test_check_of_a_file_that_is_no_database_needs_attention(everkept: Run, home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "everkept.db").write_bytes(b"this is no database " * 1000)
    done = everkept("db", "check")
    assert done.returncode == 5
    assert "not a database" in done.stderr


def test_upgrade_of_an_up_to_date_store_does_nothing(everkept: Run, home: Path) -> None:
    everkept("add", "hello")
    done = json.loads(everkept("db", "upgrade", "--json").stdout)
    assert done["from"] == done["to"]
    assert done["copy"] is None
    assert not list(home.glob("*.before-*"))


def test_a_newer_store_is_refused_by_every_command(everkept: Run, home: Path) -> None:
    everkept("add", "hello")
    raw = choose_driver().module.connect(str(home / "everkept.db"))
    raw.execute("pragma user_version = 999")
    raw.close()
    for arguments in (("recall", "hello"), ("db", "upgrade"), ("backup", str(home / "b.db"))):
        done = everkept(*arguments)
        assert done.returncode == 3
        assert "use a newer Everkept" in done.stderr
    assert everkept("db", "check").returncode == 5


def test_the_printed_schema_makes_the_store(everkept: Run, home: Path, tmp_path: Path) -> None:
    printed = everkept("db", "sql").stdout
    assert not home.exists()
    raw = choose_driver().module.connect(str(tmp_path / "by-hand.db"))
    raw.executescript(printed)
    by_hand = {row[0] for row in raw.execute("select name from sqlite_master")}
    raw.close()
    everkept("add", "hello")
    raw = choose_driver().module.connect(str(home / "everkept.db"))
    made = {row[0] for row in raw.execute("select name from sqlite_master")}
    raw.close()
    assert made - by_hand == {"alembic_version", "sqlite_autoindex_alembic_version_1", "schema_support"}
