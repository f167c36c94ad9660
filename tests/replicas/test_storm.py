"""A smoke of the storm over real processes, on both databases; `python -m tests.proof.storm` is its long form."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.proof.storm import NATS_SERVER, on_a_file, on_a_server
from tests.stubs.own_client import OwnClient

from everkept.prove.storm.report import StormReport
from everkept.prove.storm.run import Storm
from everkept.prove.storm.ways import PlainHttp

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are frozen and killed by signals of POSIX")
SEED = 4
WAYS = (PlainHttp, OwnClient)


def held(report: StormReport) -> None:
    assert report.violations == [], "\n".join(report.lines())
    assert report.messages > 0
    assert report.changes > 0
    assert sum(report.strikes.values()) > 0


def test_nothing_is_lost_stuck_or_done_twice_on_postgresql_whatever_is_struck(tmp_path: Path) -> None:
    plan = Storm(seed=SEED, seconds=15.0, workers=3, clients=8, between_s=1.5, nats_server=NATS_SERVER)
    report = on_a_server(tmp_path, plan, ways=WAYS)
    held(report)
    assert report.from_nats > 0
    assert report.not_run == []


def test_nothing_is_lost_stuck_or_done_twice_on_a_file_whatever_is_struck(tmp_path: Path) -> None:
    plan = Storm(seed=SEED, seconds=10.0, workers=2, clients=8, between_s=2.0)
    held(on_a_file(tmp_path, plan, ways=WAYS))
