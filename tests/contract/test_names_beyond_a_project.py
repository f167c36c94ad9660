"""What is told beyond one project calls each as it is opened: else its name leads to another one, or to none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.merging import Merging

from everkept.config import Settings
from everkept.domain.changes import NATS_CONSUMER
from everkept.domain.nats_seen import NatsSeen, StreamSeen
from everkept.store.changes import ensure_consumer
from everkept.store.consumers import list_consumers
from everkept.store.diagnosis.look import Look
from everkept.store.diagnosis.nats import changes_missing
from everkept.store.joblist import list_jobs
from everkept.store.projects import find_project, move_to_workspace
from everkept.store.stale_pages import recent_worktrees
from everkept.store.status import read_lanes

MOVED = "research/old"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Merging]:
    """With a project that works and was moved to another workspace."""
    made = Merging(tmp_path)
    with made.in_old():
        made.work_on("one")
        made.add("t", "I live in Lisbon")
        made.write(ensure_consumer, made.old.id, NATS_CONSUMER)
    made.write(move_to_workspace, "old", "research")
    yield made
    made.shut()


def opened(world: Merging, name: str) -> bool:
    return world.read(find_project, name) is not None


def test_lanes_consumers_jobs_and_worktrees_name_a_project_that_can_be_opened(world: Merging) -> None:
    world.clock.advance(10 * 24 * 3600)
    lanes = {lane.project for lane in world.read(read_lanes, None)}
    consumers = {consumer.project for consumer in world.read(list_consumers, None)}
    jobs = {job.project for job in world.read(list_jobs, world.old.id, None, None, None, 10)}
    worktrees = {project for project, _ in world.read(recent_worktrees, 0, 10)}
    assert MOVED in lanes
    assert MOVED in consumers
    assert jobs == {MOVED}
    assert worktrees <= {MOVED}
    assert all(opened(world, name) for name in lanes | consumers | jobs | worktrees)


def test_doctor_looks_for_changes_that_nats_lost_in_a_project_of_another_workspace(world: Merging) -> None:
    settings: Settings = world.settings
    stream = StreamSeen(name=settings.nats.changes_stream, made_at=2**60, replicas=3, messages=0, differs=())
    seen = NatsSeen(server="nats:4222", streams=(stream,), published={MOVED: 100})
    look = Look(settings=settings, name="here", around=None, nats=seen)
    assert world.read(changes_missing, look) == []
