"""Fence and lease: who may still write, and what becomes of a job whose worker is gone (G6, G7)."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.factories import World, kind_of

from everkept.domain.jobs import Discard, Done, GiveUp, Lease, Retry, Snooze
from everkept.errors import LeaseLost, StoreFull
from everkept.store.jobs_by_hand import release_by_hand, retry_by_hand, retry_dead
from everkept.store.leases import expire_leases, live_slots, refuse_finish, remove_worker, renew_leases
from everkept.store.projects import find_project

LEASE_S = 60.0


def leased(world: World, key: str = "a", owner: str = "w1") -> Lease:
    world.schedule(key)
    (lease,) = world.claim(owner, lease_s=LEASE_S)
    return lease


def expire(world: World) -> list[bool]:
    """Whether each job taken back is dead."""
    return [gone.dead for gone in world.write(expire_leases, 5)]


@pytest.mark.parametrize(
    "outcome", [Done(), Snooze(0), Discard("x"), Retry(0, "transient", "x", True), GiveUp("permanent", "x")]
)
def test_a_finish_after_the_lease_has_ended_writes_nothing(world: World, outcome) -> None:
    lease = leased(world)
    world.tick(LEASE_S)
    before = world.job("a")

    with pytest.raises(LeaseLost):
        world.finish(lease, outcome)
    assert before == world.job("a")


def test_a_finish_a_moment_before_the_lease_ends_counts(world: World) -> None:
    lease = leased(world)
    world.tick(LEASE_S - 0.001)
    assert world.finish(lease, Done()) == "done"


def test_a_finish_under_an_old_fence_writes_nothing_while_another_worker_holds_the_job(world: World) -> None:
    late = leased(world)
    world.tick(LEASE_S)
    assert expire(world) == [False]
    (now,) = world.claim("w2", lease_s=LEASE_S)

    with pytest.raises(LeaseLost):
        world.finish(late, Done())
    assert world.job("a")["owner"] == "w2"
    assert world.finish(now, Done()) == "done"
    with pytest.raises(LeaseLost):
        world.finish(now, Done())


def test_the_effect_of_a_late_finish_is_rolled_back_with_it_and_counted(world: World) -> None:
    """C02, C07: the job outlives its lease; what it wrote in its finishing transaction is gone."""

    async def outlive(args, ctx):
        world.tick(700)
        return await ctx.finish(lambda conn: conn.raw.execute("update projects set name = 'written late'"))

    world.runner(kinds=kind_of(outlive))
    world.schedule("a")
    world.step()

    assert world.read(find_project, "written late") is None
    assert world.counter("refused_finishes") == 1
    assert world.job("a")["state"] == "leased"


def test_effect_and_completion_commit_together(world: World) -> None:
    async def write_then_fail(args, ctx):
        def effect(conn):
            conn.raw.execute("update projects set name = 'half'")
            raise ValueError("the second half is missing")

        return await ctx.finish(effect)

    world.runner(kinds=kind_of(write_then_fail))
    world.schedule("a")
    world.step()

    assert world.read(find_project, "half") is None
    assert (world.job("a")["state"], world.job("a")["error_class"]) == ("waiting", "internal")


def test_refused_finishes_are_counted(world: World) -> None:
    world.write(refuse_finish)
    world.write(refuse_finish)
    assert world.counter("refused_finishes") == 2


# ---- heartbeat


def test_a_heartbeat_extends_the_leases_of_its_worker_only(world: World) -> None:
    mine, other = leased(world, "a", "w1"), leased(world, "b", "w2")
    world.tick(30)

    assert {mine.job: mine.fence} == world.write(renew_leases, "w1", 4, LEASE_S)
    assert (world.job("a")["lease_until"], world.job("b")["lease_until"]) == (LEASE_S, 30)
    assert other.fence == world.job("b")["fence"]


def test_a_heartbeat_never_extends_a_lease_that_has_ended(world: World) -> None:
    leased(world)
    world.tick(LEASE_S)

    assert world.write(renew_leases, "w1", 4, LEASE_S) == {}
    assert world.job("a")["lease_until"] == 0


def test_a_job_that_is_renewed_outlives_its_first_lease(world: World) -> None:
    lease = leased(world)
    for _ in range(5):
        world.tick(LEASE_S / 2)
        world.write(renew_leases, "w1", 4, LEASE_S)
        assert expire(world) == []
    assert world.finish(lease, Done()) == "done"


def test_a_worker_is_counted_while_it_beats_and_not_once_it_has_signed_off(world: World) -> None:
    world.write(renew_leases, "w1", 4, LEASE_S)
    world.write(renew_leases, "w2", 2, LEASE_S)
    assert world.read(live_slots, 60) == 6
    world.tick(61)
    assert world.read(live_slots, 60) == 0
    world.write(renew_leases, "w1", 4, LEASE_S)
    world.write(remove_worker, "w1")
    assert world.read(live_slots, 60) == 0


def test_the_slots_of_a_worker_are_those_of_its_last_beat(world: World) -> None:
    for slots in (4, 2):
        world.write(renew_leases, "w1", slots, LEASE_S)
    assert world.read(live_slots, 60) == 2


def test_a_heartbeat_that_finds_the_lease_gone_cancels_the_run(world: World) -> None:
    ended: list[str] = []

    async def hang(args, ctx):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    runner = world.runner(kinds=kind_of(hang))
    world.schedule("a")

    async def go() -> None:
        await runner.step()
        await asyncio.sleep(0)
        world.write(release_by_hand, world.project.id, world.job("a")["id"])
        runner.heartbeat()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    world.run(go())
    assert ended == ["cancelled"]
    assert world.job("a")["state"] == "waiting"


def test_a_run_whose_job_this_worker_was_given_anew_is_cancelled_and_the_new_one_renewed(make_world) -> None:
    """A hand or an erase releases a job, and the same worker is the first to claim it again."""
    world = make_world(work__lease_s=5, work__heartbeat_s=1)
    ended: list[int] = []
    go_on = asyncio.Event()

    async def run(args, ctx):
        try:
            await go_on.wait()
        finally:
            ended.append(ctx.lease.fence)
        return await ctx.finish(lambda _conn: None)

    runner = world.runner(kinds=kind_of(run, timeout_s=600))
    world.schedule("a")

    async def go() -> None:
        await runner.step()
        await asyncio.sleep(0)
        world.write(release_by_hand, world.project.id, world.job("a")["id"])
        await runner.step()
        for _ in range(20):
            await asyncio.sleep(0)
        assert (len(ended), runner.busy) == (1, 1)
        world.tick(3)
        runner.heartbeat()
        assert world.job("a")["lease_until"] == 5
        go_on.set()
        await runner.drain_started()

    world.run(go())
    assert (len(ended), world.job("a")["state"], world.job("a")["attempts"]) == (2, "done", 0)


def test_a_heartbeat_cancels_a_run_whose_job_is_held_under_another_fence(world: World) -> None:
    ended: list[str] = []

    async def hang(args, ctx):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    runner = world.runner("w1", kinds=kind_of(hang))
    world.schedule("a")

    async def go() -> None:
        await runner.step()
        await asyncio.sleep(0)
        world.write(release_by_hand, world.project.id, world.job("a")["id"])
        (again,) = world.claim("w1")
        runner.heartbeat()
        for _ in range(20):
            await asyncio.sleep(0)
        assert ended == ["cancelled"]
        assert world.finish(again, Done()) == "done"

    world.run(go())


def test_a_run_may_go_on_as_long_as_its_lease_is_renewed(make_world) -> None:
    """The time limit of a run is the lease as renewed, not as first given."""
    world = make_world(work__lease_s=5, work__heartbeat_s=1)
    limits: list[float] = []
    go_on = asyncio.Event()

    async def long(args, ctx):
        await go_on.wait()
        return await ctx.finish(lambda _conn: None)

    runner = world.runner(kinds=kind_of(long, timeout_s=600))
    world.schedule("a")

    async def go() -> None:
        await runner.step()
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        (_, _, trust) = next(iter(runner._running.values()))
        for _ in range(4):
            limits.append(trust.limit.when() - loop.time())
            world.tick(3)
            runner.heartbeat()
            await asyncio.sleep(0)
        go_on.set()
        await runner.drain_started()

    world.run(go())
    assert all(4 <= left <= 5.01 for left in limits)
    assert world.job("a")["state"] == "done"


def test_a_lease_is_trusted_from_before_it_was_asked_for(make_world, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world(work__lease_s=60)
    left: list[float] = []

    def slow(ask):
        def answered_late(*args, **kw):
            found = ask(*args, **kw)
            world.clock.advance(10)
            return found

        return answered_late

    async def look(args, ctx):
        (_, _, trust) = next(iter(runner._running.values()))
        left.append(trust.until_s - world.clock.monotonic_s())
        with monkeypatch.context() as patch:
            patch.setattr(world.store, "write_now", slow(world.store.write_now))
            runner.heartbeat()
        left.append(trust.until_s - world.clock.monotonic_s())
        return await ctx.finish(lambda _conn: None)

    runner = world.runner(kinds=kind_of(look))
    monkeypatch.setattr(runner, "_poll", slow(runner._poll))
    world.schedule("a")
    world.step()
    assert left == [50, 50]


def test_a_failure_that_could_not_be_booked_is_booked_with_the_next_round(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the job would wait for the end of its lease, and count as a crash."""

    async def fail(args, ctx):
        raise ValueError("broken")

    runner = world.runner(kinds=kind_of(fail))
    book, tries = runner._fail, iter([StoreFull("the disk is full")])

    def book_unless_full(*args):
        for full in tries:
            raise full
        return book(*args)

    monkeypatch.setattr(runner, "_fail", book_unless_full)
    world.schedule("a")
    world.step()
    assert world.job("a")["state"] == "leased"
    world.step()
    assert [world.job("a")[field] for field in ("state", "attempts", "crashes")] == ["waiting", 1, 0]


