"""What a killed worker had begun is taken up by the next one of its home, and not when its leases end."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.factories import World, assert_lanes_count_right, kind_of

from everkept.domain.jobs import Done
from everkept.errors import LeaseLost, StoreUnavailable
from everkept.ports.clock import SystemClock
from everkept.ports.faults import Faults
from everkept.store.leases import expire_worker, live_slots, remove_worker, renew_leases
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


@contextmanager
def a_threaded_world(folder: Path, faults: Faults | None = None) -> Iterator[World]:
    store = Store(folder / "threaded.db", clock=SystemClock(), faults=faults)
    store.open()
    world = World(store, folder / "home", SystemClock(), work__tick_s=0.05)  # type: ignore[arg-type]
    yield world
    world.close()
    store.close()


@pytest.fixture
def threaded(tmp_path: Path) -> Iterator[World]:
    with a_threaded_world(tmp_path) as world:
        yield world


class Away:
    """A store that cannot be written while it is away."""

    def __init__(self) -> None:
        self.away = False

    def reach(self, point: str) -> None:
        if self.away and point == "writer.before_begin":
            raise StoreUnavailable("the disk is away")


def test_what_a_worker_could_not_give_back_at_its_end_is_taken_up_by_the_next(tmp_path: Path) -> None:
    faults = Away()
    with a_threaded_world(tmp_path, faults) as world:
        begun, goes_on = threading.Event(), threading.Event()

        async def run(args: Any, ctx: Any) -> Done:
            begun.set()
            await asyncio.sleep(0 if goes_on.is_set() else 600)
            return Done()

        def a_worker(owner: str) -> Worker:
            worker = Worker(world.runner(owner, kinds=kind_of(run), tasks=[]), world.settings, embedder_label="none")
            worker.start()
            return worker

        world.schedule("a")
        stopped = a_worker("stopped")
        assert begun.wait(10)
        faults.away = True
        stopped.stop(0.0)
        faults.away = False
        assert world.job("a")["owner"] == "stopped"
        goes_on.set()
        begun.clear()
        following = a_worker("next")
        try:
            assert begun.wait(10)
        finally:
            following.stop(10.0)
        assert (world.job("a")["state"], world.job("a")["crashes"]) == ("done", 1)
        assert not [path for path in (world.settings.home / "workers").rglob("*") if path.is_file()]


def test_whoever_holds_a_lease_has_not_signed_off(world: World) -> None:
    world.schedule("a")
    (lease,) = world.claim("ends", lease_s=LEASE_S)
    assert not world.write(remove_worker, "ends")
    world.finish(lease, Done())
    assert world.write(remove_worker, "ends")


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
