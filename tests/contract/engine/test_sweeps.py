"""Backstops: each repairs what the normal path lost and says so as a warning; nothing in front of a case hides it."""

from __future__ import annotations

import itertools

import pytest
import structlog
from tests.factories import HOUR_S, MINUTE_S, US, World, kind_of

from everkept.config import Settings
from everkept.domain.jobs import GiveUp
from everkept.errors import StoreUnavailable
from everkept.store.jobs import prune_jobs
from everkept.store.jobs_by_hand import discard_by_hand
from everkept.store.periodic import list_periodic
from everkept.store.windows import EXTRACT, SUMMARISE
from everkept.work.job import Trust
from everkept.work.maintenance import CHUNK, PeriodicTask

DAY_S = 24 * HOUR_S
WARNING = "a sweep repaired what the normal path should have done"


def maintained(world: World) -> list[tuple[str, int]]:
    """One round of the backstops; (task, rows) of each warning."""
    with structlog.testing.capture_logs() as logs:
        world.maintain()
    return [(x["task"], x["rows"]) for x in logs if x["log_level"] == "warning" and x["event"] == WARNING]


def window(world: World, thread: str = "t", text: str = "I live in Lisbon", subject: str = "ana") -> int:
    """An open window whose jobs are scheduled and have not run."""
    world.add(thread, text, subject=subject)
    world.end(thread)
    before = len(world.windows(thread))
    while len(world.windows(thread)) == before:
        (lease,) = world.claim(uses={"local": 1})
        world.runner()
        world.run(world.runner()._work(lease, _trust(world)))
    return int(world.value("select max(id) from windows where stream_id = ?", world.stream(thread)))


def _trust(world: World) -> Trust:
    return Trust(world.clock.monotonic_s() + 600)


# ---- promotion is the timer's tick


def test_a_timer_fires_by_the_tick_alone_whatever_became_of_its_wake_up(world: World) -> None:
    """Notifications only shorten a poll: here all of them are dropped."""
    world.store.on_due = lambda _due: None
    world.add("t", "hello")
    world.tick(30 * MINUTE_S)
    world.run_until_idle()
    assert world.windows("t") == [(1, 1)]


# ---- episodes and facts


@pytest.mark.parametrize(
    ("kind", "task", "column"), [(SUMMARISE, "sweep_summaries", "summary_at"), (EXTRACT, "sweep_facts", "facts_at")]
)
def test_a_window_without_its_job_gets_it_back_with_a_warning(world: World, kind: str, task: str, column: str) -> None:
    made = window(world)
    world.do("delete from jobs where kind = ?", kind)
    world.tick(121)

    assert maintained(world) == [(task, 1)]
    assert world.states(kind) == {f"{made}.0": "waiting"}
    assert world.repaired(task) == 1
    world.run_until_idle()
    assert world.value(f"select {column} from windows") is not None
    world.tick(121)
    assert maintained(world) == []


@pytest.mark.parametrize(("kind", "task"), [(SUMMARISE, "sweep_summaries"), (EXTRACT, "sweep_facts")])
def test_a_job_that_is_done_without_its_effect_runs_again(world: World, kind: str, task: str) -> None:
    """C08, C09."""
    window(world)
    world.do("update jobs set state = 'done', finished_at = 1 where kind = ?", kind)
    world.do("update lanes set ready_local = 0, ready_model = 0")
    world.do("update lane_groups set ready_local = 0, ready_model = 0")
    world.tick(121)
    assert maintained(world) == [(task, 1)]


def test_the_fact_sweep_takes_archived_windows_too(world: World) -> None:
    first = window(world)
    world.run_until_idle()
    world.do("update windows set facts_at = null")
    world.do("update slices set facts_at = null")
    world.do("delete from jobs where kind = ?", EXTRACT)
    window(world, text="I'm allergic to nuts")
    assert world.value("select archived from windows where id = ?", first) == 1
    world.tick(121)

    assert maintained(world) == [("sweep_facts", 1)]
    world.run_until_idle()
    assert world.value("select count(*) from windows where facts_at is null") == 0