def test_a_failure_that_never_can_be_booked_keeps_no_other_job_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail_once(args, ctx):
        if ctx.lease.key == "a":
            raise ValueError("broken")
        return await ctx.finish(lambda _conn: None)

    runner = world.runner(kinds=kind_of(fail_once))
    tries = iter([StoreFull("the disk is full")])

    def never_book(*args):
        raise next(tries, RuntimeError("a fault of the booking itself"))

    monkeypatch.setattr(runner, "_fail", never_book)
    world.schedule("a")
    world.step()
    world.schedule("b")
    world.step()
    assert world.states("work") == {"a": "leased", "b": "done"}  # the lease of the first one runs out


def test_a_run_is_cancelled_when_its_lease_is_about_to_end(make_world) -> None:
    world = make_world(work__lease_s=600)
    left: list[float] = []

    async def look(args, ctx):
        (_, _, trust) = next(iter(world.runner()._running.values()))
        left.append(trust.limit.when() - asyncio.get_running_loop().time())
        return await ctx.finish(lambda _conn: None)

    world.runner(kinds=kind_of(look, timeout_s=10_000))
    world.schedule("a")
    world.step()
    assert 590 < left[0] <= 600


def test_a_run_that_hangs_ends_at_its_time_limit_and_spends_an_attempt(world: World) -> None:
    async def hang(args, ctx):
        await asyncio.Event().wait()

    world.runner(kinds=kind_of(hang, timeout_s=0.01))
    world.schedule("a")
    world.step()

    job = world.job("a")
    assert (job["state"], job["attempts"], job["error_class"]) == ("waiting", 1, "transient")


