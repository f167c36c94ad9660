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

pytestmark = pytest.mark.only_on("postgresql", reason="a file has no sessions that somebody else ends")
_COUNT = text("select count(*) from projects")
_NAME = text("insert into workspaces(name, created_at) values(:name, 0)")
_RENAME = text("update workspaces set name = name || :more where name <> :name")
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
    bound = next(at for at, said in enumerate(begun) if "transaction_timeout" in said and "idle" not in said)
    assert max(at for at, said in enumerate(begun) if "advisory" in said) < bound
