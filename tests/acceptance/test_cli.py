"""The command line as people use it: real processes, a store of their own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from everkept.capture.importers import parse_jsonl
from everkept.demo import conversation

TIMEOUT_S = 60
Run = Callable[..., subprocess.CompletedProcess[str]]


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def environment(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """No setting of the developer's own, a home of the test's, and an address where nothing listens.

    Modules are compiled once for all processes, also where the checkout may not be written to.
    """
    plain = {name: value for name, value in os.environ.items() if not name.startswith("EVERKEPT_")}
    return plain | {
        "EVERKEPT_HOME": str(tmp_path / "home"),
        "EVERKEPT_BIND": f"127.0.0.1:{free_port()}",
        "COLUMNS": "100",
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(tmp_path_factory.getbasetemp() / "bytecode"),
    }


@pytest.fixture
def everkept(environment: dict[str, str]) -> Run:
    def run(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "everkept", *arguments]
        return subprocess.run(
            command, env=environment, input=stdin, capture_output=True, encoding="utf-8", timeout=TIMEOUT_S, check=False
        )

    return run


@contextmanager
def serving(environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A server that has said that it listens; at the end it is drained."""
    server = subprocess.Popen(
        [sys.executable, "-m", "everkept", "serve"], env=environment, stderr=subprocess.PIPE, encoding="utf-8"
    )
    assert server.stderr is not None
    try:
        line = next(line for line in server.stderr if "listens" in line)
        assert environment["EVERKEPT_BIND"] in line
        yield server
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=TIMEOUT_S)


def test_what_is_added_is_found_at_once(everkept):
    added = everkept("add", "I moved to Lisbon in March.", "--subject", "anna")
    assert added.returncode == 0, added.stderr
    event = added.stdout.split()[0]
    found = everkept("recall", "Where did I move to?", "--subject", "anna", "--json")
    assert found.returncode == 0, found.stderr
    assert event in [result["id"] for result in json.loads(found.stdout)["results"]]
    assert "using the store" in found.stderr


def test_what_is_added_with_wait_is_remembered(everkept):
    added = everkept("add", "I live in Lisbon.", "--subject", "anna", "--wait", "--json")
    assert added.returncode == 0, added.stderr
    assert json.loads(added.stdout)["receipts"][0]["state"] == "remembered"
    assert "Lisbon" in everkept("episodes", "--subject", "anna").stdout


def test_the_same_key_is_accepted_once(everkept):
    first = everkept("add", "hello", "--key", "k1", "--json")
    again = everkept("add", "hello", "--key", "k1", "--json")
    assert json.loads(again.stdout)["replayed"]
    assert json.loads(again.stdout)["receipts"][0]["event_id"] == json.loads(first.stdout)["receipts"][0]["event_id"]
    assert everkept("add", "something else", "--key", "k1").returncode == 4


def test_a_fact_is_stated_explained_forgotten_and_brought_back(everkept):
    stated = everkept("remember", "anna is allergic to hazelnuts", "--subject", "anna", "--json")
    assert stated.returncode == 0, stated.stderr
    fact = json.loads(stated.stdout)["id"]
    assert "hazelnuts" in everkept("why", fact).stdout
    assert everkept("forget", fact).returncode == 0
    assert everkept("facts", "--subject", "anna").stdout == ""
    assert everkept("forget", fact, "--undo").returncode == 0
    assert "hazelnuts" in everkept("facts", "--subject", "anna").stdout


def test_text_can_be_piped_in(everkept):
    assert everkept("add", stdin="from a pipe\n").returncode == 0
    assert "from a pipe" in everkept("threads", "show", "cli-me").stdout


def test_import_twice_adds_nothing_and_all_of_it_is_remembered(everkept):
    with conversation() as path:
        messages = sum(len(thread.messages) for thread in parse_jsonl(path).threads)
        first = everkept("import", str(path), "--json")
        assert first.returncode == 0, first.stderr
        assert json.loads(first.stdout)["stored"] == messages
        again = everkept("import", str(path), "--wait")
        assert again.returncode == 0, again.stderr
        assert "0 stored" in again.stdout
        assert f"{messages:,} of {messages:,} messages remembered" in again.stdout


def test_a_worker_ends_when_nothing_is_due(everkept):
    with conversation() as path:
        everkept("import", str(path))
    worked = everkept("worker", "--until-idle")
    assert worked.returncode == 0, worked.stderr
    status = json.loads(everkept("status", "--json").stdout)
    assert status["backlog_due"] == 0
    assert set(status["stages"]) == {"completed/completed"}


