"""Claim: at most the free slots, in turn, one per serial key, and never what is not due (design §4, G7)."""

from __future__ import annotations

import pytest
from tests.factories import MINUTE_S, US, World, assert_lanes_count_right

from everkept.domain.jobs import Done, Retry
from everkept.store.jobs import discard_by_hand, expire_leases, release_by_hand


def keys(leases) -> list[str]:
    return [lease.key for lease in leases]


def test_claim_takes_at_most_the_free_slots(world: World) -> None:
    for n in range(5):
        world.schedule(f"a{n}", lane=world.lane(f"s{n}"))

    assert len(world.claim(free=2)) == 2
    assert len(world.claim(free=0)) == 0
    assert len(world.claim(free=9, slots=9)) == 3


def test_claim_takes_the_lowest_due_time_first_within_a_lane(world: World) -> None:
    for key, due in (("late", 3), ("first", 1), ("middle", 2)):
        world.schedule(key, due_in=due)
    world.tick(5)

    assert keys(world.claim(free=3)) == ["first", "middle", "late"]


def test_claim_leaves_what_is_not_due(world: World) -> None:
    world.schedule("a", due_in=10)
    assert world.claim() == []
    world.tick(10)
    assert keys(world.claim()) == ["a"]


def test_claim_leases_one_job_per_serial_key(world: World) -> None:
    world.schedule("a", serial_key="facts:1:1")
    world.schedule("b", serial_key="facts:1:1")
    world.schedule("c")

    (first, other) = world.claim(free=3)
    assert keys([first, other]) == ["a", "c"]
    world.finish(first, Done())
    assert keys(world.claim(free=3)) == ["b"]


def test_the_database_refuses_a_second_lease_of_a_serial_key(world: World) -> None:
    world.schedule("a", serial_key="s")
    world.schedule("b", serial_key="s")
    world.claim()

    with pytest.raises(Exception, match="UNIQUE"):
        world.do("update jobs set state = 'leased', owner = 'x', lease_until = 1 where key = 'b'")


def test_b05_a_timer_pushed_out_while_it_was_ready_is_not_claimed_early(world: World) -> None:
    world.schedule("t", due_in=10, debounce_max_us=US * 3600)
    world.schedule("u", due_in=10)
    world.tick(10)
    world.promote()
    world.schedule("t", due_in=10, debounce_max_us=US * 3600)

    assert keys(world.claim(free=4)) == ["u"]
    world.tick(5)
    assert world.claim(free=4) == []
    assert world.job("t")["state"] == "waiting"
    assert_lanes_count_right(world)
    world.tick(5)
    assert keys(world.claim()) == ["t"]


def test_a_lane_holds_all_slots_but_one(world: World) -> None:
    for n in range(8):
        world.schedule(f"a{n}")

    assert len(world.claim(free=4, slots=4)) == 3
    world.schedule("b", lane=world.lane("another"))
    assert keys(world.claim(free=1, slots=4)) == ["b"]


def test_a_lane_may_hold_the_only_slot(world: World) -> None:
    world.schedule("a")
    assert keys(world.claim(free=1, slots=1)) == ["a"]


def test_the_lanes_of_one_project_may_fill_all_slots(world: World) -> None:
    for n in range(4):
        world.schedule(f"a{n}", lane=world.lane(f"s{n}"))

    assert len(world.claim(free=4, slots=4)) == 4


def test_claim_takes_only_what_has_a_permit(world: World) -> None:
    for n in range(3):
        world.schedule(f"m{n}", lane=world.lane(f"s{n}"), uses="model")
    world.schedule("l", lane=world.lane("z"))

    assert sorted(keys(world.claim(free=4, uses={"model": 1, "local": 4}))) == ["l", "m0"]
    assert world.claim(free=4, uses={"local": 4}) == []
    assert len(world.claim(free=4, uses={"model": 4, "local": 4})) == 2


def test_claim_sets_owner_and_lease_and_a_fence_that_only_grows(world: World) -> None:
    world.schedule("a")
    fences = []
    for n in range(1, 4):
        (lease,) = world.claim(f"w{n}", lease_s=60)
        job = world.job("a")
        assert (job["owner"], job["lease_until"], job["fence"]) == (f"w{n}", 60, lease.fence)
        fences.append(lease.fence)
        world.finish(lease, Retry(world.clock.now_us(), "transient", "x", spend=False))

    assert fences == sorted(set(fences))


