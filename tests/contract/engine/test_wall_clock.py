"""The wall clock is set back: what waits follows it, once, and as far as it was set (B09)."""

from __future__ import annotations

from tests.factories import HOUR_S, MINUTE_S, US, World

DAY_S = 24 * HOUR_S


def due_in_s(world: World) -> float:
    (at,) = [row[0] for row in world.rows("select due_at from jobs where kind = 'open_window'")]
    return float((at - world.clock.now_us()) / US)


def test_a_timer_waits_as_long_as_before_whatever_date_it_is(world: World) -> None:
    world.maintain()
    world.add("t", "hello")
    before = due_in_s(world)
    world.clock.step_wall(-3 * DAY_S)
    world.maintain()
    assert due_in_s(world) == before
    world.live(31 * MINUTE_S, every=60)
    assert world.windows("t") == [(1, 1)]


def test_of_two_workers_that_notice_the_step_one_moves_everything_once(world: World) -> None:
    world.runners(2)
    world.maintain("w1")
    world.maintain("w2")
    world.add("t", "hello")
    before = due_in_s(world)
    world.clock.step_wall(-3 * DAY_S)
    world.maintain("w1")
    world.maintain("w2")
    assert due_in_s(world) == before


def test_a_worker_that_starts_after_the_step_learns_of_it_from_the_store(world: World) -> None:
    world.maintain("w1")
    world.add("t", "hello")
    before = due_in_s(world)
    world.clock.step_wall(-3 * DAY_S)
    world.maintain("w2")
    assert due_in_s(world) == before


def test_a_clock_that_goes_forward_or_is_nudged_moves_nothing(world: World) -> None:
    world.maintain()
    world.add("t", "hello")
    at = world.clock.now_us()
    before = due_in_s(world)
    for step_s in (1.0, -1.0, -1.5, HOUR_S):
        world.clock.step_wall(step_s)
        world.maintain()
    moved_s = (world.clock.now_us() - at) / US
    assert due_in_s(world) == before - moved_s


def test_events_keep_the_time_that_was_written(world: World) -> None:
    world.maintain()
    world.add("t", "hello")
    at = world.clock.now_us()
    world.clock.step_wall(-DAY_S)
    world.maintain()
    assert world.rows("select recorded_at from events") == [(at,)]


def test_a_lease_ends_when_it_would_have_ended(world: World) -> None:
    world.maintain()
    world.add("t", "hello")
    world.tick(31 * MINUTE_S)
    world.maintain()
    (lease,) = [x for x in world.claim("dead", free=4, lease_s=600) if x.kind == "open_window"]
    world.clock.step_wall(-3 * DAY_S)
    world.live(12 * MINUTE_S, every=30)
    assert world.job(lease.key, kind="open_window")["state"] == "done"
    assert world.windows("t") == [(1, 1)]
