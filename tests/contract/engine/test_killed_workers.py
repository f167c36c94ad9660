"""What a killed worker had begun is taken up by the next one of its home, and not when its leases end."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.factories import World, assert_lanes_count_right, kind_of

from everkept.domain.jobs import Done
from everkept.errors import LeaseLost
from everkept.ports.clock import SystemClock
from everkept.store.jobs import expire_worker, live_slots, renew_leases
from everkept.store.store import Store
from everkept.work.presence import Presence
from everkept.work.worker import Worker

LEASE_S = 600.0


def test_all_that_a_dead_worker_held_is_taken_back_and_nothing_of_another(world: World) -> None:
    for key in "abc":
        world.schedule(key)
    lost, _ = world.claim("killed", free=2, lease_s=LEASE_S)
    (kept,) = world.claim("other", lease_s=LEASE_S)
    for owner in ("killed", "other"):
        world.write(renew_leases, owner, 4, LEASE_S)

    gone = world.write(expire_worker, "killed", 5)
    assert [(job.owner, job.dead) for job in gone] == [("killed", False)] * 2
    assert world.write(expire_worker, "killed", 5) == []
    assert {world.job(key)["state"] for key in "ab"} == {"waiting"}
    assert [world.job(key)["crashes"] for key in "abc"] == [1, 1, 1]  # booked with the claim, undone by a finish
    assert world.read(live_slots, 60.0) == 4
    assert_lanes_count_right(world)
    with pytest.raises(LeaseLost):
        world.finish(lost, Done())
    assert world.finish(kept, Done()) == "done"


def test_what_killed_its_worker_too_often_is_dead(world: World) -> None:
    world.schedule("a")
    for times in (1, 2):
        world.claim("killed", lease_s=LEASE_S)
        assert [job.dead for job in world.write(expire_worker, "killed", 2)] == [times == 2]
    assert (world.job("a")["state"], world.job("a")["error_class"]) == ("dead", "crashed")
    assert_lanes_count_right(world)


@pytest.fixture
def threaded(tmp_path: Path) -> Iterator[World]:
    store = Store(tmp_path / "threaded.db", clock=SystemClock())
    store.open()
    world = World(store, tmp_path / "home", SystemClock(), work__tick_s=0.05)  # type: ignore[arg-type]
    yield world
    world.close()
    store.close()


def test_a_worker_takes_up_what_the_one_before_it_was_killed_over(threaded: World) -> None:
    """tests/unit/work/test_presence.py kills processes; here the file of one that is gone is all there is."""
    ran = threading.Event()

    async def run(args: Any, ctx: Any) -> Done:
        ran.set()
        return Done()

    threaded.schedule("a")
    threaded.claim("killed", lease_s=LEASE_S)
    gone = Presence(threaded.settings.home, threaded.store.database.name, "killed")
    gone.announce()
    worker = Worker(threaded.runner(kinds=kind_of(run), tasks=[]), threaded.settings, embedder_label="none")
    worker.start()
    try:
        assert not ran.wait(0.5)  # it lives
        assert gone._held is not None
        os.close(gone._held)
        assert ran.wait(10)
        assert [file.name for file in gone._folder.iterdir()] == ["w1"]
    finally:
        worker.stop(1.0)
    assert (threaded.job("a")["state"], threaded.job("a")["crashes"]) == ("done", 1)
    assert list(gone._folder.iterdir()) == []
