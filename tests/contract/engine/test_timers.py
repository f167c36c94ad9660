"""Timers and windows: when an episode opens, and that windows tile the stream (G5, B01-B09)."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.factories import HOUR_S, MINUTE_S, US, World

from everkept.config import Settings
from everkept.domain.erase import ProjectTarget, StreamTarget, SubjectTarget
from everkept.domain.jobs import Done, GiveUp
from everkept.store.erase import erase
from everkept.store.receipts import receipts_of
from everkept.store.reprocess import Selection, reprocess_chunk
from everkept.store.windows import open_windows

IDLE_S = 30 * MINUTE_S


def timer(world: World, thread: str = "t") -> dict:
    return world.job(str(world.stream(thread)), "open_window")


def opened_at(world: World) -> list[float]:
    """Minutes since the start at which each window opened."""
    start = world.clock.now_us() - int(world.clock.monotonic_s() * US)
    return [(at - start) / US / 60 for (at,) in world.rows("select opened_at from windows order by id")]


def receipt(world: World, thread: str, seq: int):
    base: Settings = world.settings
    (row,) = world.read(receipts_of, world.project.id, [(world.stream(thread), seq)], base)
    return row


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_every_accepted_message_of_any_role_sets_the_timer_half_an_hour_away(world: World, role: str) -> None:
    world.add("t", "hello")
    world.tick(10 * MINUTE_S)
    world.add("t", "something", role=role)
    assert timer(world)["due_at"] == IDLE_S


def test_a_replayed_message_moves_no_timer(world: World) -> None:
    world.add("t", "hello", key="k")
    world.tick(10 * MINUTE_S)
    world.add("t", "hello", key="k")
    assert timer(world)["due_at"] == 20 * MINUTE_S


def test_fifty_messages_a_minute_apart_give_one_window_half_an_hour_after_the_last(world: World) -> None:
    for n in range(50):
        world.add("t", f"message {n}")
        world.live(MINUTE_S, every=60, maintain=False)
    world.live(40 * MINUTE_S, every=60, maintain=False)

    assert world.windows("t") == [(1, 50)]
    assert opened_at(world) == [49 + 30]


def test_b08_a_message_every_ten_minutes_for_twelve_hours_gives_windows_on_the_way(world: World) -> None:
    for n in range(72):
        world.add("t", f"message {n}")
        world.live(10 * MINUTE_S, every=150, maintain=False)
    world.live(40 * MINUTE_S, every=150, maintain=False)

    found = world.windows("t")
    assert len(found) >= 3
    assert (found[0][0], found[-1][1]) == (1, 72)
    assert opened_at(world)[0] == pytest.approx(4.5 * 60, abs=3)
    assert max(b - a for a, b in pairwise(opened_at(world))) <= 4.5 * 60 + 13


def test_a_conversation_that_never_pauses_does_not_wake_its_timer_at_every_message(world: World) -> None:
    """Full windows open on the way; the job's first due time stays behind, and must not make every message due."""
    for _ in range(330):
        world.add("t", "a message")
        world.live(MINUTE_S, every=60, maintain=False)
    woken = world.value("select fence from jobs where kind = 'open_window'")
    assert world.windows("t") == [(1, 100), (101, 200), (201, 300)]
    assert woken <= 12


# ---- siblings


def test_creating_a_thread_pulls_the_timers_of_its_subject_to_five_minutes_from_now(world: World) -> None:
    world.add("t", "hello")
    world.add("other subject", "hello", subject="ben")
    world.tick(MINUTE_S)
    world.create("u")

    assert timer(world)["due_at"] == 5 * MINUTE_S
    assert timer(world, "other subject")["due_at"] == 29 * MINUTE_S
    world.live(6 * MINUTE_S, every=30)
    assert world.windows("t") == [(1, 1)]


def test_the_first_message_of_a_new_thread_pulls_too_and_later_ones_do_not(world: World) -> None:
    world.add("t", "hello")
    world.add("u", "hello")
    assert timer(world)["due_at"] == 5 * MINUTE_S
    world.add("t", "again")
    world.add("u", "again")
    assert timer(world)["due_at"] == IDLE_S


def test_creating_a_thread_again_pulls_nothing(world: World) -> None:
    world.create("u")
    world.add("t", "hello")
    world.create("u")
    assert timer(world)["due_at"] == IDLE_S


