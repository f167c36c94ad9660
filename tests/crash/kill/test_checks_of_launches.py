"""The checks after a kill see what of a launch is there by halves: a packet, an offer or an end (G11)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from everkept.prove.checks import check
from everkept.prove.grounds import DATABASE
from everkept.prove.scenarios_workstreams import WORKSTREAM_SCENARIOS
from everkept.prove.stage import Stage
from everkept.store.sqlite import choose_driver

DAMAGES = {
    "a packet is accepted and its cursor gone": "update workstream_cursors set delivered = 0",
    "a packet is not accepted and its offer taken up": "update launches set accepted_at = null",
    "the end told a cursor that no session has": "update workstream_cursors set source_cursor = null",
}


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A line of work from agent to agent, to its end."""
    folder = tmp_path_factory.mktemp("worked")
    (scenario,) = [s for s in WORKSTREAM_SCENARIOS if s.name == "workstream"]
    stage = Stage(folder, scenario.cast)
    scenario.act(stage)
    stage.close()
    return folder


def test_check_finds_nothing_where_launches_are_whole(worked: Path) -> None:
    assert check(worked / DATABASE) == []


@pytest.mark.parametrize("sql", DAMAGES.values(), ids=[name.replace(" ", "-") for name in DAMAGES])
def test_check_names_what_of_a_launch_is_there_by_halves(worked: Path, tmp_path: Path, sql: str) -> None:
    folder = Path(shutil.copytree(worked, tmp_path / "copy"))
    raw = choose_driver().module.connect(str(folder / DATABASE), isolation_level=None)
    raw.execute(sql)
    raw.close()
    assert {violation.guarantee for violation in check(folder / DATABASE)} == {"G11"}
