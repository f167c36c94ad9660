"""Many rows in one statement are what they would be one by one: as written, in their order, whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from tests.postgres import empty_database

from everkept.domain.jobs import Schedule
from everkept.store.batches import together
from everkept.store.connection import Connection, _compile
from everkept.store.dialect import postgres_dialect
from everkept.store.jobs import schedule
from everkept.store.lanes import ensure_lane
from everkept.store.projects import ensure_project
from everkept.store.store import Store

_NAME = text("insert into workspaces(name, created_at) values(:name, :now)")
_RENAME = text("update workspaces set name = :name, created_at = created_at + 1 where id = :id")
_ANSWER = text("insert into replies(project_id, work, request_hash, usd) values(:project, 'x', :hash, :usd)")
_NAMES = text("select name from workspaces where id > 1 order by id")
AWKWARD = ["", "null", "NULL", '"', "\\", '\\"', "{a,b}", "a,b", " ", "\n", "é — 東京", "'", "%s", "$1", "𝄞"]


def write(store: Store, statement: Any, rows: Sequence[dict[str, Any]]) -> None:
    store.write_now(lambda conn: conn.many(statement, rows))


def names(store: Store) -> list[str]:
    return [row[0] for row in store.read_now(lambda conn: conn.rows(_NAMES))]


def test_texts_of_every_kind_come_back_as_they_were_in_their_order(store: Store) -> None:
    write(store, _NAME, [{"name": name, "now": n} for n, name in enumerate(AWKWARD)])
    assert names(store) == AWKWARD


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])), min_size=2, unique=True))
@pytest.mark.only_on("postgresql", reason="SQLite is given each value by itself")
def test_any_text_comes_back_as_it_was(store: Store, said: list[str]) -> None:
    def there_and_back(conn: Connection) -> list[str]:
        conn.run(text("delete from workspaces where id > 1"))
        conn.many(_NAME, [{"name": name, "now": 0} for name in said])
        return [row[0] for row in conn.rows(_NAMES)]

    assert store.write_now(there_and_back) == said


def test_a_row_that_is_given_twice_is_changed_twice(store: Store) -> None:
    write(store, _NAME, [{"name": "a", "now": 5}, {"name": "b", "now": 5}])
    first = store.read_now(lambda conn: conn.scalar(text("select min(id) from workspaces where id > 1")))
    write(store, _RENAME, [{"id": first, "name": "c"}, {"id": first + 1, "name": "d"}, {"id": first, "name": "e"}])
    found = store.read_now(lambda conn: conn.rows(text("select name, created_at from workspaces where id > 1")))
    assert sorted(found) == [("d", 6), ("e", 7)]


def test_one_job_that_is_wished_for_twice_is_one_job_and_both_wishes_count(store: Store) -> None:
    def wish(conn: Connection) -> list[Any]:
        lane = ensure_lane(conn, 1, 0)
        schedule(conn, [
            Schedule(kind="embed", key=key, project=1, lane=lane, due_at_us=due, uses="local")
            for key, due in (("a", 30), ("b", 20), ("a", 10), ("a", 40))
        ])  # fmt: skip
        return conn.rows(text("select key, due_at, generation from jobs order by id"))

    store.write_now(ensure_project, "default", bytes(32))
    assert [row[:2] for row in store.write_now(wish)] == [("a", 10), ("b", 20)]


def test_rows_of_one_call_are_written_whole_or_not_at_all(store: Store) -> None:
    with pytest.raises(Exception, match=r"(?i)unique"):
        write(store, _NAME, [{"name": name, "now": 0} for name in ("a", "b", "a")])
    assert names(store) == []


def test_an_error_of_what_is_on_its_way_is_that_of_its_caller_alone(store: Store) -> None:
    def ill(conn: Connection) -> None:
        with conn.at_once():
            conn.many(_NAME, [{"name": name, "now": 0} for name in ("b", "b")])
            conn.many(_NAME, [{"name": "c", "now": 0}, {"name": "d", "now": 0}])

    waiting = [
        store.writer.submit(ill),
        store.writer.submit(lambda conn: conn.many(_NAME, [{"name": "a", "now": 0}])),
    ]
    store.writer.step()
    with pytest.raises(Exception, match=r"(?i)unique"):
        waiting[0].result(0)
    waiting[1].result(0)
    assert names(store) == ["a"]


@pytest.mark.only_on("postgresql", reason="a file prepares nothing on a server")
def test_after_an_error_of_several_at_once_the_next_transaction_has_another_connection(store: Store) -> None:
    """The driver may think that a statement is prepared that came behind the one that failed."""

    def write_two(conn: Connection, *names: str) -> int:
        with conn.at_once():
            conn.many(_NAME, [{"name": name, "now": 0} for name in names])
            conn.put(_RENAME, {"name": "z", "id": 0})
        return int(conn.scalar(text("select pg_backend_pid()")))

    first = store.write_now(write_two, "a", "b")
    with pytest.raises(Exception, match=r"(?i)unique"):
        store.write_now(write_two, "c", "c")
    after = {store.write_now(write_two, f"d{n}", f"e{n}") for n in range(6)}
    assert len(after) == 1
    assert first not in after


def test_an_error_is_told_by_what_is_read_after_it(store: Store) -> None:
    def read_after(conn: Connection) -> list[Any]:
        with conn.at_once():
            conn.many(_NAME, [{"name": name, "now": 0} for name in ("b", "b")])
            conn.many(_NAME, [{"name": "c", "now": 0}, {"name": "d", "now": 0}])
            return conn.rows(_NAMES)

    with pytest.raises(Exception, match=r"(?i)unique"):
        store.write_now(read_after)
    assert names(store) == []


def test_a_count_is_not_asked_of_what_is_on_its_way(store: Store) -> None:
    def ask(conn: Connection) -> None:
        with conn.at_once():
            conn.run(_NAME, {"name": "a", "now": 0})

    with pytest.raises(RuntimeError, match="at_once"):
        store.write_now(ask)
    assert names(store) == []


def test_what_is_read_in_between_sees_what_was_written_before_it(store: Store) -> None:
    def read_between(conn: Connection) -> list[Any]:
        with conn.at_once():
            conn.many(_NAME, [{"name": "a", "now": 0}, {"name": "b", "now": 0}])
            return conn.rows(_NAMES)

    assert store.write_now(read_between) == [("a",), ("b",)]


@pytest.mark.only_on("postgresql", reason="a file is given each row by itself")
def test_bytes_and_numbers_keep_their_types() -> None:
    statement = together(_compile(_ANSWER, postgres_dialect()).sql)
    assert statement is not None
    run = [(1, b"\x00\xff\\", None), (2, b"", 1.5e-7)]
    with psycopg.connect(empty_database(), autocommit=True) as raw:
        raw.execute("create temporary table replies(project_id bigint, work text, request_hash bytea, usd float8)")
        raw.execute(statement.sql, statement.values(run))
        assert raw.execute("select project_id, request_hash, usd from replies order by 1").fetchall() == run