def test_a_timer_is_never_pulled_to_later_than_it_was(world: World) -> None:
    world.add("t", "hello")
    world.tick(28 * MINUTE_S)
    world.create("u")
    assert timer(world)["due_at"] == 2 * MINUTE_S


def test_timers_of_other_projects_are_not_pulled(make_world) -> None:
    one, two = make_world(project="one"), make_world(project="two")
    one.add("t", "hello")
    two.create("u")
    assert timer(one)["due_at"] == IDLE_S


def test_the_next_message_of_a_pulled_sibling_debounces_again(world: World) -> None:
    world.add("t", "hello")
    world.create("u")
    world.tick(4 * MINUTE_S)
    world.add("t", "not finished yet")
    world.live(6 * MINUTE_S, every=30)

    assert world.windows("t") == []
    assert timer(world)["due_at"] == 24 * MINUTE_S


@pytest.mark.only_on("sqlite", reason="it asks SQLite for its plan; PostgreSQL's are guarded at their full size")
def test_pulling_finds_its_timers_by_index(world: World) -> None:
    from everkept.store.streams import _PULL_STREAMS

    names = {"due": 1, "subject": 1, "new": 1, "project": 1}
    for statement in _PULL_STREAMS:
        sql = str(statement.compile()).split("returning")[0]
        plan = world.read(lambda conn, sql=sql: conn.raw.execute(f"explain query plan {sql}", names).fetchall())
        steps = [row[3] for row in plan]
        assert not [s for s in steps if s.startswith("SCAN")], steps
        assert any("kind=? AND key=?" in s for s in steps), steps


# ---- settings are read when the timer fires


def test_a_longer_idle_time_set_meanwhile_holds_when_the_timer_fires(world: World) -> None:
    world.add("t", "hello")
    world.set_thread("t", '{"window.idle_s": 7200}')
    world.live(119 * MINUTE_S, every=60, maintain=False)
    assert world.windows("t") == []
    world.live(2 * MINUTE_S, every=60, maintain=False)
    assert opened_at(world) == [120]


def test_a_shorter_idle_time_is_armed_at_once_from_the_last_message(world: World) -> None:
    world.add("t", "hello")
    world.tick(5 * MINUTE_S)
    world.set_thread("t", '{"window.idle_s": 600}')
    assert timer(world)["due_at"] == 5 * MINUTE_S


def test_changing_another_setting_postpones_no_timer(world: World) -> None:
    world.add("t", "hello")
    world.tick(29 * MINUTE_S)
    world.set_thread("t", '{"recall.facts_max": 3}')
    assert timer(world)["due_at"] == MINUTE_S


@pytest.mark.parametrize("where", ["thread", "project"])
def test_memory_off_when_the_timer_fires_skips_the_window_and_the_receipt_names_the_setting(
    world: World, where: str
) -> None:
    world.add("t", "I live in Lisbon")
    if where == "thread":
        world.set_thread("t", '{"memory.enabled": false}')
    else:
        world.set_project(memory__enabled=False)
    world.live(HOUR_S, every=60, maintain=False)

    assert world.rows("select skipped_because from windows") == [("memory.enabled is false",)]
    assert timer(world)["state"] == "done"
    assert world.states("summarise_episode") == world.states("extract_facts") == {}
    row = receipt(world, "t", 1)
    assert (row.state, row.reason) == ("skipped", "memory.enabled is false")


def test_what_was_skipped_is_captured_later_by_reprocess(world: World) -> None:
    world.add("t", "I live in Lisbon")
    world.set_thread("t", '{"memory.enabled": false}')
    world.add("t", "I'm allergic to nuts")
    world.live(HOUR_S, every=60, maintain=False)
    world.set_thread("t", "{}")
    selection = Selection(
        project=world.project.id,
        stream=None,
        subject=None,
        since=None,
        until=None,
        include_skipped=True,
        fresh=False,
        model=None,
    )
    world.write(reprocess_chunk, selection, None)
    world.live(MINUTE_S)

    assert [receipt(world, "t", n).state for n in (1, 2)] == ["remembered", "remembered"]
    assert world.value("select count(*) from facts") == 2


def test_a_message_said_while_memory_is_off_arms_no_timer(world: World) -> None:
    world.create("t", settings='{"memory.enabled": false}')
    world.add("t", "hello")
    assert world.states("open_window") == {}