# ---- the worker dies


def test_an_expired_lease_is_taken_back_and_the_job_runs_again(world: World) -> None:
    leased(world)
    assert expire(world) == []
    world.tick(LEASE_S)
    assert expire(world) == [False]

    job = world.job("a")
    assert (job["state"], job["owner"], job["crashes"], job["attempts"], job["error_class"]) == (
        "waiting",
        None,
        1,
        0,
        "crashed",
    )
    (again,) = world.claim("w2", lease_s=LEASE_S)
    assert world.finish(again, Done()) == "done"


def test_a_claim_is_booked_as_a_crash_and_any_reported_outcome_takes_it_back(world: World) -> None:
    for outcome in (Retry(0, "transient", "x", True), Retry(0, "rate_limited", "x", False), Snooze(0)):
        world.schedule("a")
        (lease,) = world.claim()
        assert world.job("a")["crashes"] == 1
        world.finish(lease, outcome)
        assert world.job("a")["crashes"] == 0


def test_a_failure_after_a_crash_takes_back_its_own_booking_only(world: World) -> None:
    leased(world)
    world.tick(LEASE_S)
    expire(world)
    (lease,) = world.claim()
    world.finish(lease, Retry(0, "transient", "x", True))

    assert (world.job("a")["crashes"], world.job("a")["attempts"]) == (1, 1)


