"""A session that the server ended is one that could not look: said as such, and the next one is another."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text
from tests.factories import World

from everkept.errors import StoreUnavailable
from everkept.store import postgres
from everkept.store.connection import Connection
from everkept.store.moving.postgres_ground import PostgresGround
from everkept.store.postgres import PostgresDatabase
from everkept.store.store import Store

pytestmark = pytest.mark.only_on("postgresql", reason="a file has no sessions that somebody else ends")
_COUNT = text("select count(*) from projects")
_NAME = text("insert into workspaces(name, created_at) values(:name, 0)")
_RENAME = text("update workspaces set name = name || :more where name <> :name")
_SLOWLY = text("select 1 from pg_sleep(0.2)")
_SHARED_LOCKS = text(f"""
select count(*) from pg_locks
where locktype = 'advisory' and pid = pg_backend_pid() and objid = {postgres.SHARED_ROWS}""")
STOOD_S = 0.5


def _between_two(conn: Connection) -> Any:
    time.sleep(STOOD_S)
    return conn.scalar(_COUNT)


def _while_it_writes(conn: Connection) -> Any:
    with conn.at_once():
        conn.put(_NAME, {"name": "a"})
        time.sleep(STOOD_S)
        conn.put(_NAME, {"name": "b"})
        return conn.scalar(_COUNT)


def _after_it_read_what_it_writes(conn: Connection) -> Any:
    with conn.at_once():
        conn.put(_NAME, {"name": "a"})
        conn.scalar(_COUNT)
        time.sleep(STOOD_S)
        conn.put(_NAME, {"name": "b"})


def _after_it_wrote(conn: Connection) -> Any:
    with conn.at_once():
        conn.put(_NAME, {"name": "a"})
        conn.put(_NAME, {"name": "b"})
    return _between_two(conn)


def _after_it_wrote_in_no_form_for_many(conn: Connection) -> Any:
    conn.many(_RENAME, [{"name": "c", "more": "d"}] * 2)
    return _between_two(conn)


WRITING = [
    _between_two, _while_it_writes, _after_it_read_what_it_writes, _after_it_wrote, _after_it_wrote_in_no_form_for_many,
]  # fmt: skip


@pytest.mark.parametrize("bounded_from", [0, 10**9], ids=["17", "older"])
@pytest.mark.parametrize("stand_still", WRITING)
def test_a_process_that_stood_still_while_it_wrote_is_told_so_and_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch, stand_still: Callable[[Connection], Any], bounded_from: int
) -> None:
    """As one that was frozen: what it had begun is gone with its locks, and no error of its own. Between two parts of
    what is sent together, and after them, a server counts nobody as standing still: one that can hold a transaction to
    a time ends it all the same, and to an older one nothing is sent so."""
    monkeypatch.setattr(postgres, "BOUNDED_FROM", bounded_from)
    with monkeypatch.context() as hasty:
        hasty.setattr(postgres, "_SET", (*postgres._SET, "set local idle_in_transaction_session_timeout = '50ms'"))
        hasty.setattr(world.store.database, "_write_s", 0.1)
        with pytest.raises(StoreUnavailable):
            world.store.write_now(stand_still)
    assert world.store.write_now(lambda conn: conn.scalar(_COUNT)) == 1


def test_a_process_that_stood_still_while_it_read_is_told_so_and_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as hasty:
        hasty.setattr(postgres, "_SET", (*postgres._SET, "set local idle_in_transaction_session_timeout = '50ms'"))
        with pytest.raises(StoreUnavailable):
            world.store.read_now(_between_two)
    assert world.store.read_now(lambda conn: conn.scalar(_COUNT)) == 1


def test_whoever_waits_for_a_lock_spends_none_of_its_time_to_write(world: World) -> None:
    """The time begins with the last lock that a transaction begins with."""
    begun = postgres._write([1], 20.0).split("; ")
    bound = next(at for at, said in enumerate(begun) if "set local transaction_timeout = '" in said)
    assert max(at for at, said in enumerate(begun) if "advisory" in said) < bound


def test_calls_that_are_too_slow_together_are_run_one_by_one_on_another_connection(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.store.database, "_write_s", 0.5)

    def slowly(conn: Connection) -> Any:
        return conn.scalar(_SLOWLY)

    waiting = [world.store.writer.submit(slowly) for _ in range(4)]
    while world.store.writer.step():
        pass
    assert [call.result(0) for call in waiting] == [1, 1, 1, 1]


@pytest.mark.parametrize("default_ms", [60_000, 300])
def test_what_the_role_is_held_to_bounds_nobody(world: World, default_ms: int) -> None:
    """Neither a longer time that was set before, nor a shorter one that a wait for locks would use up."""
    url = str(world.store.database._url)  # type: ignore[attr-defined]
    asked = f"{url}{'&' if '?' in url else '?'}options=-c%20transaction_timeout%3D{default_ms}"
    store = Store(PostgresDatabase(asked, write_s=0.1 if default_ms > 1_000 else 30.0))
    store.open()
    try:
        if default_ms > 1_000:
            with pytest.raises(StoreUnavailable):
                store.write_now(_after_it_wrote)
        else:
            assert store.write_now(_between_two) == 1
    finally:
        store.close()


def test_a_move_takes_the_time_that_it_needs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.store.database, "_write_s", 0.1)

    def take_long(conn: Connection) -> Any:
        PostgresGround().hurry_not(conn)
        return _after_it_wrote(conn)

    assert world.store.write_now(take_long) == 1


def test_what_all_projects_share_is_locked_again_after_a_call_that_failed(world: World) -> None:
    def fail(conn: Connection) -> None:
        conn.share()
        raise ValueError("no such thing")

    def share(conn: Connection) -> Any:
        conn.share()
        return conn.scalar(_SHARED_LOCKS)

    waiting = [world.store.writer.submit(each, reach=world.project.id) for each in (fail, share)]
    world.store.writer.step()
    with pytest.raises(ValueError, match="no such thing"):
        waiting[0].result(0)
    assert waiting[1].result(0) == 1