def test_b06_a_thread_may_remember_where_its_project_does_not(world: World) -> None:
    world.set_project(memory__enabled=False)
    world.create("t", settings='{"memory.enabled": true}')
    world.add("t", "I live in Lisbon")
    world.add("off", "I live in Porto")
    world.live(HOUR_S, every=60, maintain=False)
    assert world.windows("t") == [(1, 1)]
    assert world.value("select skipped_because from windows") is None


def test_idle_null_arms_no_timer_and_an_end_still_captures(world: World) -> None:
    world.create("t", settings='{"window.idle_s": null}')
    world.add("t", "I live in Lisbon")
    world.live(3 * 24 * HOUR_S, every=HOUR_S)
    assert (world.states("open_window"), world.windows("t")) == ({}, [])

    assert world.end("t")[0]
    world.run_until_idle()
    assert world.windows("t") == [(1, 1)]


def test_idle_null_set_meanwhile_stops_the_timer(world: World) -> None:
    world.add("t", "hello")
    world.set_thread("t", '{"window.idle_s": null}')
    world.live(3 * HOUR_S, every=300, maintain=False)
    assert (world.windows("t"), timer(world)["state"]) == ([], "done")


def test_setting_an_idle_time_again_arms_a_timer(world: World) -> None:
    world.create("t", settings='{"window.idle_s": null}')
    world.add("t", "hello")
    world.tick(10 * MINUTE_S)
    world.set_thread("t", "{}")
    assert timer(world)["due_at"] == 20 * MINUTE_S


# ---- ends


def test_an_end_opens_at_once(world: World) -> None:
    world.add("t", "one", "two")
    assert world.end("t") == (True, "2 messages await their episode")
    world.run_until_idle()
    assert world.windows("t") == [(1, 2)]


def test_two_ends_give_one_window(world: World) -> None:
    """B02."""
    world.add("t", "one")
    world.end("t")
    world.end("t")
    world.runners(2)
    world.run_until_idle("w1", "w2")
    assert world.windows("t") == [(1, 1)]
    assert world.end("t")[0] is False


def test_an_end_beside_a_due_timer_gives_one_window(world: World) -> None:
    world.add("t", "one")
    world.tick(IDLE_S)
    world.promote()
    world.end("t")
    world.run_until_idle()
    assert world.windows("t") == [(1, 1)]


def test_an_end_while_the_timer_runs_opens_what_came_since(world: World) -> None:
    world.add("t", "one")
    world.end("t")
    (lease,) = world.claim()
    world.add("t", "two")
    world.end("t")
    world.tick(700)
    world.maintain()
    world.run_until_idle()

    assert lease.kind == "open_window"
    assert world.windows("t")[-1][1] == 2
    assert timer(world)["state"] == "done"


def test_an_end_does_not_take_what_is_said_after_it(world: World) -> None:
    world.add("t", "one")
    world.end("t")
    world.add("t", "two")
    world.run_until_idle()
    assert world.windows("t") == [(1, 1)]
    assert timer(world)["due_at"] == IDLE_S


def test_an_end_with_memory_off_says_so(world: World) -> None:
    world.create("t", settings='{"memory.enabled": false}')
    world.add("t", "one")
    assert world.end("t") == (False, "memory.enabled is false here: 1 messages are kept, and not remembered")


# ---- full windows and tiling


def test_a_hundred_events_open_a_window_at_once(world: World) -> None:
    world.add("t", *(f"m{n}" for n in range(99)))
    world.run_until_idle()
    assert world.windows("t") == []
    world.add("t", "m99", "m100")
    world.run_until_idle()

    assert world.windows("t") == [(1, 100)]
    assert timer(world)["due_at"] == IDLE_S


def test_twelve_thousand_tokens_open_a_window_at_once(world: World) -> None:
    world.add("t", "a", tokens=6_000)
    world.add("t", "b", tokens=6_000)
    world.add("t", "c", tokens=10)
    world.run_until_idle()
    assert world.windows("t") == [(1, 2)]


def test_a_window_never_exceeds_the_tokens(world: World) -> None:
    for n in range(7):
        world.add("t", f"m{n}", tokens=5_000)
    world.end("t")
    world.run_until_idle()
    assert world.windows("t") == [(1, 2), (3, 4), (5, 6), (7, 7)]


