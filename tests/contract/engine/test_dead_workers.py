"""A worker that is gone is noticed by its silence, long before its leases end (C01, C10)."""

from __future__ import annotations

from tests.factories import World

from everkept.store.leases import WORKER_KEPT_S, expire_leases, prune_workers, renew_leases


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


def test_a_worker_is_forgotten_once_nothing_is_leased_to_it(world: World) -> None:
    """While a lease names it, `expire_leases` needs to know when it was last seen."""
    world.write(renew_leases, "w1", 4, 600.0)
    world.schedule("a")
    (_,) = world.claim("w1")
    world.tick(2 * WORKER_KEPT_S)
    assert world.write(prune_workers) == 0
    assert len(world.write(expire_leases, 5, 100, 70.0)) == 1
    assert world.write(prune_workers) == 1
