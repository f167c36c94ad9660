"""G13: with W slots and n other lanes with due work, an idle lane's first job starts within ceil(n/W) + 1 run times."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.factories import EVERYTHING, World, kind_of

from everkept.domain.jobs import Done, Lease, Uses
from everkept.store.jobs import schedule

PROPERTY = settings(
    max_examples=25,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@dataclass
class Hall:
    """Slots and what runs in them, over a virtual clock; `run_s` says how long a job takes."""

    world: World
    slots: int
    run_s: Callable[[Lease], float]
    estimate_s: float = 0.1
    workers: int = 1
    uses: dict[Uses, int] = field(default_factory=lambda: dict(EVERYTHING))
    running: list[tuple[float, int, Lease, float, int]] = field(default_factory=list)
    started: dict[str, float] = field(default_factory=dict)
    """Key → when it started, in seconds."""
    served: dict[int, float] = field(default_factory=dict)
    """Lane → seconds of work done."""

    @property
    def now(self) -> float:
        return self.world.clock.monotonic_s()

    def fill(self) -> None:
        each = self.slots // self.workers
        for worker in range(self.workers):
            free = each - sum(r[4] == worker for r in self.running)
            if free <= 0:
                continue
            leases = self.world.claim(
                f"w{worker}",
                free=free,
                slots=self.slots,
                idle=False,
                uses=dict(self.uses),
                estimates_s={"work": self.estimate_s},
                lease_s=80_000,
            )
            for lease in leases:
                self.started[lease.key] = self.now
                took = self.run_s(lease)
                heapq.heappush(self.running, (self.now + took, lease.job, lease, took, worker))

    def until(self, done: Callable[[], bool], limit: int = 5_000) -> None:
        """Work until `done`; one job after the other ends."""
        for _ in range(limit):
            self.fill()
            if done():
                return
            assert self.running, "nothing runs, and it is not done"
            end, _, lease, took, _ = heapq.heappop(self.running)
            self.world.tick(max(0.0, end - self.now))
            self.served[lease.lane] = self.served.get(lease.lane, 0.0) + took
            assert self.world.finish(lease, Done(), took) == "done"
        raise AssertionError("no end in sight")


def backlog(world: World, lane: int, count: int, name: str, **kw) -> None:
    world.write(schedule, [world.wish(f"{name}.{i}", lane=lane, **kw) for i in range(count)])


@pytest.mark.parametrize("apart", [False, True], ids=["lanes of one project", "a project each"])
def test_first_job_of_an_idle_lane_starts_within_the_bound(make_world, apart: bool) -> None:
    count = iter(range(1_000_000))

    @PROPERTY
    @given(
        slots=st.integers(1, 5),
        others=st.integers(1, 9),
        estimate=st.sampled_from([0.01, 0.1, 1.0, 30.0]),
        runs=st.lists(st.sampled_from([0.05, 0.5, 1.0, 2.0]), min_size=1, max_size=6),
        before=st.integers(0, 25),
    )
    def check(slots: int, others: int, estimate: float, runs: list[float], before: int) -> None:
        example = next(count)
        world = make_world(project=f"x{example}")
        worlds = [make_world(project=f"x{example}.{n}") if apart else world for n in range(others)]
        hall = Hall(world, slots, lambda lease: runs[lease.job % len(runs)], estimate)
        for n, each in enumerate(worlds):
            backlog(each, each.lane(f"lane{n}"), 40, f"{example}.{n}")
        hall.until(lambda: len(hall.started) >= before)
        asked = hall.now
        world.schedule(f"{example}.new", lane=world.lane("newcomer"))
        hall.until(lambda: f"{example}.new" in hall.started)

        bound = (math.ceil(others / slots) + 1) * max(runs)
        assert hall.started[f"{example}.new"] - asked <= bound + 1e-6
        world.do("update jobs set state = 'discarded', owner = null, lease_until = null where state <> 'done'")
        world.do("update lanes set running = 0, ready_local = 0")
        world.do("update lane_groups set running = 0, ready_local = 0")

    check()


def test_two_thousand_slow_jobs_in_one_lane_do_not_hold_up_twenty_small_ones(world: World) -> None:
    backlog(world, world.lane("bulk"), 2_000, "bulk")
    hall = Hall(world, 8, lambda _lease: 10.0, estimate_s=0.1, workers=2)
    hall.until(lambda: len(hall.started) >= 21)
    asked = hall.now
    for n in range(20):
        backlog(world, world.lane(f"small{n}"), 3, f"small{n}")
    hall.until(lambda: sum(key.startswith("small") for key in hall.started) == 60)

    waits = [hall.started[f"small{n}.0"] - asked for n in range(20)]
    assert max(waits) <= (math.ceil(20 / 8) + 1) * 10
    bulk_meanwhile = sum(key.startswith("bulk") and at >= asked for key, at in hall.started.items())
    assert bulk_meanwhile <= 3 + 8, "the lane with the backlog gets its turn as one of 21, and no more"


def test_a_lane_with_a_backlog_never_holds_the_last_slot(world: World) -> None:
    backlog(world, world.lane("bulk"), 100, "bulk")
    hall = Hall(world, 4, lambda _lease: 10.0)
    hall.until(lambda: len(hall.started) >= 3)
    world.tick(1)
    world.schedule("new", lane=world.lane("new"))
    hall.fill()

    assert hall.now == hall.started["new"]


def test_projects_share_by_service_whatever_their_number_of_lanes(make_world) -> None:
    many, one = make_world(project="many"), make_world(project="one")
    for n in range(10):
        backlog(many, many.lane(f"s{n}"), 40, f"many{n}")
    backlog(one, one.lane("s"), 60, "one")
    hall = Hall(many, 4, lambda _lease: 1.0)
    hall.until(lambda: len(hall.started) >= 80)

    of_one = sum(key.startswith("one") for key in hall.started)
    assert 36 <= of_one <= 44


def test_lanes_of_a_project_share_by_service_not_by_number_of_jobs(world: World) -> None:
    slow, quick = world.lane("slow"), world.lane("quick")
    backlog(world, slow, 40, "slow")
    backlog(world, quick, 400, "quick")
    hall = Hall(world, 2, lambda lease: 10.0 if lease.lane == slow else 1.0, estimate_s=1.0)
    hall.until(lambda: hall.served.get(slow, 0) >= 100)

    assert 80 <= hall.served[quick] <= 130


def test_an_idle_lane_starts_at_the_current_minimum_without_saved_turns(world: World) -> None:
    backlog(world, world.lane("busy"), 40, "busy")
    hall = Hall(world, 1, lambda _lease: 1.0)
    hall.until(lambda: len(hall.started) >= 20)
    backlog(world, world.lane("sleeper"), 20, "sleeper")
    hall.until(lambda: len(hall.started) >= 30)

    after = sorted(hall.started, key=lambda key: hall.started[key])[20:30]
    assert 4 <= sum(key.startswith("sleeper") for key in after) <= 6


def test_turns_are_not_saved_up_while_a_provider_is_out(world: World) -> None:
    """After an outage the lanes with a backlog must not be served before a newcomer until they have caught up."""
    hall = Hall(world, 2, lambda _lease: 2.0)
    hall.uses = {"local": 99}
    for n in range(4):
        backlog(world, world.lane(f"stuck{n}"), 60, f"stuck{n}", uses="model")
    backlog(world, world.lane("local"), 60, "local")
    hall.until(lambda: sum(key.startswith("local") for key in hall.started) == 60)
    hall.uses = dict(EVERYTHING)
    asked = hall.now
    world.schedule("new", lane=world.lane("newcomer"), uses="model")
    hall.until(lambda: "new" in hall.started)

    assert hall.started["new"] - asked <= (math.ceil(5 / 2) + 1) * 2.0


def test_an_estimate_that_was_far_too_high_costs_a_newcomer_nothing(world: World) -> None:
    for n in range(2):
        backlog(world, world.lane(f"busy{n}"), 200, f"busy{n}")
    hall = Hall(world, 4, lambda _lease: 0.01, estimate_s=60.0)
    hall.until(lambda: len(hall.started) >= 12)
    hall.estimate_s = 0.01
    hall.until(lambda: len(hall.started) >= 20)
    asked = hall.now
    world.schedule("new", lane=world.lane("newcomer"))
    hall.until(lambda: "new" in hall.started)

    assert hall.started["new"] - asked <= 2 * 0.01 + 1e-9


def test_the_charge_of_a_claim_is_corrected_to_what_was_used(world: World) -> None:
    world.schedule("a")
    (lease,) = world.claim(estimates_s={"work": 5.0})
    assert world.value("select served from lanes where id = ?", lease.lane) == 5.0
    world.finish(lease, Done(), ran_s=0.25)
    assert world.value("select served from lanes where id = ?", lease.lane) == pytest.approx(0.25)
    assert world.value("select served from lane_groups where project_id = ?", world.project.id) == pytest.approx(0.25)


def test_a_worker_learns_how_long_a_kind_of_job_runs(world: World) -> None:
    """A lane is charged at the claim with what such jobs took lately."""

    async def slow(args, ctx):
        world.tick(100)
        return await ctx.finish(lambda _conn: None)

    world.runner(kinds=kind_of(slow))
    for key in ("first", "second"):
        world.schedule(key)
        world.step()
    assert world.job("first")["charged_s"] == 0.1
    assert world.job("second")["charged_s"] == pytest.approx(0.1 + 0.2 * (100 - 0.1))


def test_only_promotion_claim_and_finish_touch_lanes(world: World) -> None:
    world.add("t", "hello")
    before = world.rows("select * from lanes"), world.rows("select * from lane_groups")
    world.add("t", "again")
    world.tick(1)

    assert before == (world.rows("select * from lanes"), world.rows("select * from lane_groups"))


def test_a_lane_that_wakes_stands_where_the_others_stand(world: World) -> None:
    backlog(world, world.lane("busy"), 10, "busy")
    hall = Hall(world, 1, lambda _lease: 1.0)
    hall.until(lambda: len(hall.started) >= 6)
    world.schedule("new", lane=world.lane("new"))
    world.promote()

    (virtual,) = world.rows("select virtual from lane_groups where project_id = ?", world.project.id)[0]
    assert virtual > 0
    assert world.value("select served from lanes where id = ?", world.lane("new")) == virtual


def test_a_project_that_wakes_stands_where_the_others_stand(make_world) -> None:
    """Two projects take turns from the moment in which the second one wakes, whatever the first has used before."""
    busy, sleeper = make_world(project="busy"), make_world(project="sleeper")
    backlog(busy, busy.lane("busy"), 10, "busy")
    hall = Hall(busy, 1, lambda _lease: 1.0)
    hall.until(lambda: len(hall.started) >= 6)
    sleeper.schedule("new")
    sleeper.promote()

    virtual = busy.value("select value from counters where name = 'virtual'")
    assert virtual > 0
    assert sleeper.value("select served from lane_groups where project_id = ?", sleeper.project.id) == virtual
