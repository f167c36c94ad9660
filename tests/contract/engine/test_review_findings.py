"""The engine under what a review found: bugs in a worker, large backlogs, clocks set back, rows nobody removed."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.factories import HOUR_S, MINUTE_S, US, World, kind_of, open_store

from everkept.bootstrap import open_application
from everkept.config import load
from everkept.domain.jobs import Done, GiveUp, Snooze
from everkept.errors import CursorExpired, NotFound
from everkept.ports.clock import SystemClock, VirtualClock
from everkept.store.changes import NewChange, prune_changes, read_changes, record_changes
from everkept.store.connection import Connection
from everkept.store.embeddings import forget_other_embeddings, keep_embeddings
from everkept.store.jobs_by_hand import retry_dead
from everkept.store.leases import prune_workers, renew_leases
from everkept.store.periodic import list_periodic
from everkept.store.search import NewVectors, forget_other_vectors, write_vectors
from everkept.store.settle import is_settled, unsettled_work
from everkept.store.store import Store
from everkept.store.writer import set_wise
from everkept.work.maintenance import PeriodicTask
from everkept.work.worker import Worker

DAY_S = 24 * HOUR_S


# ---- a bug ends no worker


def test_an_unexpected_error_of_a_backstop_is_its_last_error(world: World) -> None:
    def broken(conn: Connection, after: int, limit: int) -> tuple[int, int]:
        raise ValueError("no such thing")

    world.runner(tasks=[PeriodicTask(name="broken", every_s=60.0, chunk=broken)])
    assert world.maintain() == 0
    ((_, _, _, _, error, _, _),) = world.read(list_periodic)
    assert error == "ValueError: no such thing"


@pytest.fixture
def threaded(tmp_path: Path) -> Any:
    store = Store(tmp_path / "threaded.db", clock=SystemClock())
    store.open()
    world = World(store, tmp_path / "home", SystemClock(), work__tick_s=0.05, work__heartbeat_s=0.1)  # type: ignore[arg-type]
    yield world
    world.close()
    store.close()


def _until(true: Any) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_worker_outlives_an_unexpected_error_in_its_poll(threaded: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = threading.Event()

    async def run(args: Any, ctx: Any) -> Any:
        ran.set()
        return Done()

    runner = threaded.runner(kinds=kind_of(run), tasks=[])
    polls = iter([ValueError("a bug"), KeyError("another")])
    poll = runner._poll

    def shaky(conn: Connection, free: int) -> Any:
        for error in polls:
            raise error
        return poll(conn, free)

    monkeypatch.setattr(runner, "_poll", shaky)
    worker = Worker(runner, threaded.settings, embedder_label="none")
    threaded.schedule("a")
    worker.start()
    try:
        assert ran.wait(10)
        assert worker.alive
    finally:
        worker.stop(1.0)
    assert not worker.alive


def test_the_pulse_ends_with_the_worker(threaded: World, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = threaded.runner(kinds=kind_of(), tasks=[])

    async def nothing() -> None:
        return None

    monkeypatch.setattr(runner, "run", nothing)
    worker = Worker(runner, threaded.settings, embedder_label="none")
    worker.start()
    _until(lambda: not worker.alive and not worker._pulse.is_alive())
    worker.stop(0.0)


def test_a_process_whose_worker_has_ended_is_not_ready(tmp_path: Path) -> None:
    async def go() -> tuple[dict[str, str], dict[str, str]]:
        app = await open_application(load({}, tmp_path / "home"))
        try:
            before = await app.ready()
            assert app.worker is not None
            await asyncio.to_thread(app.worker.stop, 0.0)
            return before, await app.ready()
        finally:
            await app.close()

    before, after = asyncio.run(go())
    assert (before, set(after)) == ({}, {"worker"})


def test_a_lease_of_which_nothing_runs_any_more_is_not_renewed(world: World) -> None:
    world.schedule("a")
    world.schedule("b", lane=world.lane("bo"))
    a, b = world.claim(free=2)
    world.tick(1)
    assert world.write(renew_leases, "w1", 4, 60.0, [b.job]) == {b.job: b.fence}
    assert world.write(renew_leases, "w1", 4, 60.0, []) == {}
    assert a.job in world.write(renew_leases, "w1", 4, 60.0)


# ---- the writer


class Heavy(str):
    weight = 400


@set_wise
def weigh(conn: Connection, items: list[str]) -> list[int]:
    return [len(items)] * len(items)


def test_a_group_is_bounded_by_rows_and_not_by_calls(world: World) -> None:
    calls = [world.store.writer.submit(weigh, Heavy(n)) for n in range(3)]
    assert [world.store.writer.step() for _ in range(3)] == [2, 1, 0]
    assert [c.result() for c in calls] == [2, 2, 1]
    many = [world.store.writer.submit(weigh, "light") for _ in range(600)]
    assert (world.store.writer.step(), world.store.writer.step()) == (500, 100)
    assert many[0].result() == 500


def test_an_append_weighs_its_messages(world: World) -> None:
    assert world.batch("t", "a", "b", "c").weight == 3


@pytest.mark.only_on("sqlite", reason="checkpoints are of a file's log")
def test_a_readers_snapshot_holds_up_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everkept.store.sqlite_transactions.WAL_BYTES_MAX", 0)
    monkeypatch.setattr("everkept.store.sqlite_transactions.CHECKPOINT_ROWS", 1)
    store = open_store(tmp_path / "wal.db", VirtualClock())
    store.write_now(lambda conn: conn.raw.execute("create table kept(what text)"))
    reader = store.database.connect(read_only=True)
    reader.execute("begin")
    reader.execute("select count(*) from kept").fetchall()
    began = time.monotonic()
    store.write_now(lambda conn: conn.raw.execute("insert into kept values('x')"))
    took = time.monotonic() - began
    patience = store.write_now(lambda conn: conn.raw.execute("pragma busy_timeout").fetchone()[0])
    reader.execute("rollback")
    reader.close()
    store.close()
    assert took < 5
    assert patience > 0, "others' locks are waited for again"


# ---- large backlogs


def _plan(world: World, sql: str, **params: Any) -> str:
    return " ".join(r[3] for r in world.read(lambda c: c.raw.execute(f"explain query plan {sql}", params).fetchall()))


def test_a_claim_steps_over_a_leased_key_whatever_stands_behind_it(world: World) -> None:
    for n in range(300):
        world.schedule(f"held{n}", serial_key="facts:1:1")
    world.schedule("free", due_in=0.000001, serial_key="fold:1")
    world.tick(1)
    first, second = world.claim(free=2)
    assert [first.key, second.key] == ["held0", "free"]
    world.schedule("plain")
    assert [x.key for x in world.claim(free=5)] == ["plain"]
    world.finish(first, Done())
    assert [x.key for x in world.claim(free=5)] == ["held1"]


def test_within_a_lane_the_earliest_goes_first_with_and_without_a_serial_key(world: World) -> None:
    for n, serial in enumerate(["z", None, "a", None, "z"]):
        world.schedule(f"{n}", serial_key=serial)
        world.tick(1)
    order = []
    while leases := world.claim():
        order.append(leases[0].key)
        world.finish(leases[0], Done())
    assert order == ["0", "1", "2", "3", "4"]


@pytest.mark.only_on("sqlite", reason="it asks SQLite for its plan; PostgreSQL's are guarded at their full size")
def test_dead_jobs_are_retried_from_an_index_of_them_alone(world: World) -> None:
    plan = _plan(
        world,
        "select id from jobs where state = 'dead' and project_id = :p and (:k is null or kind = :k)"
        " and (:c is null or error_class = :c) and id > :a order by id limit 50",
        p=1, k=None, c=None, a=0,
    )  # fmt: skip
    assert "COVERING INDEX ix_jobs_dead_project" in plan
    world.schedule("a")
    (lease,) = world.claim()
    world.finish(lease, GiveUp("refused", "no"))
    assert world.write(retry_dead, world.project.id, "work", "refused", 0, 50) == [lease.job]


@pytest.mark.only_on("sqlite", reason="it asks SQLite for its plan; PostgreSQL's are guarded at their full size")
def test_siblings_without_pending_messages_cost_a_new_thread_nothing(world: World) -> None:
    siblings = "update streams set pulled_due_at = :d where subject_id = :s and covered_seq < last_seq"
    for unless in ("is null", "> :d"):
        plan = _plan(world, f"{siblings} and pulled_due_at {unless}", s=1, d=3)
        assert "ix_streams_subject_uncaptured (subject_id=? AND pulled_due_at" in plan


def test_settled_is_what_has_no_unsettled_work(world: World) -> None:
    def look() -> tuple[bool, int]:
        of = (world.project.id, world.settings)
        return world.read(is_settled, *of), world.read(unsettled_work, *of)

    assert look() == (True, 0)
    world.add("t", "a", "b")
    settled, left = look()
    assert not settled
    assert left >= 2
    world.live(40 * MINUTE_S)
    assert look() == (True, 0)


# ---- a snooze says why


def test_what_a_snoozed_job_waits_for_is_seen_until_its_next_outcome(world: World) -> None:
    world.schedule("a")
    (lease,) = world.claim()
    world.finish(lease, Snooze(world.clock.now_us() + US, "a reader holds the log"))
    assert (world.job("a")["error"], world.job("a")["error_class"]) == ("a reader holds the log", "snoozed")
    assert (world.job("a")["history"], world.job("a")["attempts"]) == ("[]", 0), "no failure"
    world.tick(2)
    (lease,) = world.claim()
    world.finish(lease, Snooze(world.clock.now_us()))
    assert (world.job("a")["error"], world.job("a")["error_class"]) == (None, None)


# ---- rows nobody removed


def test_workers_that_were_killed_are_forgotten_after_a_day(world: World) -> None:
    world.write(renew_leases, "killed", 4, 60.0)
    world.write(renew_leases, "holds", 4, 60.0)
    world.schedule("a")
    world.claim("holds", lease_s=10 * DAY_S)
    world.tick(DAY_S + 1)
    world.write(renew_leases, "lives", 4, 60.0)
    assert world.write(prune_workers) == 1
    assert world.rows("select id from workers order by id") == [("holds",), ("lives",)]


def test_vectors_of_an_earlier_embedder_go_when_a_passage_has_new_ones(world: World) -> None:
    world.add("t", "one", "two")
    ids = [r[0] for r in world.rows("select id from passages order by id")]
    for model in ("old", "words", "new"):
        world.write(write_vectors, world.project.id, model, [NewVectors(i, b"o", b"a") for i in ids])
    world.write(forget_other_vectors, ids[:1], ["words", "new"])
    assert world.rows("select model from vectors where passage_id = ? order by model", ids[0]) == [("new",), ("words",)]
    assert len(world.rows("select model from vectors where passage_id = ?", ids[1])) == 3


def test_embeddings_of_an_earlier_embedder_go_a_chunk_at_a_time(world: World) -> None:
    for model in ("a", "m", "z"):
        world.write(keep_embeddings, world.project.id, model, 2, {"h1": b"1", "h2": b"2"}, 0)
    assert [world.write(forget_other_embeddings, world.project.id, "m", 3) for _ in range(3)] == [3, 1, 0]
    assert world.rows("select distinct model from embeddings") == [("m",)]


# ---- changes


def _record(world: World, *refs: str) -> None:
    world.write(record_changes, world.project.id, [NewChange(kind="test", ref=ref) for ref in refs])


def test_changes_are_pruned_from_the_front_alone_though_the_clock_was_set_back(world: World) -> None:
    world.tick(10 * DAY_S)
    _record(world, "1", "2", "3")
    world.clock.step_wall(-9 * DAY_S)
    _record(world, "4", "5")
    world.clock.step_wall(9 * DAY_S)
    _record(world, "6")
    assert world.write(prune_changes, DAY_S) == 0, "4 and 5 look old, and stand behind what is kept"
    world.tick(2 * DAY_S)
    assert [world.write(prune_changes, DAY_S, 4) for _ in range(3)] == [4, 2, 0]
    with pytest.raises(CursorExpired):
        world.read(read_changes, world.project.id, 0, 10)
    _record(world, "7")
    world.tick(2 * DAY_S)
    _record(world, "8")
    world.clock.step_wall(-3 * DAY_S)
    _record(world, "9")
    world.clock.step_wall(3 * DAY_S)
    assert world.write(prune_changes, DAY_S) == 1, "9 looks old, and stands behind 8, which is kept"


def test_a_cursor_beyond_the_head_is_refused(world: World) -> None:
    _record(world, "1")
    rows, head = world.read(read_changes, world.project.id, 1, 10)
    assert (rows, head) == ([], 1)
    with pytest.raises(NotFound, match="the newest is 1"):
        world.read(read_changes, world.project.id, 2, 10)