def test_a_sweep_schedules_only_the_slices_that_are_missing(world: World) -> None:
    world.add("t", " ".join(f"I met person {n}." for n in range(20_000)), tokens=30_000)
    world.end("t")
    world.run_until_idle()
    world.do("update windows set facts_at = null")
    world.do("update slices set facts_at = null where slice = 1")
    world.do("delete from jobs where kind = ?", EXTRACT)
    world.tick(121)

    assert maintained(world) == [("sweep_facts", 1)]
    assert list(world.states(EXTRACT)) == ["1.1"]


@pytest.mark.parametrize("state", ["dead", "discarded", "waiting"])
def test_a_sweep_leaves_what_somebody_decided_or_what_still_waits(world: World, state: str) -> None:
    made = window(world)
    if state == "dead":
        world.promote()
        for lease in world.claim(free=4):
            world.finish(lease, GiveUp("refused", "no"))
    elif state == "discarded":
        for job in world.rows("select id from jobs where kind = ?", EXTRACT):
            world.write(discard_by_hand, world.project.id, job[0], "unwanted")
    world.tick(121)
    world.maintain()
    assert maintained(world) == []
    expected = "ready" if state == "waiting" and world.states(EXTRACT)[f"{made}.0"] == "ready" else state
    assert world.states(EXTRACT) == {f"{made}.0": expected}


def test_skipped_windows_are_not_swept(world: World) -> None:
    world.add("t", "recalled", evidence=False)
    world.end("t")
    world.run_until_idle()
    world.tick(121)
    assert maintained(world) == []


def test_b07_dead_windows_in_front_do_not_hide_one_that_can_be_served(world: World) -> None:
    """More than a chunk of them, and the sweep is bounded."""
    count = CHUNK + 20
    for n in range(count):
        world.add(f"t{n}", "I live in Lisbon", subject=f"s{n % 7}")
        world.end(f"t{n}")
    while len(world.windows()) < count:
        world.step()
    world.do("update jobs set state = 'dead', owner = null, lease_until = null where kind = ?", EXTRACT)
    last = world.value("select max(id) from windows")
    world.do("update windows set facts_at = null")
    world.do("update slices set facts_at = null")
    world.do("delete from jobs where kind = ? and key = ?", EXTRACT, f"{last}.0")
    world.tick(121)

    assert maintained(world) == [("sweep_facts", 1)]
    assert world.states(EXTRACT)[f"{last}.0"] == "waiting"


def test_a_sweep_of_more_than_a_chunk_goes_on_to_the_end(world: World) -> None:
    count = CHUNK + 5
    for n in range(count):
        world.add(f"t{n}", "hello", subject=f"s{n % 7}")
        world.end(f"t{n}")
    world.run_until_idle()
    world.do("update windows set facts_at = null")
    world.do("update slices set facts_at = null")
    world.do("delete from jobs where kind = ?", EXTRACT)
    world.tick(121)
    assert maintained(world) == [("sweep_facts", count)]


# ---- abandoned threads


def abandon(world: World, thread: str = "t", subject: str = "ana", settings: str = "{}") -> None:
    world.create(thread, subject, settings)
    world.add(thread, "I live in Lisbon", subject=subject)
    world.do("delete from jobs where kind = 'open_window' and key = ?", str(world.stream(thread)))


def test_a_quiet_thread_without_a_timer_is_captured_after_a_day(world: World) -> None:
    abandon(world)
    world.maintain()
    world.tick(DAY_S - MINUTE_S)
    world.maintain()
    assert world.states("open_window") == {}
    world.tick(HOUR_S)

    assert ("sweep_abandoned", 1) in maintained(world)
    world.run_until_idle()
    assert world.windows("t") == [(1, 1)]
    assert world.repaired("sweep_abandoned") == 1


@pytest.mark.parametrize("state", ["done", "discarded"])
def test_a_finished_timer_over_uncaptured_messages_is_no_timer(world: World, state: str) -> None:
    world.add("t", "hello")
    world.do("update jobs set state = ?, finished_at = 1 where kind = 'open_window'", state)
    world.tick(DAY_S + 1)
    assert ("sweep_abandoned", 1) in maintained(world)


def test_an_abandoned_thread_whose_memory_is_off_is_skipped_and_says_why(world: World) -> None:
    abandon(world)
    world.set_project(memory__enabled=False)
    world.live(DAY_S + 2 * HOUR_S, every=HOUR_S)
    assert world.rows("select skipped_because from windows") == [("memory.enabled is false",)]