def test_a_run_that_came_to_its_end_gives_the_budgets_back(world: World) -> None:
    """A timer lives for months: crashes of a year must not add up to a dead letter."""
    leased(world)
    world.tick(LEASE_S)
    expire(world)
    (lease,) = world.claim()
    world.schedule("a")
    world.finish(lease, Done())

    job = world.job("a")
    assert (job["state"], job["crashes"], job["attempts"]) == ("waiting", 0, 0)
    (lease,) = world.claim()
    assert not lease.alone


def test_c03_an_input_that_kills_the_process_is_dead_after_five_crashes(world: World) -> None:
    world.schedule("poison")
    dead = []
    for n in range(5):
        assert [lease.key for lease in world.claim(f"w{n}", lease_s=LEASE_S)] == ["poison"]
        world.tick(LEASE_S)
        dead += expire(world)

    assert dead == [False, False, False, False, True]
    job = world.job("poison")
    assert (job["state"], job["error_class"], job["crashes"]) == ("dead", "crashed", 5)
    assert len(json.loads(job["history"])) == 5
    assert world.claim() == []


def test_c03_bystanders_of_a_killer_are_finished_and_never_dead(world: World) -> None:
    """Each worker takes four jobs and dies as soon as the poison is among them."""
    for n in range(12):
        world.schedule("poison" if n == 5 else f"good{n}", lane=world.lane(f"s{n}"))
    for life in range(40):
        leases = world.claim(f"life{life}", free=4, slots=4, lease_s=LEASE_S)
        if not leases:
            break
        if any(lease.key == "poison" for lease in leases):
            world.tick(LEASE_S)
            expire(world)
            continue
        for lease in leases:
            world.finish(lease, Done())

    states = world.states("work")
    assert states.pop("poison") == "dead"
    assert set(states.values()) == {"done"}


def test_crashes_spend_no_attempt_and_errors_no_crash(world: World) -> None:
    leased(world)
    world.tick(LEASE_S)
    expire(world)
    for _ in range(3):
        (lease,) = world.claim()
        world.finish(lease, Retry(world.clock.now_us(), "transient", "x", True))

    assert (world.job("a")["crashes"], world.job("a")["attempts"]) == (1, 3)


def test_a_restarted_worker_has_another_name_and_the_old_claims_come_back(world: World) -> None:
    """C10: nothing recognises its own claims; leases run out, whoever held them."""
    leased(world, "a", "host-1-aaaa")
    world.tick(LEASE_S)
    world.runner("host-1-bbbb", kinds=kind_of())
    world.maintain("host-1-bbbb")
    world.step("host-1-bbbb")

    assert world.job("a")["state"] == "done"


# ---- by hand


def test_release_by_hand_ends_a_lease_now_and_refuses_its_holder(world: World) -> None:
    lease = leased(world)
    assert world.write(release_by_hand, world.project.id, lease.job)

    job = world.job("a")
    assert (job["state"], job["crashes"], job["fence"]) == ("waiting", 0, lease.fence + 1)
    with pytest.raises(LeaseLost):
        world.finish(lease, Done())
    assert [x.key for x in world.claim("w2")] == ["a"]
    assert not world.write(release_by_hand, world.project.id + 1, lease.job)


