"""The writer: group commit, and whose failure is whose (design §4, "The store under it")."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import structlog
from tests.factories import connect_unsynced, open_store

from everkept.errors import StoreFull, StoreUnavailable
from everkept.ports.clock import VirtualClock
from everkept.store.sqlite import choose_driver
from everkept.store.store import Store
from everkept.store.writer import set_wise

plants_errors = pytest.mark.only_on("sqlite", reason="it plants errors of SQLite's driver, or reads its statements")
DRIVER_ERROR = choose_driver().module.OperationalError


class ShakyConnection:
    """A driver connection that fails where it is told to, and may lose its whole transaction, as on a full disk."""

    def __init__(self, raw: Any, shaky: Shaky) -> None:
        self._raw = raw
        self._shaky = shaky

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def execute(self, sql: str, *args: Any) -> Any:
        self._shaky.statements.append(sql)
        if self._shaky.full_at is not None and self._shaky.full_at in sql and self._shaky.times > 0:
            self._shaky.times -= 1
            if self._shaky.rolls_back and self._raw.in_transaction:
                self._raw.execute("rollback")
            raise DRIVER_ERROR(self._shaky.text)
        return self._raw.execute(sql, *args)


class Shaky:
    """Where and how the next statements fail."""

    def __init__(self) -> None:
        self.full_at: str | None = None
        self.times = 0
        self.rolls_back = False
        self.text = "database or disk is full"
        self.statements: list[str] = []

    def fail(
        self, at: str, *, times: int = 1, rolls_back: bool = False, text: str = "database or disk is full"
    ) -> None:
        self.full_at, self.times, self.rolls_back, self.text = at, times, rolls_back, text

    def connect(self, path: Path, read_only: bool) -> Any:
        raw = connect_unsynced(path, read_only)
        return raw if read_only else ShakyConnection(raw, self)


@pytest.fixture
def shaky() -> Shaky:
    return Shaky()


@pytest.fixture
def shop(tmp_path: Path, clock: VirtualClock, shaky: Shaky):
    """A store; what is kept in it are names of counters."""
    store = open_store(tmp_path / "shop.db", clock, connect=shaky.connect)
    shaky.statements.clear()
    yield store
    store.close()


def keep(conn, what: str) -> str:
    conn.raw.execute("insert into counters(name, value) select ?, count(*) from counters", (what,))
    return what


def keep_and_fail(conn, what: str) -> None:
    keep(conn, what)
    raise ValueError(what)


@set_wise
def keep_all(conn, items: list[str]) -> list[str | Exception]:
    answers: list[str | Exception] = []
    for item in items:
        if item == "bad":
            answers.append(ValueError("bad"))
        elif item == "worse":
            raise RuntimeError("worse")
        else:
            answers.append(keep(conn, item))
    return answers


def kept(store: Store) -> list[str]:
    return store.read_now(
        lambda conn: [r[0] for r in conn.raw.execute("select name from counters order by value").fetchall()]
    )


@plants_errors
def test_waiting_calls_share_one_transaction(shop: Store, shaky: Shaky) -> None:
    futures = [shop.writer.submit(keep, f"{n}") for n in range(5)]
    assert shop.writer.step() == 5

    assert [f.result() for f in futures] == kept(shop) == ["0", "1", "2", "3", "4"]
    assert [shaky.statements.count(x) for x in ("begin immediate", "commit")] == [1, 1]


def test_a_statement_that_fails_takes_nothing_of_its_neighbours(shop: Store) -> None:
    """PostgreSQL lets nothing more be said in a transaction in which one has failed."""
    first, again, after = (shop.writer.submit(keep, what) for what in "aac")
    shop.writer.step()
    assert (first.result(), after.result(), kept(shop)) == ("a", "c", ["a", "c"])
    with pytest.raises(Exception, match=r"(?i)unique"):
        again.result()


def test_a_failing_call_takes_nothing_of_its_neighbours(shop: Store) -> None:
    before, bad, after = (shop.writer.submit(f, w) for f, w in ((keep, "a"), (keep_and_fail, "b"), (keep, "c")))
    shop.writer.step()

    assert (before.result(), after.result(), kept(shop)) == ("a", "c", ["a", "c"])
    with pytest.raises(ValueError, match="b"):
        bad.result()


@plants_errors
def test_no_result_leaves_before_commit_has_returned(shop: Store, shaky: Shaky) -> None:
    done: list[str] = []
    future = shop.writer.submit(keep, "a")
    future.add_done_callback(lambda _: done.append(shaky.statements[-1]))
    shop.writer.step()
    assert done == ["commit"]


@plants_errors
def test_a_failing_commit_is_told_to_every_caller_and_nothing_is_kept(shop: Store, shaky: Shaky) -> None:
    futures = [shop.writer.submit(keep, f"{n}") for n in range(3)]
    shaky.fail("commit")
    shop.writer.step()

    for future in futures:
        with pytest.raises(StoreFull):
            future.result()
    assert kept(shop) == []
    assert shop.write_now(keep, "later") == "later", "the writer lives on"


@plants_errors
def test_a_transaction_lost_with_a_statement_runs_each_call_alone(shop: Store, shaky: Shaky) -> None:
    """A full disk in the middle of a group rolls all of it back: what neighbours had written is gone with it."""

    def greedy(conn) -> None:
        conn.raw.execute("insert into counters(name, value) select 'greedy', count(*) from counters")

    first, second, third = (shop.writer.submit(*call) for call in ((keep, "a"), (greedy,), (keep, "c")))
    shaky.fail("'greedy'", times=2, rolls_back=True)
    shop.writer.step()

    assert (first.result(), third.result(), kept(shop)) == ("a", "c", ["a", "c"])
    with pytest.raises(StoreFull):
        second.result()


@plants_errors
def test_a_call_that_ran_twice_answers_once_with_its_second_result(shop: Store, shaky: Shaky) -> None:
    def greedy(conn) -> str:
        conn.raw.execute("insert into counters(name, value) select 'greedy', count(*) from counters")
        return "greedy"

    first, second = shop.writer.submit(keep, "a"), shop.writer.submit(greedy)
    shaky.fail("'greedy'", times=1, rolls_back=True)
    shop.writer.step()
    assert (first.result(), second.result(), kept(shop)) == ("a", "greedy", ["a", "greedy"])


@plants_errors
def test_a_transaction_lost_in_a_set_wise_call_runs_each_item_alone(shop: Store, shaky: Shaky) -> None:
    futures = [shop.writer.submit(keep_all, x) for x in "abc"]
    shaky.fail("insert into counters", times=1, rolls_back=True)
    shop.writer.step()

    assert [f.result() for f in futures] == kept(shop) == ["a", "b", "c"]


@plants_errors
def test_the_lock_is_asked_for_again_until_it_is_free(shop: Store, shaky: Shaky) -> None:
    future = shop.writer.submit(keep, "a")
    shaky.fail("begin immediate", text="database is locked", times=3)
    shop.writer.step()
    future.result()
    assert kept(shop) == ["a"]
    assert shaky.statements.count("begin immediate") >= 4


@plants_errors
def test_the_patience_of_the_connection_is_as_it_was(shop: Store) -> None:
    before = shop.write_now(lambda conn: conn.raw.execute("pragma busy_timeout").fetchone()[0])
    assert before > 0
    assert shop.writer._connection is not None
    assert shop.writer._connection.raw.execute("pragma busy_timeout").fetchone()[0] == before


@plants_errors
def test_where_no_transaction_begins_every_caller_gets_the_error(shop: Store, shaky: Shaky) -> None:
    shop.write_now(lambda conn: conn.raw.execute("pragma busy_timeout = 20"))
    futures = [shop.writer.submit(keep, f"{n}") for n in range(2)]
    shaky.fail("begin immediate", text="database is locked", times=1_000)
    shop.writer.step()
    for future in futures:
        with pytest.raises(StoreUnavailable):
            future.result()


@plants_errors
def test_effects_run_after_the_commit_and_before_the_answer(shop: Store, shaky: Shaky) -> None:
    seen: list[str] = []

    def write(conn) -> None:
        keep(conn, "a")
        conn.after_commit(lambda: seen.append(f"effect after {shaky.statements[-1]}"))

    future = shop.writer.submit(write)
    future.add_done_callback(lambda _: seen.append("answer"))
    shop.writer.step()
    assert seen == ["effect after commit", "answer"]


@plants_errors
@pytest.mark.parametrize("lost", ["call", "commit", "transaction"])
def test_effects_of_what_was_rolled_back_never_run(shop: Store, shaky: Shaky, lost: str) -> None:
    seen: list[str] = []

    def write(conn, what: str) -> None:
        conn.after_commit(lambda: seen.append(what))
        keep(conn, what)
        if what == "b" and lost == "call":
            raise ValueError("no")
        if what == "b" and lost == "transaction":
            conn.raw.execute("insert into counters(name, value) select 'greedy', count(*) from counters")

    for what in "abc":
        shop.writer.submit(write, what)
    match lost:
        case "commit":
            shaky.fail("commit")
        case "transaction":
            shaky.fail("'greedy'", times=2, rolls_back=True)
    shop.writer.step()
    shop.write_now(keep, "later")
    assert seen == ([] if lost == "commit" else ["a", "c"])


def test_an_effect_that_fails_costs_no_caller_its_answer(shop: Store) -> None:
    def write(conn) -> str:
        conn.after_commit(lambda: 1 / 0)
        return keep(conn, "a")

    first, second = shop.writer.submit(write), shop.writer.submit(keep, "b")
    with structlog.testing.capture_logs() as logs:
        shop.writer.step()

    assert (first.result(), second.result()) == ("a", "b")
    assert [x["log_level"] for x in logs] == ["error"]


@plants_errors
def test_a_checkpoint_that_fails_is_not_a_failed_commit(
    tmp_path: Path, clock: VirtualClock, shaky: Shaky, monkeypatch
) -> None:
    monkeypatch.setattr("everkept.store.sqlite_transactions.CHECKPOINT_ROWS", 0)
    store = open_store(tmp_path / "x.db", clock, connect=shaky.connect)
    shaky.fail("wal_checkpoint", text="disk I/O error")
    with structlog.testing.capture_logs() as logs:
        assert store.write_now(keep, "a") == "a"
    assert [x["log_level"] for x in logs] == ["error"]
    store.close()


def test_set_wise_calls_are_handed_over_together_and_an_exception_in_the_results_goes_to_one_caller(
    shop: Store,
) -> None:
    sizes: list[int] = []

    @set_wise
    def count(conn, items):
        sizes.append(len(items))
        return keep_all(conn, items)

    futures = [shop.writer.submit(count, x) for x in ("a", "bad", "c")]
    shop.writer.step()

    assert sizes == [3]
    assert (futures[0].result(), futures[2].result(), kept(shop)) == ("a", "c", ["a", "c"])
    with pytest.raises(ValueError, match="bad"):
        futures[1].result()


def test_a_set_wise_call_that_raises_is_run_again_item_by_item(shop: Store) -> None:
    futures = [shop.writer.submit(keep_all, x) for x in ("a", "worse", "c")]
    shop.writer.step()

    assert (futures[0].result(), futures[2].result(), kept(shop)) == ("a", "c", ["a", "c"])
    with pytest.raises(RuntimeError):
        futures[1].result()


def test_calls_of_other_functions_keep_their_place_between_set_wise_ones(shop: Store) -> None:
    for function, what in ((keep_all, "1"), (keep_all, "2"), (keep, "3"), (keep_all, "4")):
        shop.writer.submit(function, what)
    shop.writer.step()
    assert kept(shop) == ["1", "2", "3", "4"]


def test_an_urgent_call_goes_first(shop: Store) -> None:
    """The heartbeat, while a thousand appends wait."""
    for n in range(3):
        shop.writer.submit(keep, f"{n}")
    shop.writer.submit(keep, "heartbeat", urgent=True)
    shop.writer.step()
    assert kept(shop)[0] == "heartbeat"


def test_an_urgent_call_waits_for_one_group_at_most(shop: Store, monkeypatch) -> None:
    monkeypatch.setattr("everkept.store.writer.GROUP_ROWS", 2)
    for n in range(5):
        shop.writer.submit(keep, f"{n}")
    shop.writer.step()
    shop.writer.submit(keep, "heartbeat", urgent=True)
    shop.writer.step()
    assert kept(shop) == ["0", "1", "heartbeat", "2"]


def test_a_caller_that_went_away_costs_the_others_nothing(shop: Store) -> None:
    gone, stays = shop.writer.submit(keep, "a"), shop.writer.submit(keep, "b")
    gone.cancel()
    shop.writer.step()
    assert stays.result() == "b"


def test_a_closed_store_refuses_and_works_what_was_submitted(tmp_path: Path, clock: VirtualClock) -> None:
    store = open_store(tmp_path / "x.db", clock)
    waiting = store.writer.submit(keep, "a")
    store.close()

    assert waiting.result() == "a"
    with pytest.raises(StoreUnavailable):
        store.writer.submit(keep, "b")


def test_slow_store_functions_are_named(shop: Store, monkeypatch) -> None:
    ticks = iter([0.0, 0.5])
    monkeypatch.setattr("everkept.store.writer.time.perf_counter", lambda: next(ticks))
    shop.write_now(keep, "a")
    assert shop.writer.slow == {"keep": 0.5}


def test_threads_write_and_read_through_one_store(tmp_path: Path) -> None:
    """With its own thread the writer answers many tasks, each after its commit."""
    store = Store(tmp_path / "x.db", connect=connect_unsynced)
    store.open()

    async def go() -> list[str]:
        await asyncio.gather(*(store.write(keep, f"{n}") for n in range(50)))
        return await store.read(lambda conn: [r[0] for r in conn.raw.execute("select name from counters").fetchall()])

    try:
        assert sorted(asyncio.run(go()), key=int) == [f"{n}" for n in range(50)]
    finally:
        store.close()