def test_b06_the_sweep_honours_each_threads_own_setting(world: World) -> None:
    abandon(world, "off")
    world.set_thread("off", '{"memory.enabled": false}')
    world.do("delete from jobs where kind = 'open_window'")
    abandon(world, "on")
    world.live(DAY_S + 2 * HOUR_S, every=HOUR_S)
    skipped = "select s.name, w.skipped_because from windows w join streams s on s.id = w.stream_id order by s.name"
    assert world.rows(skipped) == [("off", "memory.enabled is false"), ("on", None)]


def test_b06_a_thread_that_opted_in_is_swept_although_its_project_is_off(world: World) -> None:
    world.set_project(memory__enabled=False)
    abandon(world, "on", settings='{"memory.enabled": true}')
    world.live(DAY_S + 2 * HOUR_S, every=HOUR_S)
    assert world.rows("select skipped_because from windows") == [(None,)]


@pytest.mark.parametrize("count", [20, CHUNK + 20])
def test_b07_threads_that_cannot_be_served_do_not_hide_one_that_can(world: World, count: int) -> None:
    for n in range(count):
        abandon(world, f"quiet{n}", f"s{n}", '{"window.idle_s": null}')
    abandon(world, "served", "zoe")
    world.tick(DAY_S + 1)
    world.maintain()

    assert list(world.states("open_window")) == [str(world.stream("served"))]


def test_a_dead_timer_is_not_swept_for_it_is_visible(world: World) -> None:
    world.add("t", "hello")
    world.do("update jobs set state = 'dead', finished_at = 1 where kind = 'open_window'")
    world.tick(DAY_S + 1)
    assert "sweep_abandoned" not in dict(maintained(world))


# ---- conflicts and vectors


def test_an_open_conflict_without_a_judge_gets_one(world: World) -> None:
    """C14."""
    window(world)
    world.run_until_idle()
    fact = world.value("select id from facts")
    world.do("insert into verdicts(subject_id, earlier_fact, later_fact, opened_at) values(1, ?, ?, 1)", fact, fact)
    world.tick(121)

    assert maintained(world) == [("sweep_conflicts", 1)]
    assert world.states("judge_conflicts") == {"1": "waiting"}


def test_passages_without_vectors_and_without_a_job_are_embedded(world: World) -> None:
    world.add("t", "hello")
    world.do("delete from jobs where kind = 'embed_passages'")
    world.tick(121)

    assert maintained(world) == [("sweep_unembedded", 1)]
    world.tick(2)
    world.run_until_idle()
    assert world.value("select count(*) from passages where embedded is null") == 0


# ---- expired leases


def test_leases_that_ran_out_are_taken_back_with_a_warning(world: World) -> None:
    world.runner(kinds=kind_of())
    world.schedule("a")
    world.claim("dead", lease_s=60)
    world.tick(61)
    assert maintained(world) == [("expire_leases", 1)]
    assert world.job("a")["state"] == "waiting"


def test_pruning_is_routine_and_warns_of_nothing(world: World) -> None:
    window(world)
    world.run_until_idle()
    world.tick(31 * DAY_S)
    assert maintained(world) == []
    assert world.states(SUMMARISE) == {}
    world.tick(121)
    assert maintained(world) == [], "the effects have keys of their own: nothing is done again"


def test_pruning_keeps_dead_and_discarded_jobs(world: World) -> None:
    for key, state in (("a", "done"), ("b", "dead"), ("c", "discarded")):
        world.schedule(key)
        world.do("update jobs set state = ?, finished_at = 1 where key = ?", state, key)
    assert world.write(prune_jobs, 60.0) == 1
    assert world.states("work") == {"b": "dead", "c": "discarded"}


# ---- the rows of periodic work


def counting(world: World, name: str = "w1", *, every_s: float = 100.0) -> list[float]:
    """A worker with one task; when it ran."""
    ran: list[float] = []

    def chunk(conn, after, limit):
        ran.append(world.clock.monotonic_s())
        return 0, 0

    world.runner(name, kinds={}, tasks=[PeriodicTask(name="count", every_s=every_s, chunk=chunk)])
    return ran


def test_a_task_runs_soon_after_start_and_then_at_its_interval(world: World) -> None:
    ran = counting(world)
    for _ in range(61):
        world.maintain()
        world.tick(5)
    assert ran == [0, 100, 200, 300]