def dead(world: World, key: str, error_class: str = "permanent", kind: str = "work") -> int:
    world.schedule(key, kind=kind)
    (lease,) = world.claim()
    world.finish(lease, GiveUp(error_class, "no use"))
    return lease.job


def test_retry_by_hand_gives_a_new_budget_and_keeps_the_history(world: World) -> None:
    job = dead(world, "a")
    assert world.write(retry_by_hand, world.project.id, job)
    assert not world.write(retry_by_hand, world.project.id, job), "a second hand finds it no longer dead"

    row = world.job("a")
    assert (row["state"], row["attempts"], row["crashes"], row["budget"], row["due_at"]) == ("waiting", 0, 0, 2, 0)
    assert [r["class"] for r in json.loads(row["history"])] == ["permanent", "by_hand"]


def test_a_retry_by_hand_allows_as_many_attempts_as_before(world: World) -> None:
    async def fail(args, ctx):
        raise ValueError("broken")

    world.runner(kinds=kind_of(fail, attempts_max=2))
    world.schedule("a")
    ran = []
    for _ in range(3):
        count = 0
        while world.job("a")["state"] != "dead":
            world.tick(4_000)
            count += world.step()
        ran.append(count)
        world.write(retry_by_hand, world.project.id, world.job("a")["id"])

    assert ran == [2, 2, 2]


def test_retry_dead_takes_all_of_a_kind_or_cause(world: World) -> None:
    by_cause, of_kind, other = dead(world, "a", "refused"), dead(world, "b", kind="other"), dead(world, "c")

    assert world.write(retry_dead, world.project.id, None, "refused", 0, 50) == [by_cause]
    assert world.write(retry_dead, world.project.id, "other", None, 0, 50) == [of_kind]
    assert world.write(retry_dead, world.project.id, None, None, 0, 50) == [other]
    assert world.write(retry_dead, world.project.id, None, None, 0, 50) == []


def test_retry_dead_neither_touches_nor_names_the_dead_of_another_project(make_world) -> None:
    world, other = make_world(), make_world(project="other")
    dead(world, "a")
    assert world.write(retry_dead, other.project.id, None, None, 0, 50) == []
    assert world.states("work") == {"a": "dead"}


# ---- stopping


def test_a_drained_worker_gives_its_jobs_back_at_no_cost(world: World) -> None:
    started = asyncio.Event()

    async def hang(args, ctx):
        started.set()
        await asyncio.Event().wait()

    runner = world.runner(kinds=kind_of(hang))
    world.schedule("a")

    async def go() -> None:
        running = asyncio.create_task(runner.run())
        await started.wait()
        runner.stop(0.0)
        await running

    world.run(go())
    job = world.job("a")
    assert (job["state"], job["attempts"], job["crashes"], job["error_class"]) == ("waiting", 0, 0, "drained")
    assert job["due_at"] <= 0
    assert world.rows("select * from workers") == []


def test_a_worker_that_stops_signs_off(world: World) -> None:
    """Its slots are no longer counted, so that a lane may not hold all of what is left."""
    runner = world.runner(kinds=kind_of())
    runner.heartbeat()
    assert world.read(live_slots, 60) == runner.slots

    async def go() -> None:
        running = asyncio.create_task(runner.run())
        await asyncio.sleep(0)
        runner.stop(0.0)
        await running

    world.run(go())
    assert world.read(live_slots, 60) == 0


def test_a_lease_taken_in_the_past_is_worth_nothing_after_the_wall_clock_stepped_forward(world: World) -> None:
    """B09: the job runs again; the first run's finish is refused rather than believed."""
    lease = leased(world)
    world.clock.step_wall(3600)

    with pytest.raises(LeaseLost):
        world.finish(lease, Done())
    assert expire(world) == [False]