def test_status_check_exits_five_when_due_work_is_old(everkept, environment):
    everkept("add", "I live in Lisbon.")
    everkept("threads", "end", "cli-me")
    assert everkept("status", "--check").returncode == 0
    environment["EVERKEPT_STATUS__DUE_WORK_S"] = "0"
    tripped = everkept("status", "--check")
    assert tripped.returncode == 5
    assert "needs attention" in tripped.stderr
    assert everkept("status").returncode == 0


def test_erase_shows_first_then_leaves_nothing(everkept):
    everkept("add", "I live in Lisbon.", "--subject", "anna", "--wait")
    assert everkept("erase", "--subject", "anna").returncode == 2
    assert json.loads(everkept("erase", "--subject", "anna", "--dry-run", "--json").stdout)["dry_run"]
    erased = everkept("erase", "--subject", "anna", "--yes", "--json")
    assert erased.returncode == 0, erased.stderr
    assert json.loads(erased.stdout)["residue"] == 0
    assert json.loads(everkept("recall", "Lisbon", "--subject", "anna", "--json").stdout)["results"] == []


def test_export_holds_what_was_said(everkept):
    everkept("add", "I live in Lisbon.", "--subject", "anna")
    assert "I live in Lisbon." in everkept("export", "--subject", "anna").stdout


@pytest.mark.parametrize("arguments", [["why", "fct_99"], ["jobs", "retry", "job_99"], ["threads", "show", "nope"]])
def test_what_does_not_exist_is_four(everkept, arguments):
    missing = everkept(*arguments)
    assert (missing.returncode, missing.stdout) == (4, "")


def test_a_store_that_cannot_be_opened_is_not_an_empty_answer(everkept, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "everkept.db").write_bytes(b"this is not a database" * 1000)
    blocked = everkept("recall", "anything")
    assert blocked.returncode == 3
    assert blocked.stdout == ""
    assert "Traceback" not in blocked.stderr


def test_an_unknown_setting_is_named(everkept, environment):
    environment["EVERKEPT_WINDOW__IDEL_S"] = "60"
    refused = everkept("status")
    assert refused.returncode == 2
    assert "EVERKEPT_WINDOW__IDEL_S" in refused.stderr


def test_a_running_server_is_used_and_named(everkept, environment):
    everkept("add", "I live in Lisbon.", "--subject", "anna")
    with serving(environment):
        found = everkept("recall", "Where do I live?", "--subject", "anna", "--json")
        assert found.returncode == 0, found.stderr
        assert f"using the server at http://{environment['EVERKEPT_BIND']}" in found.stderr
        assert json.loads(found.stdout)["results"]


def test_a_project_that_the_running_server_has_not_is_named(everkept, environment):
    with serving(environment):
        found = everkept("status", "--project", "nowhere")
        assert found.returncode == 4
        assert f"using the server at http://{environment['EVERKEPT_BIND']}" in found.stderr
        assert "'nowhere'" in found.stderr
        assert "using the store" not in found.stderr


def test_a_server_of_another_home_is_not_used(everkept, environment, tmp_path):
    with serving(environment):
        environment["EVERKEPT_HOME"] = str(tmp_path / "other")
        added = everkept("add", "only here")
        assert added.returncode == 0, added.stderr
        assert "serves another store" in added.stderr
        assert "using the store" in added.stderr


def test_a_server_that_does_not_answer_is_could_not_look(everkept, environment):
    environment["EVERKEPT_URL"] = f"http://127.0.0.1:{free_port()}"
    assert everkept("recall", "anything").returncode == 3


def test_help_is_quick_because_it_loads_nothing_heavy(environment):
    code = "import sys; from everkept.doors.cli.main import run; run(['--help']); print(*sys.modules, file=sys.stderr)"
    shown = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=True,
    )
    heavy = {"pydantic", "sqlalchemy", "numpy", "httpx2", "fastapi", "everkept.bootstrap"}
    assert heavy.isdisjoint(shown.stderr.split())


def test_a_reader_that_leaves_early_is_no_failure(environment):
    command = f'"{sys.executable}" -m everkept config --json | head -c 10'
    left = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], env=environment, capture_output=True, timeout=TIMEOUT_S, check=False
    )
    assert left.returncode == 0, left.stderr
    assert b"Traceback" not in left.stderr
