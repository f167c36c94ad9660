"""Claim: at most the free slots, in turn, one per serial key, and never what is not due (design §4, G7)."""

from __future__ import annotations

import asyncio

import pytest
from tests.factories import MINUTE_S, US, World, assert_lanes_count_right, kind_of

from everkept.domain.jobs import Done, Retry
from everkept.store.claims import ClaimRequest, claim
from everkept.store.jobs_by_hand import discard_by_hand, release_by_hand
from everkept.store.leases import expire_leases, live_slots, renew_leases


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

    with pytest.raises(Exception, match=r"(?i)unique"):
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


def test_a_worker_claims_at_most_what_one_look_may(make_world) -> None:
    world = make_world(work__claim_max=2, work__slots=8)
    for n in range(5):
        world.schedule(f"a{n}", lane=world.lane(f"s{n}"))
    world.runner(kinds=kind_of())
    assert [world.step(), world.step(), world.step()] == [2, 2, 1]


def test_a_lane_may_hold_all_slots_of_a_worker_where_others_have_some(make_world) -> None:
    """One less than all slots of all live workers (G13)."""
    world = make_world(work__slots=4)
    runner = world.runner(kinds=kind_of())
    for n in range(7):
        world.schedule(f"a{n}")
    assert world.step() == 3
    for owner in (runner.owner, "another"):
        world.write(renew_leases, owner, 4, 600.0)
    assert world.step() == 4


def test_a_worker_that_beats_again_with_other_slots_is_counted_with_these(world: World) -> None:
    for slots in (4, 2):
        world.write(renew_leases, "w1", slots, 600.0)
    assert world.read(live_slots, 60) == 2


# ---- a probe


def probe(world: World) -> list[str]:
    """What is asked of a provider whose circuit is open."""
    world.promote()
    request = ClaimRequest(
        owner="w1", free=1, slots=4, lease_s=600.0, uses={"model": 1}, probes=frozenset({"model"}), idle=True,
        estimates_s={},
    )  # fmt: skip
    return keys(world.write(claim, request).leases)


def test_a_probe_takes_what_has_been_due_for_longest_whosever_turn_it_is(world: World) -> None:
    served = world.lane("served")
    world.schedule("before", lane=served, uses="model")
    (lease,) = world.claim()
    world.finish(lease, Done(), ran_s=100.0)
    world.schedule("long due", lane=served, uses="model")
    world.tick(1)
    world.schedule("just due", lane=world.lane("new"), uses="model")
    assert probe(world) == ["long due"]


def test_a_probe_leaves_what_was_pushed_out(world: World) -> None:
    world.schedule("a", uses="model", debounce_max_us=3_600_000_000)
    world.promote()
    world.schedule("a", due_in=60, uses="model", debounce_max_us=3_600_000_000)
    assert probe(world) == []
    world.tick(60)
    assert probe(world) == ["a"]


def test_a_probe_leaves_a_key_that_somebody_works_and_a_lane_that_is_full(world: World) -> None:
    world.schedule("held", uses="model", serial_key="facts:1")
    assert keys(world.claim()) == ["held"]
    world.schedule("same key", uses="model", serial_key="facts:1")
    assert probe(world) == []

    full = world.lane("full")
    for n in range(3):
        world.schedule(f"local{n}", lane=full)
    assert len(world.claim(free=3)) == 3
    world.schedule("fourth", lane=full, uses="model")
    assert probe(world) == []
    world.schedule("elsewhere", lane=world.lane("else"), uses="model")
    assert probe(world) == ["elsewhere"]


# ---- a worker and an input that killed one


def killer_and_bystander(world: World, first: str) -> list[int]:
    """How many jobs run after each of two looks, where `first` of poison and good is due before the other."""
    world.schedule("poison", lane=world.lane("a"))
    world.claim("died", lease_s=60.0)
    world.tick(60)
    world.write(expire_leases, 5)
    world.do("update jobs set due_at = due_at + 10000000 where key = 'poison'")
    go_on = asyncio.Event()

    async def run(args, ctx):
        await go_on.wait()
        return await ctx.finish(lambda _conn: None)

    runner = world.runner(kinds=kind_of(run))
    world.schedule("good", lane=world.lane("b"), due_in=0 if first == "good" else 20)
    world.tick(10)
    busy: list[int] = []

    async def go() -> None:
        for seconds in (0, 10):
            world.tick(seconds)
            await runner.step()
            busy.append(runner.busy)
        go_on.set()
        await runner.drain_started()

    if first == "good":
        world.do("update jobs set due_at = due_at + 5000000 where key = 'poison'")
    world.run(go())
    return busy


@pytest.mark.parametrize("first", ["poison", "good"])
def test_a_worker_runs_nothing_beside_an_input_that_killed_one(world: World, first: str) -> None:
    assert killer_and_bystander(world, first) == [1, 1]
    world.run_until_idle()
    assert set(world.states("work").values()) == {"done"}