def test_b03_an_event_over_the_limit_is_a_window_of_its_own_worked_in_slices(world: World) -> None:
    world.add("t", "small")
    world.add("t", " ".join(f"I met person {n}." for n in range(20_000)), tokens=30_000)
    world.add("t", "small")
    world.end("t")
    world.run_until_idle()

    assert world.windows("t") == [(1, 1), (2, 2), (3, 3)]
    slices = world.value("select slices from windows where start_seq = 2")
    assert slices >= 3
    assert set(world.states("extract_facts").values()) == {"done"}
    assert world.value("select count(*) from slices where facts_at is null or summary_at is null") == 0


def test_a_thousand_messages_at_once_are_all_covered(world: World) -> None:
    world.add("t", *(f"m{n}" for n in range(1_000)))
    world.end("t")
    world.run_until_idle()
    assert world.windows("t") == [(n * 100 + 1, n * 100 + 100) for n in range(10)]


def test_b04_a_window_without_evidence_is_skipped_with_its_reason(world: World) -> None:
    world.add("t", "summary of what was said", evidence=False)
    world.end("t")
    world.run_until_idle()
    assert world.rows("select skipped_because from windows") == [("nothing in it is evidence",)]


def test_a_new_window_archives_the_one_before(world: World) -> None:
    for _ in range(2):
        world.add("t", "hello")
        world.end("t")
        world.run_until_idle()
    assert world.rows("select start_seq, archived from windows order by id") == [(1, 1), (2, 0)]


VIOLATIONS = {
    "gap": (4, 5, 2),
    "overlap": (2, 3, 1),
    "a second first": (1, 1, None),
    "backwards": (3, 2, 2),
    "not after its neighbour": (4, 4, 2),
    "a neighbour that does not exist": (8, 9, 7),
    "the same end": (3, 2, 2),
}


@pytest.mark.parametrize(("start", "end", "prev"), VIOLATIONS.values(), ids=VIOLATIONS.keys())
def test_the_database_refuses_windows_that_do_not_tile(world: World, start: int, end: int, prev: int | None) -> None:
    world.add("t", *"abcdefghi")
    insert = """insert into windows(project_id, subject_id, stream_id, start_seq, end_seq, prev_end, opened_at,
        opened_because)
      values(1, 1, ?, ?, ?, ?, 1, 'test')"""
    stream = world.stream("t")
    world.do(insert, stream, 1, 2, None)
    with pytest.raises(Exception, match=r"constraint (failed|\"(ck|fk|uq)_windows_)"):
        world.do(insert, stream, start, end, prev)
    world.do(insert, stream, 3, 4, 2)
    with pytest.raises(Exception, match=r"constraint (failed|\"(ck|fk|uq)_windows_)"):
        world.do(insert, stream, 3, 5, 2)


STEP = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 12), st.sampled_from([1, 40, 90, 130, 250])),
    st.tuples(st.just("end")),
    st.tuples(st.just("tick"), st.sampled_from([30, 400, 1_900])),
    st.tuples(st.just("work")),
    st.tuples(st.just("die")),
    st.tuples(st.just("sibling")),
    st.tuples(st.just("settings"), st.sampled_from(['{"window.idle_s": null}', '{"memory.enabled": false}', "{}"])),
)


