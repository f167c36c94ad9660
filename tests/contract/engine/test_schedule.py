"""Schedule: one upsert by (kind, key), with debounce, pull-forward and re-arming (design §4)."""

from __future__ import annotations

import json

import pytest
from tests.factories import HOUR_S, MINUTE_S, US, World

from everkept.domain.jobs import Discard, Done, GiveUp, Retry, Snooze
from everkept.store.jobs import schedule
from everkept.store.jobs_by_hand import discard_by_hand

IDLE_S = 30 * MINUTE_S
WAIT_MAX_US = int(4 * HOUR_S * US)


def debounce(world: World, key: str = "t") -> None:
    world.schedule(key, due_in=IDLE_S, debounce_max_us=WAIT_MAX_US, rearm_dead=True)


def kill(world: World, key: str = "k", **kw) -> None:
    world.schedule(key, **kw)
    (lease,) = world.claim()
    assert world.finish(lease, GiveUp("permanent", "no use")) == "dead"


def test_schedule_is_one_job_for_equal_kind_and_key(world: World) -> None:
    world.schedule("a")
    world.schedule("a", args=json.dumps({"n": 2}))
    world.schedule("a", kind="other")

    assert world.rows("select kind, key from jobs order by id") == [("work", "a"), ("other", "a")]
    assert json.loads(world.job("a")["args"]) == {"n": 2}


def test_schedule_touches_no_lane(world: World) -> None:
    lane = world.lane()
    before = world.rows("select * from lanes"), world.rows("select * from lane_groups")
    world.schedule("a", lane=lane)

    assert before == (world.rows("select * from lanes"), world.rows("select * from lane_groups"))


def test_debounce_moves_the_due_time_out(world: World) -> None:
    debounce(world)
    world.tick(10 * MINUTE_S)
    debounce(world)

    assert world.job("t")["due_at"] == IDLE_S


def test_debounce_never_moves_beyond_the_first_due_time_plus_the_longest_wait(world: World) -> None:
    debounce(world)
    for _ in range(30):
        world.tick(10 * MINUTE_S)
        debounce(world)

    assert world.job("t")["due_at"] == IDLE_S + 4 * HOUR_S - 300 * MINUTE_S


def test_pull_forward_takes_the_earlier_due_time(world: World) -> None:
    world.schedule("a", due_in=100)
    world.schedule("a", due_in=50)
    world.schedule("a", due_in=70)

    assert world.job("a")["due_at"] == 50


def test_a_discarded_timer_that_is_armed_again_waits_from_then(world: World) -> None:
    debounce(world)
    world.write(discard_by_hand, world.project.id, world.job("t")["id"], "not now")
    world.tick(10 * WAIT_MAX_US / US)
    debounce(world)
    world.tick(IDLE_S / 2)
    debounce(world)
    assert (world.job("t")["state"], world.job("t")["due_at"]) == ("waiting", IDLE_S)


def test_pull_forward_beats_a_debounced_timer(world: World) -> None:
    debounce(world)
    world.schedule("t", due_in=0)

    assert world.job("t")["due_at"] == 0


def test_a_job_scheduled_again_while_it_runs_is_armed_again_by_its_finish(world: World) -> None:
    world.schedule("a")
    (lease,) = world.claim()
    world.schedule("a", due_in=60)
    assert world.job("a")["generation"] == lease.generation + 1

    assert world.finish(lease, Done()) == "waiting"
    assert world.job("a")["due_at"] == 60


def test_the_first_wish_while_it_runs_sets_a_new_first_due_time(world: World) -> None:
    debounce(world)
    world.tick(IDLE_S)
    (lease,) = world.claim()
    debounce(world)
    world.tick(60)
    debounce(world)
    world.finish(lease, Done())

    assert (world.job("t")["first_due_at"], world.job("t")["due_at"]) == (IDLE_S - 60, IDLE_S)


def test_a_discarded_run_is_armed_again_where_it_was_scheduled_meanwhile(world: World) -> None:
    world.schedule("a")
    (lease,) = world.claim()
    world.schedule("a")

    assert world.finish(lease, Discard("gone")) == "waiting"


def test_a_snooze_does_not_hide_an_earlier_wish_made_while_it_ran(world: World) -> None:
    world.schedule("a")
    (lease,) = world.claim()
    world.schedule("a", due_in=10)
    world.finish(lease, Snooze(world.clock.now_us() + 3600 * US))

    assert world.job("a")["due_at"] == 10


