"""What hooks left in the spool: each command takes it in first, for moments, and says what still waits (H01, F04)."""

from __future__ import annotations

import json
import shutil
import sys

import pytest
from tests.acceptance.test_agents import Machine, machine

from everkept.capture.spool import Spool

__all__ = ["machine"]
MORE_THAN_FITS = 3_000
"""Records that no machine takes in within a command's 200 ms."""


@pytest.fixture
def asleep(machine: Machine) -> Machine:
    """No worker starts by itself."""
    (machine.home / "worker.json").unlink(missing_ok=True)
    return machine


@pytest.mark.parametrize(
    "words", [("sessions",), ("handoffs",), ("timeline",), ("pages",), ("recall", "lighthouse")], ids=" ".join
)
def test_a_command_takes_in_first_what_a_hook_left(asleep: Machine, words: tuple[str, ...]) -> None:
    asleep.prompt("claude-code", "s-1", "Mend the lighthouse lamp")
    assert len(Spool(asleep.home).names()) == 1

    done = asleep.everkept(*words)

    assert done.returncode == 0, done.stderr
    assert not Spool(asleep.home).names()
    assert "still wait" not in done.stderr
    assert asleep.value("select content from events") == "Mend the lighthouse lamp"


def test_what_still_waits_is_said_and_its_folder_is_not_called_unknown(asleep: Machine) -> None:
    asleep.prompt("claude-code", "s-1", "Mend the lighthouse lamp", cwd=asleep.checkout("other"))
    [name] = Spool(asleep.home).names()
    new = asleep.home / "spool" / "new"
    for number in range(MORE_THAN_FITS):
        shutil.copy(new / name, new / f"{1_700_000_000_000_000_000 + number:020d}-1-0.json")
    asleep.prompt("claude-code", "s-2", "Paint the boat")

    unknown = asleep.everkept("sessions")
    told = asleep.everkept("status")

    assert "records of hooks still wait to be taken in, and may be of this folder" in unknown.stderr
    assert f"note: {len(Spool(asleep.home).names()):,} records of hooks still wait" in told.stderr


def test_doctor_counts_what_waits_as_heard_and_says_that_no_worker_starts(machine: Machine) -> None:
    done = machine.everkept("install", "claude-code", "--yes", "--interpreter", sys.executable)
    assert done.returncode == 0, done.stderr
    machine.work_through()
    (machine.home / "worker.json").unlink()
    machine.prompt("claude-code", "s-1", "Mend the lighthouse lamp")

    found = json.loads(machine.everkept("doctor", "--json").stdout)

    assert found["spool"]["waiting"] == 1
    assert found["agents"][0]["last_heard_at"] is not None
    [broken] = [finding for finding in found["findings"] if finding["cause"] == "hooks_broken"]
    assert "worker.json is missing" in broken["what"]
