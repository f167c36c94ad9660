"""Status says what is there, what is late, what failed and who works, and stays cheap (G14)."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import TextClause, text
from tests.stubs.worked_store import WorkedStore

from everkept.domain.jobs import Discard, Snooze
from everkept.errors import NotFound
from everkept.store import joblist, receipts, status
from everkept.store.connection import Connection, _compile
from everkept.store.counters import count
from everkept.store.joblist import JobRow, get_job, list_jobs
from everkept.store.jobs_by_hand import discard_by_hand
from everkept.store.leases import expire_leases
from everkept.store.periodic import end_periodic, register_periodic, take_periodic
from everkept.store.projects import ensure_project, find_subject
from everkept.store.providers import note_failure, permits_left
from everkept.store.status import StatusRow, read_status
from everkept.store.windows import list_windows, stages_of


@pytest.fixture
def worked(tmp_path: Path) -> Iterator[WorkedStore]:
    store = WorkedStore(tmp_path)
    yield store
    store.close()


def look(worked: WorkedStore) -> StatusRow:
    return worked.store.read_now(read_status, worked.project, worked.settings)


def check(worked: WorkedStore, name: str) -> tuple[bool, float]:
    found = next(c for c in look(worked).checks if c.name == name)
    return found.ok, found.value


# ---- what is kept, and what waits


def test_an_empty_store_is_healthy(worked: WorkedStore) -> None:
    now = look(worked)

    assert (now.messages, now.episodes, now.facts, now.stages) == (0, 0, 0, {})
    assert (now.backlog.due, now.backlog.armed, now.backlog.oldest_due_s) == (0, 0, None)
    assert [c.ok for c in now.checks] == [True, True, True]
    library = "SQLite" if worked.store.path is not None else "PostgreSQL"
    assert (now.store["library"].split()[0], now.store["degraded"]) == (library, None)
    assert now.store["size_bytes"] > 0
    assert now.store["degraded"] is None or now.store["journal_mode"] != "wal"


def test_messages_are_counted_without_the_erased_ones(worked: WorkedStore) -> None:
    worked.say("chat-1", "one", "two", "three")
    erased = "update events set content = null, erased_at = :now where seq = 2 returning seq"
    worked.sql(erased, now=worked.clock.now_us())

    assert look(worked).messages == 2


def test_an_armed_timer_is_no_due_work_until_its_time_has_come(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.clock.advance(2)
    worked.take("embed_passages")
    assert _backlog(look(worked)) == (0, 1, None)

    worked.clock.advance(1808)

    assert _backlog(look(worked)) == (1, 0, 10.0)
    (lane,) = look(worked).lanes
    assert (lane.project, lane.subject, lane.ready, lane.oldest_due_s) == ("default", "user_42", 1, 10.0)


def test_a_ready_timer_that_a_message_pushed_out_is_armed_again(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.clock.advance(1801)
    worked.sql("update jobs set state = 'ready' where kind = 'open_window' returning id")
    worked.sql("delete from jobs where kind = 'embed_passages' returning id")
    assert _backlog(look(worked)) == (1, 0, 1.0)

    worked.say("chat-1", "one more thing")

    assert _backlog(look(worked))[0] == 0


def _backlog(now: StatusRow) -> tuple[int, int, float | None]:
    return now.backlog.due, now.backlog.armed, now.backlog.oldest_due_s


def test_another_project_is_not_counted(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.end("chat-1")
    worked.give_up(worked.take("extract_facts"))
    other = worked.store.write_now(ensure_project, "other", b"t" * 32).id

    found = worked.store.read_now(read_status, other, worked.settings)

    assert (found.messages, found.episodes, found.stages, found.given_up, found.lanes) == (0, 0, {}, [], [])
    assert (found.backlog.due, found.backlog.armed) == (0, 0)
    assert [c.ok for c in found.checks] == [True, True, True]


# ---- stages


def test_stages_follow_an_episode(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.end("chat-1")
    assert look(worked).stages == {"pending/pending": 1}

    worked.summarise()
    assert look(worked).stages == {"completed/processing": 1}

    worked.extract()
    assert look(worked).stages == {"completed/completed": 1}


@pytest.mark.parametrize("seed", range(4))
def test_stages_agree_with_the_episodes_whatever_happened(worked: WorkedStore, seed: int) -> None:
    chance = random.Random(seed)
    for n in range(12):
        tokens = chance.choice([5, 30_000])
        worked.say(f"chat-{n}", "x" * 10, subject=f"user_{n % 5}", evidence=n % 6 != 0, tokens=tokens)
        worked.end(f"chat-{n}")
    for _ in range(40):
        kind = chance.choice(["summarise_episode", "extract_facts"])
        try:
            lease = worked.take(kind)
        except AssertionError:
            worked.clock.advance(5)
            continue
        match chance.choice(["done", "done", "fail", "dead", "discard", "snooze", "hold"]):
            case "done":
                worked.hold(lease)
                worked.summarise() if kind == "summarise_episode" else worked.extract()
            case "fail":
                worked.fail(lease, after_s=chance.choice([1, 600]))
            case "dead":
                worked.give_up(lease)
            case "discard":
                worked.book(lease, Discard("nothing to do"))
            case "snooze":
                worked.book(lease, Snooze(worked.clock.now_us() + 1_000_000))
    again = "update jobs set state = 'waiting' where kind = 'summarise_episode' and state = 'done' and id % 3 = 0"
    worked.sql(again + " returning id")

    assert _stages_one_by_one(worked) == look(worked).stages
    assert look(worked).stages == worked.store.read_now(read_status, None, worked.settings).stages


def test_a_part_without_a_job_keeps_its_episode_pending(worked: WorkedStore) -> None:
    worked.say("chat-1", "long " * 16_000, tokens=20_000)
    worked.end("chat-1")
    worked.sql("delete from jobs where kind = 'summarise_episode' and key <> '1.0' returning id")
    worked.summarise()

    assert {"pending/processing": 1} == look(worked).stages == _stages_one_by_one(worked)


def _stages_one_by_one(worked: WorkedStore) -> dict[str, int]:
    def read(conn: Connection) -> dict[str, int]:
        windows = list_windows(conn, worked.project, limit=1000)
        stages = stages_of(conn, windows)
        return dict(Counter(f"{s['summary'].state}/{s['facts'].state}" for s in stages.values()))

    return worked.store.read_now(read)


# ---- stuck, given up, timings


def test_a_lease_that_ended_is_stuck_until_it_is_taken_back(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.end("chat-1")
    lease = worked.take("summarise_episode")
    assert look(worked).stuck == []
    worked.clock.advance(worked.settings.work.lease_s + 1)

    stuck = {item.id: item for item in look(worked).stuck}

    assert (stuck[f"job_{lease.job}"].stage, stuck[f"job_{lease.job}"].subject) == ("summary", "user_42")
    assert stuck[f"job_{lease.job}"].error == "the lease of worker-1 ended: the next tick takes it back"
    worked.store.write_now(expire_leases, 5)
    assert [item.stage for item in look(worked).stuck] == ["embedding"]


def test_what_failed_twice_is_stuck_and_what_failed_once_is_not(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.end("chat-1")
    lease = worked.take("extract_facts")
    worked.fail(lease, after_s=1)
    assert look(worked).stuck == []

    worked.clock.advance(2)
    worked.fail(worked.take("extract_facts"), "x" * 500)

    (stuck,) = look(worked).stuck
    assert (f"job_{lease.job}", "facts", 2) == (stuck.id, stuck.stage, stuck.attempts)
    assert stuck.error == "x" * 119 + "…"


def test_due_work_that_nobody_begins_is_stuck_after_five_minutes(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.clock.advance(1800 + 299)
    assert [item.stage for item in look(worked).stuck] == ["embedding"]

    worked.clock.advance(2)

    stuck = look(worked).stuck
    assert [item.stage for item in stuck] == ["embedding", "window"]
    assert {status.NO_WORKER} == {item.error for item in stuck}
    worked.beat()
    assert {status.NOT_BEGUN} == {item.error for item in look(worked).stuck}


def test_dead_letters_are_given_up_newest_first(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.end("chat-1")
    first = worked.take("summarise_episode")
    worked.give_up(first)
    worked.clock.advance(5)
    second = worked.take("extract_facts")
    worked.give_up(second, "y" * 500)

    given_up = look(worked).given_up

    assert [f"job_{second.job}", f"job_{first.job}"] == [item.id for item in given_up]
    assert [item.error for item in given_up] == ["y" * 119 + "…", "nonsense again"]
    assert look(worked).stages == {"dead/dead": 1}


def test_timings_run_from_the_opening_to_the_end_of_a_stage(worked: WorkedStore) -> None:
    for n in range(10):
        worked.say(f"chat-{n}", "hello", subject=f"user_{n}")
        worked.end(f"chat-{n}")
        worked.clock.advance(n + 1)
        worked.summarise()

    summary, facts = look(worked).timings

    assert (summary.stage, summary.completed, summary.p50_s, summary.p95_s) == ("summary", 10, 5.0, 10.0)
    assert (facts.stage, facts.completed, facts.p50_s, facts.p95_s) == ("facts", 0, None, None)
    worked.clock.advance(86_400)
    assert look(worked).timings[0].completed == 0


# ---- who works


def test_workers_show_their_leases_and_leave_when_they_are_silent(worked: WorkedStore) -> None:
    worked.beat()
    worked.say("chat-1", "hello")
    worked.end("chat-1")
    lease = worked.take("summarise_episode")

    (worker,) = look(worked).workers
    assert (worker.id, worker.slots) == ("worker-1", 4)
    assert f"job_{lease.job}" in worker.leases
    assert worker.running == len(worker.leases)

    worked.clock.advance(worked.settings.work.lease_s + 1)
    assert [w.id for w in look(worked).workers] == ["worker-1"], "it still holds a lease"
    worked.store.write_now(expire_leases, 5)
    assert look(worked).workers == []


def test_periodic_work_is_degraded_two_intervals_late(worked: WorkedStore) -> None:
    worked.store.write_now(register_periodic, {"sweep": 60.0})
    worked.store.write_now(take_periodic, "sweep")
    worked.store.write_now(end_periodic, "sweep", None, 3, 0)
    worked.clock.advance(179)
    (task,) = look(worked).periodic
    assert (task.every_s, task.rows_repaired, task.degraded) == (60.0, 3, False)

    worked.clock.advance(2)

    assert look(worked).periodic[0].degraded


def test_periodic_work_that_only_fails_is_degraded(worked: WorkedStore) -> None:
    worked.store.write_now(register_periodic, {"sweep": 60.0})
    worked.store.write_now(take_periodic, "sweep")
    worked.store.write_now(end_periodic, "sweep", "no such table", 0, 0)

    assert (look(worked).periodic[0].degraded, look(worked).periodic[0].last_error) == (True, "no such table")


def test_a_provider_shows_its_circuit_and_who_waits(tmp_path: Path) -> None:
    worked = WorkedStore(tmp_path, env={"EVERKEPT_MODEL": "openai:gpt-5-mini"})
    worked.store.write_now(permits_left, "openai:abc", 0, 8)
    worked.say("chat-1", "hello")
    worked.end("chat-1")
    worked.take("extract_facts")
    worked.store.write_now(
        lambda conn: note_failure(conn, "openai:abc", "provider_down", "401 bad key", probe_s=60, retry_after_s=None)
    )

    (provider,) = look(worked).providers

    assert (provider.name, provider.circuit, provider.reason) == ("openai:abc", "open", "401 bad key")
    assert provider.permits == 8
    assert (provider.in_flight, provider.waiting) == (2, 0)
    assert provider.next_probe_at == worked.clock.now_us() + 60_000_000
    worked.close()


def test_counters_are_shown(worked: WorkedStore) -> None:
    worked.store.write_now(count, "refused_finishes", 2)
    worked.store.write_now(count, "asked_again", 3)

    assert (look(worked).refused_finishes, look(worked).asked_again) == (2, 3)


# ---- the three thresholds


def test_old_due_work_trips_its_check(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.clock.advance(301)
    assert check(worked, "due_work_old") == (True, 300.0)

    worked.clock.advance(1)

    assert check(worked, "due_work_old") == (False, 301.0)


def test_failures_of_the_last_hour_trip_their_check(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.end("chat-1")
    worked.fail(worked.take("summarise_episode"), after_s=1)
    worked.give_up(worked.take("extract_facts"))
    worked.clock.advance(2)
    worked.summarise()

    assert check(worked, "episode_failures") == (False, 1), "it succeeded in the end, and has failed within the hour"
    assert check(worked, "fact_failures") == (False, 1)
    worked.clock.advance(3600)
    assert check(worked, "episode_failures") == (True, 0)
    assert check(worked, "fact_failures") == (True, 0)


@pytest.mark.parametrize("error_class", status.NOT_A_FAILURE)
def test_work_that_was_put_off_as_it_should_is_no_failure(worked: WorkedStore, error_class: str) -> None:
    worked.say("chat-1", "hello")
    worked.end("chat-1")
    worked.fail(worked.take("extract_facts"), error_class=error_class)

    assert check(worked, "fact_failures") == (True, 0)


# ---- jobs


def jobs_of(worked: WorkedStore, **asked: Any) -> list[JobRow]:
    given = {"state": None, "kind": None, "before": None, "limit": 50, "subject": None} | asked
    return worked.store.read_now(list_jobs, worked.project, *given.values())


def test_jobs_are_listed_newest_first_with_what_they_work_on(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.end("chat-1")

    assert [(j.kind, j.input, j.subject, j.state) for j in jobs_of(worked)] == [
        ("extract_facts", "episode epi_1", "user_42", "waiting"),
        ("summarise_episode", "episode epi_1", "user_42", "waiting"),
        ("embed_passages", "project default", None, "waiting"),
        ("open_window", "thread chat-1", "user_42", "done"),
    ]


def test_jobs_are_paged_and_filtered(worked: WorkedStore) -> None:
    for n in range(5):
        worked.say(f"chat-{n}", "hello", subject=f"user_{n}")
    worked.clock.advance(1801)
    lease = worked.take("open_window")
    worked.give_up(lease)

    assert [lease.job] == [j.id for j in jobs_of(worked, state="dead")]
    assert jobs_of(worked, state="sleeping") == []
    everything = jobs_of(worked, kind="open_window")
    second = jobs_of(worked, kind="open_window", before=everything[1].id)
    assert everything == [*jobs_of(worked, kind="open_window", limit=2), *second]


def test_jobs_of_a_lane_are_listed_in_every_state(worked: WorkedStore) -> None:
    for subject in ("user_1", "user_2"):
        worked.say(f"chat of {subject}", "hello", subject=subject)
        worked.end(f"chat of {subject}")
    worked.give_up(worked.take("extract_facts"))
    one, two = (worked.store.read_now(find_subject, worked.project, name) for name in ("user_1", "user_2"))

    for state in (None, *joblist.STATES):
        everything = jobs_of(worked, state=state)
        for number, name in ((one, "user_1"), (two, "user_2")):
            assert [j for j in everything if j.subject == name] == jobs_of(worked, state=state, subject=number)
    assert [j.kind for j in jobs_of(worked, subject=one, kind="open_window")] == ["open_window"]
    newest = jobs_of(worked, subject=one)
    assert newest == [*jobs_of(worked, subject=one, limit=1), *jobs_of(worked, subject=one, before=newest[0].id)]
    assert jobs_of(worked, subject=10**6) == []


def test_parts_of_an_episode_are_told_apart(worked: WorkedStore) -> None:
    worked.say("chat-1", "long " * 16_000, tokens=20_000)
    worked.end("chat-1")

    assert [j.input for j in jobs_of(worked, kind="extract_facts")[::3]] == [
        "episode epi_1, part 4 of 4",
        "episode epi_1, part 1 of 4",
    ]


def test_a_job_shows_its_lease_and_its_history(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    worked.end("chat-1")
    lease = worked.take("extract_facts")
    held = worked.store.read_now(get_job, worked.project, lease.job)
    assert (held.state, held.lease_owner) == ("leased", "worker-1")
    assert (lease.until_us, lease.fence) == (held.lease_until, held.fence)

    worked.fail(lease, "no reply")
    worked.store.write_now(discard_by_hand, worked.project, lease.job, "not worth it")

    found = worked.store.read_now(get_job, worked.project, lease.job)
    assert (found.state, found.due_at, found.error) == ("discarded", None, "not worth it")
    assert [(past["class"], past["error"]) for past in found.history] == [
        ("transient", "no reply"),
        ("by_hand", "discarded: not worth it"),
    ]


def test_a_job_of_another_project_is_not_found(worked: WorkedStore) -> None:
    worked.say("chat-1", "hello")
    job = jobs_of(worked)[0].id

    with pytest.raises(NotFound):
        worked.store.read_now(get_job, worked.project + 1, job)
    with pytest.raises(NotFound):
        worked.store.read_now(get_job, worked.project, job + 100)


# ---- cost

FULL_SCAN = re.compile(r"SCAN (jobs|j|events|e|passages|p|windows|w|facts)( |$)(?!USING)")


@pytest.mark.only_on("sqlite", reason="it asks SQLite for its plans; PostgreSQL's are guarded at their full size")
def test_no_statement_of_status_reads_a_large_table_from_end_to_end(worked: WorkedStore) -> None:
    _fill(worked, 5000)
    jobs = {name: s for name, s in _statements(joblist).items() if "dead" in name or "_OF_LANE" in name}
    statements = _statements(status) | _statements(receipts) | jobs
    assert len(statements) > 20

    plans = worked.store.write_now(lambda conn: {name: _plan(conn, s) for name, s in statements.items()})

    assert {name: plan for name, plan in plans.items() if any(FULL_SCAN.search(step) for step in plan)} == {}


@pytest.mark.only_on("sqlite", reason="it asks SQLite for its plans; PostgreSQL's are guarded at their full size")
def test_the_stages_of_many_episodes_are_counted_from_the_few_that_are_not_done(worked: WorkedStore) -> None:
    _fill(worked, 5000)
    plans = worked.store.write_now(
        lambda conn: [s for name in ("_OPEN", "_SKIPPED") for s in _plan(conn, getattr(status, name))]
    )

    used = {index for step in plans for index in re.findall(r"INDEX (ix_\w+)", step)}

    expected = {
        "ix_windows_no_summary", "ix_windows_no_facts", "ix_jobs_stages", "ix_windows_skipped", "ix_erasures_open",
    }  # fmt: skip
    assert expected == used


def _statements(module: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in vars(module).items():
        if name.startswith("_") and not name.startswith("__"):
            items = value.items() if isinstance(value, dict) else [("", value)]
            found |= {f"{module.__name__}{name} {key}": s for key, s in items if isinstance(s, TextClause)}
    return found


def _plan(conn: Connection, statement: Any) -> list[str]:
    compiled = _compile(statement, conn.dialect)
    rows = conn.raw.execute(f"explain query plan {compiled.sql}", [1] * compiled.sql.count("?")).fetchall()
    return [r[3] for r in rows]


_DONE_JOB = text("""
insert into jobs(project_id, kind, key, lane_id, uses, args, state, due_at, created_at, finished_at)
values(1, 'extract_facts', :n || '.0', :lane, 'model', '{}', 'done', :now, :now, :now)""")
_DONE_WINDOW = text("""
insert into windows(project_id, subject_id, stream_id, start_seq, end_seq, prev_end, opened_at, opened_because,
  summary_at, facts_at) values(1, 1, :stream, :n, :n, :n - 1, :now, 'idle', :now, :now)""")
_EVENT = text("""
insert into events(stream_id, seq, project_id, role, content, occurred_at, recorded_at, evidence, tokens)
values(:stream, :n, 1, 'user', 'hello', :now, :now, 1, 5)""")
_PASSAGE = text("""
insert into passages(project_id, subject_id, stream_id, seq, kind) values(1, 1, :stream, :n, 'turn')""")


def _fill(worked: WorkedStore, rows: int) -> None:
    """Finished work in bulk, with the planner's statistics, which is when a plan changes its mind."""
    worked.say("chat-1", "hello")
    worked.end("chat-1")
    stream, lane, now = worked.sql("select id, lane_id, created_at from streams")[0]

    def fill(conn: Connection) -> None:
        row = {"stream": stream, "lane": lane, "now": now}
        for statement in (_DONE_JOB, _DONE_WINDOW, _EVENT, _PASSAGE):
            conn.many(statement, [{"n": n, **row} for n in range(2, rows)])
        conn.raw.execute("analyze")

    worked.store.write_now(fill)
