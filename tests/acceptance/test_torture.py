"""`everkept torture` on a real disk: what it says, what it leaves behind, and what it says when it cannot look."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from everkept.doors.cli.main import run
from everkept.prove import power, torture
from everkept.prove.checks import Violation
from everkept.prove.kill import Fallen, KillReport, ScenarioReport
from everkept.prove.power import PowerReport
from everkept.prove.storm.report import StormReport

no_fork = pytest.mark.skipif(sys.platform == "win32", reason="processes cannot be forked on Windows")


@no_fork
def test_torture_kills_and_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(power, "why_not", lambda: "apsw is not installed: pip install 'everkept[prove]'")
    (tmp_path / "mine.txt").write_text("not to be touched", "utf-8")
    asked = ["torture", "--only", "kill", "--only", "power", "--seconds", "8", "--seed", "3"]
    code = run([*asked, "--dir", str(tmp_path), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (code, found["violations"], found["seed"]) == (0, [], 3)
    assert found["kill"]["kills"] > 0
    assert found["processes"] == {"not_run": "--only leaves it out"}
    assert found["power"]["not_run"] == "apsw is not installed: pip install 'everkept[prove]'"
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_torture_could_not_look_at_a_folder_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["torture", "--seconds", "1", "--dir", str(tmp_path / "none")]) == 3
    said = capsys.readouterr().err
    assert said == f"error: nothing was tried: {tmp_path / 'none'}: No such file or directory\n"


def test_torture_could_not_look_at_a_disk_that_is_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torture, "ROOM_BYTES", 10**18)
    assert run(["torture", "--seconds", "1", "--dir", str(tmp_path), "--json"]) == 3
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "store_full"
    assert list(tmp_path.iterdir()) == []


@no_fork
def test_torture_could_not_look_where_the_time_was_over_before_the_first_kill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine: the process that forks was up when the time was over."""
    monkeypatch.setattr(power, "why_not", lambda: "apsw is not installed: pip install 'everkept[prove]'")
    monkeypatch.setattr(torture, "_kill", lambda *_: KillReport())
    assert run(["torture", "--only", "kill", "--seconds", "1", "--dir", str(tmp_path)]) == 3
    page = capsys.readouterr().out
    assert "Could not look: nothing was killed before the time was over" in page
    assert "Nothing broke" not in page


@no_fork
def test_torture_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    """Ctrl-C while it kills."""
    command = [sys.executable, "-m", "everkept", "torture", "--dir", str(tmp_path)]
    # A shell's background jobs ignore the signal, and what they start inherits that.
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    ) as process:
        assert process.stderr is not None
        assert any("killing processes" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == "interrupted\n"
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "asked",
    [
        ["--seconds", "0"],
        ["--workers", "0"],
        ["--clients", "1000"],
        ["--database-url", "sqlite:///a.db"],
        ["--restart-command", "true"],
    ],
)
def test_torture_refuses_what_makes_no_sense(asked: list[str], tmp_path: Path) -> None:
    assert run(["torture", *asked, "--dir", str(tmp_path)]) == 2
    assert list(tmp_path.iterdir()) == []


def test_torture_could_not_look_at_a_server_that_does_not_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = f"postgresql://postgres@/postgres?host={tmp_path}"
    assert run(["torture", "--database-url", nobody, "--seconds", "1", "--dir", str(tmp_path)]) == 3
    assert "the database is not available" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def stormed(*violations: str) -> StormReport:
    """A storm that struck twice, and found this."""
    return StormReport(
        database="a database of its own on PostgreSQL at its socket", seconds=60.0, servers=2, workers=4, clients=16,
        answers=900, repeats=30, messages=1_234, strikes={"killed": 1, "frozen for two leases": 1}, weather={},
        append_s=[], other_s=[], longest_silence_s=3.0, longest_overdue_s=0.6, refused_finishes=2, deadlocks=0,
        changes=700, given_again=9, from_nats=0, looked_for=20, violations=violations,
        not_run=["NATS: no server of it was named"],
    )  # fmt: skip


@pytest.mark.parametrize("violations", [(), ("G1: told 1 times, there 0 times (default/chat: 'hello')",)])
def test_torture_says_what_a_storm_showed(
    violations: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = torture.Orders(seed=7, seconds=60.0, layers=("processes",), database_url="postgresql://me:hush@there/it")
    done = torture.Torture(
        directory=Path("/somewhere/everkept-torture-1"), orders=orders, seconds=70.0, kill=KillReport(),
        kill_not_run=torture.NOT_ASKED_FOR, power=PowerReport(images=0, violations=[], not_run=torture.NO_DISK),
        storm=stormed(*violations), storm_not_run=None,
    )  # fmt: skip
    monkeypatch.setattr(torture, "torture", lambda *_a, **_kw: done)
    assert run(["torture"]) == (1 if violations else 0)
    page = " ".join(capsys.readouterr().out.split())
    assert "1,234 messages were acknowledged and 700 changes followed, 2 finishes of workers" in page
    assert "what was not struck: NATS: no server of it was named" in page
    assert ("nothing acknowledged is lost" in page) != bool(violations)
    assert ("G1: told 1 times, there 0 times (default/chat: 'hello')" in page) == bool(violations)
    assert ("everkept torture --seed 7 --seconds 60 --only processes --database-url …" in page) == bool(violations)
    assert "hush" not in page


def planted(violations: int) -> torture.Torture:
    """A run that found so many violations."""
    broken = Violation(guarantee="G3", what="messages wait in no window", where="1 0 1")
    fallen = Fallen(scenario="append", die_at=7, boundary="after commit", violation=broken)
    scenario = ScenarioReport(name="append", kills=40, double_kills=2, states=9, fallen=[fallen] * violations)
    return torture.Torture(
        directory=Path("/somewhere/everkept-torture-1"), orders=torture.Orders(seed=12, seconds=60.5), seconds=99.0,
        storm=None, storm_not_run="there is no server to strike: pip install 'everkept[server]'",
        kill=KillReport(scenarios=[scenario], statements={"insert"}), kill_not_run=None,
        power=PowerReport(images=0, violations=[], not_run="apsw is not installed: pip install 'everkept[prove]'"),
    )  # fmt: skip


@pytest.mark.parametrize(("violations", "code"), [(0, 0), (1, 1)])
def test_torture_says_what_was_shown_and_what_was_not(
    violations: int, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torture, "torture", lambda *_a, **_kw: planted(violations))
    assert run(["torture"]) == code
    page = capsys.readouterr().out
    assert "Killed 42 processes" in page
    assert "power cuts: apsw is not installed: pip install 'everkept[prove]'" in page
    assert "processes: there is no server to strike: pip install 'everkept[server]'" in page
    assert "with seed 12" in page
    assert ("everkept torture --seed 12 --seconds 61" in page) == bool(violations)
    assert ("G3: messages wait in no window (1 0 1) — append, killed at 7 (after commit)" in page) == bool(violations)
    assert ("loses nothing and does nothing twice" in page) != bool(violations)
