"""Layer 2 as the gate asks for it: one scenario, killed at each instant from one statement on.

Not collected with the other tests: `tests/crash/kill` is the layer's own smoke.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from everkept.prove.kill import Theatre, beginning
from everkept.prove.nursery import Nursery
from everkept.prove.torture import silence

INSTANTS = 12
PLACES = {
    "append": "insert into events", "timer": "insert into windows", "erase-thread": "insert into erasures",
    "webhook-parked": "insert into parked_changes", "workstream": "update launches set accepted_at",
}  # fmt: skip
"""Scenario → the first of its statements before which it is killed."""


@pytest.mark.parametrize("scenario", PLACES)
def test_kill(scenario: str, tmp_path: Path) -> None:
    with silence(), Nursery() as nursery:
        report = Theatre(tmp_path, nursery).run([scenario], beginning(PLACES[scenario], INSTANTS))
    assert [str(fallen) for fallen in report.fallen] == []
    assert report.kills >= 10
