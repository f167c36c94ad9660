"""A worker that is gone is noticed by its silence, long before its leases end (C01, C10)."""

from __future__ import annotations

from tests.factories import World

from everkept.store.jobs import expire_leases, renew_leases


def test_jobs_of_a_worker_that_was_not_seen_are_taken_back_before_their_lease_ends(world: World) -> None:
    runner = world.runner()
    world.write(renew_leases, runner.owner, 4, 600.0)
    world.schedule("a")
    world.promote()
    (lease,) = world.claimed(owner=runner.owner).leases
    world.tick(60)
    assert world.write(expire_leases, 5, 100, 70.0) == []
    world.tick(20)
    (gone,) = world.write(expire_leases, 5, 100, 70.0)
    assert (gone.job, gone.dead) == (lease.job, False)
    assert world.job("a")["state"] == "waiting"


def test_a_worker_that_the_store_does_not_know_yet_keeps_its_lease(world: World) -> None:
    world.schedule("a")
    world.promote()
    world.claimed()
    world.tick(300)
    assert world.write(expire_leases, 5, 100, 70.0) == []
