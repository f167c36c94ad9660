"""`everkept doctor` as people use it: on a file, on a file that is broken, beside a server and through one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def seen(done: subprocess.CompletedProcess[str]) -> tuple[int, list[str], dict[str, Any]]:
    """(exit code, causes, the whole answer) of `doctor --json`."""
    found: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, [finding["cause"] for finding in found["findings"]], found


def change(home: Path, statement: str) -> None:
    raw = choose_driver().module.connect(str(home / "everkept.db"), isolation_level=None)
    raw.execute(statement)
    raw.close()


def test_from_no_store_to_a_damaged_one(everkept: Run, home: Path) -> None:
    assert seen(everkept("doctor", "--json"))[:2] == (3, ["store_missing"])
    assert not home.exists(), "looking makes nothing"
    assert everkept("add", "I live in Lisbon.", "--subject", "anna").returncode == 0

    code, causes, found = seen(everkept("doctor", "--json", "--full"))
    assert (code, causes, found["ok"], found["looked"]) == (0, [], True, True)
    assert found["store"]["mode"] == "600"
    assert everkept("doctor").stdout.startswith("● nothing is wrong")

    change(home, "pragma user_version = 99")
    assert seen(everkept("doctor", "--json"))[:2] == (3, ["store_newer"])
    change(home, "pragma user_version = 1")

    (home / "everkept.db").write_bytes(b"\x00" * 5000)
    for side in home.glob("everkept.db-*"):
        side.unlink()
    assert seen(everkept("doctor", "--json"))[:2] == (5, ["store_corrupt"])


def test_a_cause_is_shown_with_its_evidence_and_what_mends_it(everkept: Run) -> None:
    everkept("projects", "set", "default", "memory.enabled=false")
    everkept("add", "I live in Lisbon.", "--subject", "anna")
    done = everkept("doctor")
    assert done.returncode == 5
    assert done.stdout.startswith("● 1 cause to mend")
    for words in (
        "Memory is off  memory_off", "memory is off in the project default", "threads 1 · messages 1",
        "What was said is kept and found", "everkept projects set default memory.enabled=true", "library", "held back",
    ):  # fmt: skip
        assert words in done.stdout
    assert everkept("projects", "set", "default", "memory.enabled=true").returncode == 0


def test_beside_a_server_and_through_one_the_same_is_found(everkept: Run, home: Path) -> None:
    with serving(home) as (_, url):
        address = url.removeprefix("http://")
        assert everkept("add", "I live in Lisbon.", EVERKEPT_BIND=address).returncode == 0
        for environment in ({"EVERKEPT_BIND": address}, {"EVERKEPT_URL": url}):
            code, causes, found = seen(everkept("doctor", "--json", "--full", **environment))
            assert (code, causes) == (0, [])
            assert (found["store"]["sync"], found["store"]["journal_mode"]) == ("full", "wal")
            assert len(found["workers"]) == 1
        beside = everkept("doctor", "--json")
        assert seen(beside)[:2] == (0, [])
        assert "reading the store" in beside.stderr
        (home / "everkept.db").chmod(0o644)
        assert seen(everkept("doctor", "--json", EVERKEPT_URL=url))[:2] == (5, ["open_to_others"])


def test_a_server_that_cannot_be_reached_could_not_be_looked_at(everkept: Run) -> None:
    done = everkept("doctor", "--json", EVERKEPT_URL="http://127.0.0.1:1")
    assert done.returncode == 3
    assert json.loads(done.stderr.splitlines()[-1])["error"]["code"] == "unavailable"