def test_a_restart_neither_skips_nor_repeats(world: World) -> None:
    """I06: a restart more often than the interval."""
    starts = []
    for n in range(30):
        ran = counting(world, f"life{n}")
        world.maintain(f"life{n}")
        starts += ran
        world.tick(40)
    waits = [b - a for a, b in itertools.pairwise(starts)]
    assert set(waits) == {120}


def test_two_workers_run_a_task_once_between_them(world: World) -> None:
    one, two = counting(world, "w1"), counting(world, "w2")
    for _ in range(40):
        world.maintain("w1")
        world.maintain("w2")
        world.tick(10)
    assert len(one) + len(two) == 4


def test_two_intervals_overdue_is_visible_in_its_row_and_caught_up_once(world: World) -> None:
    ran = counting(world)
    world.maintain()
    world.tick(500)
    (row,) = world.read(list_periodic)
    name, every, _, _, _, next_due, _ = row
    assert name == "count"
    assert world.clock.now_us() - next_due >= 2 * every
    world.maintain()
    world.maintain()
    assert ran == [0, 500]


def test_a_failure_keeps_its_place_and_is_shown_until_it_ends_well(world: World) -> None:
    """Three chunks; the second fails once."""
    seen: list[int] = []
    broken = [True]

    def chunk(conn, after, limit):
        seen.append(after)
        if after == 10 and broken.pop() if broken else False:
            raise StoreUnavailable("locked")
        return 1, {0: 10, 10: 20, 20: 0}[after]

    world.runner(kinds={}, tasks=[PeriodicTask(name="count", every_s=100, chunk=chunk)])
    world.maintain()
    assert world.rows("select last_error, cursor, rows_repaired, last_success_at from periodic") == [
        ("locked", 10, 1, None)
    ]
    world.tick(100)
    world.maintain()
    assert seen == [0, 10, 10, 20]
    assert world.rows("select last_error, cursor, rows_repaired from periodic") == [(None, 0, 3)]


def test_a_task_that_fails_does_not_stop_the_others(world: World) -> None:
    ran: list[str] = []

    def bad(conn, after, limit):
        raise StoreUnavailable("locked")

    def good(conn, after, limit):
        ran.append("good")
        return 0, 0

    world.runner(
        kinds={},
        tasks=[PeriodicTask(name="bad", every_s=100, chunk=bad), PeriodicTask(name="good", every_s=100, chunk=good)],
    )
    world.maintain()
    assert ran == ["good"]


def test_a_shorter_interval_holds_from_the_next_start(world: World) -> None:
    counting(world, "w1", every_s=10_000)
    world.maintain("w1")
    ran = counting(world, "w2", every_s=50)
    world.maintain("w2")
    world.tick(50)
    world.maintain("w2")
    assert len(ran) == 1


def test_b09_periodic_work_goes_on_when_the_wall_clock_is_set_back(world: World) -> None:
    ran = counting(world)
    world.maintain()
    world.clock.step_wall(-DAY_S)
    for _ in range(21):
        world.tick(10)
        world.maintain()
    assert ran == [0, 30, 150], "at the next look, and then at its interval again"


def test_b09_a_job_of_a_dead_worker_comes_back_after_the_clock_was_set_back(world: World) -> None:
    """Later by the step, and not never."""
    world.runner(kinds=kind_of())
    world.schedule("a")
    world.claim("dead", lease_s=60)
    world.clock.step_wall(-10 * MINUTE_S)
    world.live(12 * MINUTE_S, every=30)
    assert world.job("a")["state"] == "done"


def test_settings_have_the_intervals_of_the_brief(world: World) -> None:
    world.maintain()
    every = {row[0]: row[1] / US for row in world.read(list_periodic)}
    expected = {
        "expire_leases": 5,
        "sweep_summaries": 120,
        "sweep_facts": 120,
        "sweep_abandoned": 3600,
        "sweep_conflicts": 120,
        "sweep_unembedded": 120,
    }
    assert expected.items() <= every.items()
    base: Settings = world.settings
    assert (base.work.claim_max, base.window.abandoned_s, base.work.crashes_max, base.work.lease_s) == (
        20,
        DAY_S,
        5,
        600,
    )
