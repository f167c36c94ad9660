"""A smoke of layer 2 on PostgreSQL: scenarios that start from a clone each; `--on postgresql --all` kills in all."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.postgres import server_url

from everkept.ports.faults import NoFaults
from everkept.prove.checks import check
from everkept.prove.grounds import DATABASE_URL, Clones, left_in
from everkept.prove.kill import Theatre, sample
from everkept.prove.nursery import Nursery
from everkept.prove.scenarios import SCENARIOS, playable
from everkept.prove.stage import START_US
from everkept.prove.torture import silence

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes cannot be forked on Windows")
SEED = 1
SOME = ("append-batch", "first-open", "lost-lease")
INSTANTS = 1


@pytest.fixture
def clones() -> Iterator[Clones]:
    with Clones(server_url()) as ground:
        yield ground


def databases() -> set[str]:
    with psycopg.connect(server_url(), autocommit=True) as raw:
        return {name for (name,) in raw.execute("select datname from pg_database").fetchall()}


def test_kill_breaks_nothing_in_a_database(clones: Clones, tmp_path: Path) -> None:
    before = databases()
    with silence(), Nursery() as nursery:
        theatre = Theatre(tmp_path, nursery, ground=clones)
        report = theatre.run(SOME, sample(SEED, INSTANTS), seed=SEED, double=0.2)
    assert [str(fallen) for fallen in report.fallen] == []
    assert [s.kills for s in report.scenarios] == [INSTANTS] * len(SOME)
    assert all(s.statements > 10 and s.changes > 2 for s in report.scenarios)
    assert databases() == before
    assert list(tmp_path.iterdir()) == []


def test_a_copy_of_a_database_is_looked_at_as_a_file_is(clones: Clones, tmp_path: Path) -> None:
    """What is broken in the database is broken in the copy; and where there is no store, there is none in it."""
    folder = tmp_path / "one"
    clones.make(folder)
    with left_in(folder) as store:
        assert store is None
    SCENARIOS["append"].play(folder, "act", START_US, NoFaults(), synced=False)
    with psycopg.connect((folder / DATABASE_URL).read_text("utf-8"), autocommit=True) as raw:
        raw.execute("update streams set last_seq = last_seq + 1")
    with left_in(folder) as store:
        assert store is not None
        found = [violation.what for violation in check(store)]
    assert "a stream's events have a gap, or its counter is not the last one" in found


def test_scenarios_of_files_are_not_played_on_a_server() -> None:
    left_out = set(SCENARIOS) - set(playable(on_a_server=True))
    assert left_out == {"backup", "restore", "checkpoint", "clean-again", "erase-held"}
    assert playable(on_a_server=False) == list(SCENARIOS)