def test_a_finish_without_re_arming_clears_the_first_due_time(world: World) -> None:
    debounce(world)
    world.tick(IDLE_S)
    (lease,) = world.claim()
    world.finish(lease, Done())
    assert world.job("t")["first_due_at"] is None

    world.tick(10 * HOUR_S)
    debounce(world)
    assert (world.job("t")["due_at"], world.job("t")["first_due_at"]) == (IDLE_S, IDLE_S)


def test_a_timer_snoozed_beyond_the_longest_wait_is_not_woken_by_every_message(world: World) -> None:
    """Its decision counts from what is left of the stream; the job's first due time is older than that."""
    debounce(world)
    for _ in range(28):
        world.tick(10 * MINUTE_S)
        debounce(world)
    assert world.job("t")["due_at"] <= 0
    (lease,) = world.claim()
    world.finish(lease, Snooze(world.clock.now_us() + int(20 * MINUTE_S) * US, "what is left is not due yet"))
    world.tick(60)
    debounce(world)

    assert world.job("t")["due_at"] == 19 * MINUTE_S


def test_a_due_timer_is_not_pushed_out_beyond_the_longest_wait(world: World) -> None:
    """Nobody worked for six hours: the next message must not postpone it again."""
    debounce(world)
    world.tick(6 * HOUR_S)
    debounce(world)

    assert world.job("t")["due_at"] <= 0


def test_a_dead_job_of_one_window_stays_dead_and_visible(world: World) -> None:
    kill(world)
    world.schedule("k")

    job = world.job("k")
    assert (job["state"], job["error"], job["error_class"]) == ("dead", "no use", "permanent")


def test_a_dead_timer_is_armed_again_with_its_back_off_and_its_history(world: World) -> None:
    kill(world, "t", rearm_dead=True)
    debounce(world)

    job = world.job("t")
    assert (job["state"], job["due_at"], job["attempts"], job["finished_at"]) == ("waiting", HOUR_S, 1, None)
    assert [row["error"] for row in json.loads(job["history"])] == ["no use"]


def test_a_dead_timer_that_fails_again_is_dead_again(world: World) -> None:
    kill(world, "t", rearm_dead=True)
    debounce(world)
    world.tick(HOUR_S)
    (lease,) = world.claim()
    assert lease.attempts == 1
    world.finish(lease, GiveUp("permanent", "still no use"))

    assert [r["error"] for r in json.loads(world.job("t")["history"])] == ["no use", "still no use"]


@pytest.mark.parametrize("outcome", [Done(), Discard("gone")])
def test_a_finished_job_is_armed_again_with_new_budgets(world: World, outcome) -> None:
    world.schedule("a")
    (lease,) = world.claim()
    world.finish(lease, Retry(world.clock.now_us(), "transient", "again", spend=True))
    (lease,) = world.claim()
    world.finish(lease, outcome)
    world.schedule("a", due_in=5)

    job = world.job("a")
    assert tuple(job[x] for x in ("state", "due_at", "attempts", "crashes", "error")) == ("waiting", 5, 0, 0, None)
    assert len(json.loads(job["history"])) == 1


def test_a_back_off_is_kept_when_more_work_was_scheduled_while_it_failed(world: World) -> None:
    world.schedule("a")
    (lease,) = world.claim()
    world.schedule("a")
    world.finish(lease, Retry(world.clock.now_us() + 40 * US, "transient", "again", spend=True))

    assert (world.job("a")["state"], world.job("a")["due_at"]) == ("waiting", 40)


def test_a_schedule_that_is_rolled_back_leaves_no_job_and_no_wake_up(world: World) -> None:
    woken: list[int] = []
    world.store.on_due = woken.append
    wish = world.wish("a")

    def then_fail(conn) -> None:
        schedule(conn, [wish])
        raise ValueError("changed my mind")

    with pytest.raises(ValueError, match="changed my mind"):
        world.write(then_fail)
    assert world.rows("select * from jobs") == []
    assert woken == []

    world.schedule("a")
    assert woken == [world.clock.now_us()]


def test_history_keeps_the_last_twenty_failures(world: World) -> None:
    world.schedule("a")
    for n in range(25):
        (lease,) = world.claim()
        world.finish(lease, Retry(world.clock.now_us(), "transient", f"no {n}", spend=True))

    assert [f"no {n}" for n in range(5, 25)] == [r["error"] for r in json.loads(world.job("a")["history"])]


def test_a_dead_timer_that_is_wanted_later_than_its_back_off_waits_until_then(world: World) -> None:
    kill(world, "t", rearm_dead=True)
    world.schedule("t", due_in=2 * HOUR_S, rearm_dead=True)
    assert (world.job("t")["state"], world.job("t")["due_at"]) == ("waiting", 2 * HOUR_S)