def test_any_sequence_of_appends_ends_ticks_and_deaths_tiles_the_stream(make_world) -> None:
    """With small limits: 8 events, 300 tokens. After each step no gap and no overlap; after an end, nothing is left."""
    count = iter(range(1_000_000))

    @settings(
        max_examples=40,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(st.lists(STEP, min_size=3, max_size=14))
    def check(steps) -> None:
        n = next(count)
        world = make_world(project=f"p{n}", window__events_max=8, window__tokens_max=300)
        world.create("t")
        for step in steps:
            match step:
                case ("add", many, tokens):
                    world.add("t", *(f"m{i}" for i in range(many)), tokens=tokens)
                case ("end",):
                    world.end("t")
                case ("tick", seconds):
                    world.tick(seconds)
                case ("work",):
                    world.run_until_idle()
                case ("die",):
                    world.claim("dying", lease_s=10)
                    world.tick(11)
                    world.maintain()
                case ("sibling",):
                    world.create(f"sibling {world.clock.now_us()}")
                case ("settings", new):
                    world.set_thread("t", new)
            assert_tiles(world, "t", complete=False)
        world.set_thread("t", "{}")
        world.end("t")
        world.tick(700)
        world.maintain()
        world.run_until_idle()
        assert_tiles(world, "t", complete=True)

    check()


def assert_tiles(world: World, thread: str, *, complete: bool) -> None:
    last, covered, pending = world.rows(
        "select last_seq, covered_seq, pending_tokens from streams where id = ?", world.stream(thread)
    )[0]
    next_start = 1
    for start, end in world.windows(thread):
        assert start == next_start
        assert end - start < 8
        total = world.value(
            "select sum(tokens) from events where stream_id = ? and seq between ? and ?",
            world.stream(thread),
            start,
            end,
        )
        assert total <= 300 or start == end
        next_start = end + 1
    assert covered == next_start - 1
    tokens = world.value(
        "select coalesce(sum(tokens), 0) from events where stream_id = ? and seq > ?", world.stream(thread), covered
    )
    assert pending == tokens
    if complete:
        assert covered == last


# ---- B01, B09


def test_b01_a_timer_survives_the_death_of_who_claimed_it(world: World) -> None:
    world.add("t", "hello")
    world.tick(IDLE_S)
    assert len(world.claim("dying", lease_s=60)) >= 1
    world.tick(61)
    world.maintain()
    world.run_until_idle()
    assert world.windows("t") == [(1, 1)]


def test_a_dead_timer_is_shown_and_the_next_message_arms_it_again(world: World) -> None:
    world.add("t", "hello")
    world.tick(IDLE_S)
    (lease,) = [x for x in world.claim(free=4) if x.kind == "open_window"]
    world.finish(lease, GiveUp("internal", "a bug of yesterday"))
    row = receipt(world, "t", 1)
    assert row.state == "failed"
    assert "a bug of yesterday" in row.reason

    world.add("t", "still there?")
    job = timer(world)
    assert (job["state"], job["due_at"]) == ("waiting", HOUR_S)
    assert "a bug of yesterday" in json.loads(job["history"])[0]["error"]
    world.live(2 * HOUR_S, every=300)
    assert world.windows("t") == [(1, 2)]


def test_b09_a_wall_clock_that_steps_back_delays_a_window_by_the_step_and_loses_none(world: World) -> None:
    world.add("t", "hello")
    world.clock.step_wall(-HOUR_S)
    world.add("t", "again")
    world.live(2 * HOUR_S, every=60)
    assert world.windows("t") == [(1, 2)]
    assert timer(world)["state"] == "done"


def test_b09_a_wall_clock_that_steps_forward_opens_the_window_at_once(world: World) -> None:
    world.add("t", "hello")
    world.clock.step_wall(24 * HOUR_S)
    world.live(MINUTE_S)
    assert world.windows("t") == [(1, 1)]
    assert {"done"} == set(world.states().values())


def test_b09_messages_keep_their_order_when_the_clock_steps_back_between_them(world: World) -> None:
    world.add("t", "first")
    world.clock.step_wall(-HOUR_S)
    world.add("t", "second")
    assert [r[0] for r in world.rows("select content from events order by seq")] == ["first", "second"]


def test_tokens_that_lie_in_a_window_fill_no_other(world: World) -> None:
    world.add("t", "a", tokens=12_000)
    world.run_until_idle()
    world.add("t", "b", tokens=11_999)
    world.run_until_idle()
    assert (world.windows("t"), world.value("select pending_tokens from streams")) == ([(1, 1)], 11_999)
    world.add("t", "c", tokens=1)
    world.run_until_idle()
    assert (world.windows("t"), world.value("select pending_tokens from streams")) == ([(1, 1), (2, 3)], 0)


@pytest.mark.parametrize("what", ["project", "subject", "thread"])
def test_a_timer_that_fires_while_its_scope_is_erased_opens_nothing(world: World, what: str) -> None:
    world.add("t", "Hello.")
    stream = world.stream("t")
    subject = world.value("select subject_id from streams where id = ?", stream)
    target = {
        "project": ProjectTarget(),
        "subject": SubjectTarget(subject=subject),
        "thread": StreamTarget(stream=stream),
    }[what]
    world.write(erase, world.project.id, target)  # hidden at once; what rests on it goes chunk by chunk
    world.tick(24 * HOUR_S)
    assert world.write(open_windows, stream, world.settings) == Done()
    assert world.value("select count(*) from windows") == 0
