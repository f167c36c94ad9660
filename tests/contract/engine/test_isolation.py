"""A transaction sees and writes the rows of the projects that it reaches, whatever its statements say (PostgreSQL)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.factories import World

from everkept.store.connection import Connection
from everkept.store.isolation import OF_ALL, policy_statements
from everkept.store.reach import Across, Reach
from everkept.store.tables import metadata

pytestmark = pytest.mark.only_on(
    "postgresql", reason="SQLite has no row-level security: whoever has the file has it all"
)


@pytest.fixture
def other(world: World, make_world: Callable[..., World]) -> int:
    """The id of another project, and both have said something."""
    world.add("t1", "I live in Lisbon.", subject="ana")
    theirs = make_world(project="other")
    theirs.add("t2", "I live in Porto.", subject="bob")
    return theirs.project.id


def said(world: World, reach: Reach, sql: str = "select content from events order by stream_id") -> list[Any]:
    def look(conn: Connection) -> list[Any]:
        return [row[0] for row in conn.raw.execute(sql).fetchall()]

    return world.store.reaching(reach).read_now(look)


def test_a_statement_that_forgets_its_project_gives_away_nothing_of_another(world: World, other: int) -> None:
    assert said(world, world.project.id) == ["I live in Lisbon."]
    assert said(world, other) == ["I live in Porto."]
    assert said(world, Across.EVERYTHING) == ["I live in Lisbon.", "I live in Porto."]


def test_what_is_a_part_of_something_is_hidden_with_it(world: World, other: int) -> None:
    everything, ours = (
        said(world, reach, "select own from passage_text order by id")
        for reach in (Across.EVERYTHING, world.project.id)
    )
    assert len(everything) == 2
    assert ours == everything[:1]


def test_nothing_of_another_project_is_written(world: World, other: int) -> None:
    def change(conn: Connection) -> int:
        return conn.raw.execute("update events set content = 'gone'").rowcount

    def add(conn: Connection) -> None:
        conn.raw.execute("insert into subjects(project_id, name, created_at) values(?, 'eve', 0)", (other,))

    store = world.store.reaching(world.project.id)
    assert store.write_now(change) == 1
    with pytest.raises(Exception, match="row-level security"):
        store.write_now(add)
    assert said(world, other) == ["I live in Porto."]


def test_each_call_of_a_group_reaches_its_own_project(world: World, other: int) -> None:
    def look(conn: Connection) -> list[Any]:
        return [row[0] for row in conn.raw.execute("select content from events order by stream_id").fetchall()]

    one = world.store.writer.submit(look, reach=world.project.id)
    two = world.store.writer.submit(look, reach=other)
    assert world.store.writer.step() == 2
    assert (one.result(), two.result()) == (["I live in Lisbon."], ["I live in Porto."])


def test_a_transaction_that_says_nothing_reaches_nothing(world: World, other: int) -> None:
    with world.store.database.connect(read_only=False) as raw:
        assert raw.execute("select count(*) from events").fetchone() == (0,)


def test_the_role_of_the_tests_is_bound(world: World) -> None:
    with world.store.database.connect(read_only=True) as raw:
        bound = raw.execute("select rolsuper, rolbypassrls from pg_roles where rolname = current_user").fetchone()
    assert bound == (False, False)


def test_every_table_is_of_a_project_or_named_as_one_of_all(world: World) -> None:
    with world.store.database.connect(read_only=True) as raw:
        forced = {name for (name,) in raw.execute(_FORCED).fetchall()}
    assert forced == {table.name for table in metadata.sorted_tables} - OF_ALL | {"passage_text"}
    assert len(policy_statements()) == 3 * len(forced)


_FORCED = """
select c.relname from pg_class c join pg_policy p on p.polrelid = c.oid
where c.relrowsecurity and c.relforcerowsecurity"""


def test_the_planner_reads_by_the_index_under_the_policy(world: World, other: int) -> None:
    def plan(conn: Connection) -> str:
        conn.raw.execute("set local enable_seqscan = off")
        found = conn.raw.execute("explain select content from events where stream_id = 1 and seq > 0").fetchall()
        return "\n".join(row[0] for row in found)

    assert "Index Scan" in world.store.reaching(world.project.id).write_now(plan)