def test_two_workers_never_hold_the_same_job(world: World) -> None:
    for n in range(10):
        world.schedule(f"a{n}", lane=world.lane(f"s{n % 3}"))
    held = [key for n in range(5) for key in keys(world.claim(f"w{n}", free=2, slots=10))]

    assert len(held) == len(set(held)) == 10


def test_blocked_projects_in_front_do_not_hide_one_that_may_run(make_world) -> None:
    """A dead worker still holds leases: every lane it held is blocked by its serial key, and comes first in turn."""
    worlds = [make_world(project=f"p{n}") for n in range(12)]
    for n, each in enumerate(worlds[:-1]):
        each.schedule(f"held{n}", serial_key=f"s{n}")
    leases = worlds[0].claim("dead", free=11, slots=12)
    assert len(leases) == 11
    for n, each in enumerate(worlds[:-1]):
        each.schedule(f"blocked{n}", serial_key=f"s{n}")
    worlds[-1].do("update lane_groups set served = 1000 where project_id = ?", worlds[-1].project.id)
    worlds[-1].schedule("free")

    assert keys(worlds[0].claim("alive", free=1, slots=4)) == ["free"]


def test_blocked_lanes_in_front_do_not_hide_one_that_may_run(world: World) -> None:
    for n in range(9):
        world.schedule(f"held{n}", lane=world.lane(f"s{n}"), serial_key=f"k{n}")
    assert len(world.claim("dead", free=9, slots=12)) == 9
    for n in range(9):
        world.schedule(f"blocked{n}", lane=world.lane(f"s{n}"), serial_key=f"k{n}")
    world.schedule("free", lane=world.lane("last"))

    assert keys(world.claim("alive", free=1, slots=4)) == ["free"]


def test_a_snoozed_or_backed_off_job_never_holds_up_its_lane(world: World) -> None:
    world.schedule("bad", serial_key="facts")
    world.schedule("good", serial_key="facts")
    (bad,) = world.claim()
    world.finish(bad, Retry(world.clock.now_us() + 600 * US, "transient", "x", spend=True))

    assert keys(world.claim()) == ["good"]


def test_promotion_is_in_batches_and_finds_the_next_due_time(world: World) -> None:
    for n in range(5):
        world.schedule(f"a{n}", due_in=n)
    world.tick(3)

    assert [world.promote(2), world.promote(2), world.promote(2)] == [2, 2, 0]
    assert [int(world.job(k)["due_at"] + 3) for k, s in world.states("work").items() if s == "waiting"] == [4]


def test_lane_counters_stay_right_over_every_kind_of_change(world: World) -> None:
    for n in range(12):
        world.schedule(f"a{n}", lane=world.lane(f"s{n % 3}"), uses=("local", "model", "embedder")[n % 3])
    first, second, third, fourth = world.claim(free=4, slots=8, lease_s=60)
    world.finish(first, Done())
    world.write(release_by_hand, world.project.id, second.job)
    world.write(discard_by_hand, world.project.id, third.job, "unwanted")
    world.write(discard_by_hand, world.project.id, world.job("a11")["id"], "unwanted")
    world.tick(2 * MINUTE_S)
    assert [gone.job for gone in world.write(expire_leases, 5)] == [fourth.job]
    assert_lanes_count_right(world)
    world.promote()
    assert_lanes_count_right(world)


# ---- running alone (C03)


def crash(world: World, owner: str = "dying") -> None:
    """A worker claims what is next, and dies."""
    assert world.claim(owner, lease_s=60)
    world.tick(61)
    assert world.write(expire_leases, 5)


def test_a_job_whose_worker_died_is_taken_by_an_idle_worker_only_and_alone(world: World) -> None:
    world.schedule("bad")
    crash(world)
    world.schedule("good", lane=world.lane("other"))
    world.do("update lanes set served = 0")

    busy = world.claimed(free=3, idle=False)
    assert (busy.leases, busy.drain) == ([], True)
    idle = world.claimed(free=3, idle=True)
    assert (keys(idle.leases), idle.drain, idle.leases[0].alone) == (["bad"], True, True)


def test_a_job_whose_worker_died_is_not_taken_beside_others_of_the_same_claim(world: World) -> None:
    world.schedule("bad")
    crash(world)
    world.schedule("good", lane=world.lane("other"))
    world.do("update lanes set served = served + 9 where id = ?", world.lane())

    taken = world.claimed(free=3, idle=True)
    assert (keys(taken.leases), taken.drain) == (["good"], True)


def test_the_first_run_of_a_job_is_not_alone(world: World) -> None:
    world.schedule("a")
    assert [lease.alone for lease in world.claim()] == [False]
