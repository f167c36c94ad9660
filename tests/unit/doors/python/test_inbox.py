"""The inbox: a change that is given twice has its effect once."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from everkept import Inbox
from everkept.api.views import Change
from everkept.errors import InvalidInput


def change(seq: int, minute: int = 0) -> Change:
    at = datetime(2026, 1, 2, 3, minute, tzinfo=UTC)
    name = f"chg_1_{seq}_{minute}"
    return Change(id=name, seq=seq, kind="fact.added", subject=None, thread=None, ref="fct_1", at=at, data={})


@pytest.fixture
def database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table effects(what text)")
    return connection


def work(database: sqlite3.Connection, inbox: Inbox, of: Change | str) -> bool:
    with inbox.once(of) as new:
        if new:
            database.execute("insert into effects values('done')")
        return new


def effects(database: sqlite3.Connection) -> int:
    count: int = database.execute("select count(*) from effects").fetchone()[0]
    return count


def test_what_is_given_again_has_no_second_effect(database: sqlite3.Connection) -> None:
    inbox = Inbox(database)
    assert [work(database, inbox, of) for of in (change(1), change(2), change(1), "dlv_1_1", "dlv_1_1")] == [
        True, True, False, True, False,
    ]  # fmt: skip
    assert effects(database) == 3
    assert not work(database, Inbox(database), change(1)), "the marks outlast the process"


def test_an_effect_that_failed_leaves_no_mark(database: sqlite3.Connection) -> None:
    inbox = Inbox(database)

    def fail_halfway() -> None:
        with inbox.once(change(1)):
            database.execute("insert into effects values('half')")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_halfway()
    assert effects(database) == 0
    assert work(database, inbox, change(1))


def test_a_number_that_is_used_again_after_a_restore_is_another_change(database: sqlite3.Connection) -> None:
    inbox = Inbox(database)
    assert work(database, inbox, change(1))
    assert work(database, inbox, change(1, minute=5))


def test_sources_are_apart(database: sqlite3.Connection) -> None:
    assert work(database, Inbox(database, source="one"), change(1))
    assert work(database, Inbox(database, source="two"), change(1))


def test_a_connection_that_commits_by_itself_is_refused(tmp_path: Path) -> None:
    """Its effect and its mark would be two transactions."""
    inbox = Inbox(sqlite3.connect(tmp_path / "a.db", isolation_level=None))
    with pytest.raises(InvalidInput), inbox.once(change(1)):
        raise AssertionError("not reached")
    with pytest.raises(InvalidInput):
        Inbox(sqlite3.connect(":memory:"), table="x; drop table y")
