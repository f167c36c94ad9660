"""An older program goes on beside a newer schema: migrations take nothing away that it uses, and it asks by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.stubs.migration_rules import faults_of
from tests.stubs.next_version import CONTRACT, EXPAND, NEXT, ONLINE, plant_next

from everkept.prove.statements import all_statements
from everkept.store.connection import _compile
from everkept.store.dialect import postgres_dialect
from everkept.store.migrate import SCHEMA, SHIPPED, WORKS_WITH

pytestmark = pytest.mark.only_on("sqlite", reason="it looks at both databases' statements, and at no store")
INSERTS_UNNAMED = re.compile(r"\binsert into \w+\s+(?!\()(?:values|select|default|with|as)\b", re.IGNORECASE)
TAKES_ALL = re.compile(
    r"(?:select|returning|,)\s+(?:distinct\s+)?(?:\w+\.)?\*(?!\s*\d|(?:(?!\bfrom\b).)*\bfrom\s+\()",
    re.IGNORECASE | re.DOTALL,
)
"""But of a select inside, which names them."""


def test_shipped_migrations_keep_the_rules() -> None:
    assert faults_of(SHIPPED) == []
    assert 1 <= WORKS_WITH <= SCHEMA


@pytest.mark.parametrize("body", [EXPAND, 'op.execute("update streams set summary = null")'])
def test_an_expanding_migration_goes_with_older_programs(tmp_path: Path, body: str) -> None:
    assert faults_of(plant_next(tmp_path / "planted", body)) == []


@pytest.mark.parametrize(
    "body",
    [
        CONTRACT,
        'op.drop_table("pauses")',
        "\n    ".join((
            'with op.batch_alter_table("streams") as batch:',
            '    batch.alter_column("summary", new_column_name="told")',
        )),
        'op.rename_table("pauses", "stops")',
        'op.drop_index("ix_streams_subject", "streams")',
        'op.create_index("ix_streams_one", "streams", ["subject_id"], unique=True)',
        "\n    ".join((
            'with op.batch_alter_table("streams") as batch:',
            '    batch.alter_column("summary", existing_type=sa.Text(), nullable=False)',
        )),
        "\n    ".join((
            'with op.batch_alter_table("streams") as batch:',
            '    batch.add_column(sa.Column("colour", sa.Text(), nullable=False))',
        )),
    ],
    ids=["column", "table", "column renamed", "table renamed", "index", "unique", "not null", "not null new"],
)  # fmt: skip
def test_a_contracting_migration_says_that_older_programs_stop(tmp_path: Path, body: str) -> None:
    [*found] = faults_of(plant_next(tmp_path / "planted", body))
    assert found
    assert all(f"{NEXT}: breaks programs of schema {SCHEMA}" in fault for fault in found)
    # In another place: of a file that was written twice in a second Python may run what it compiled before.
    assert faults_of(plant_next(tmp_path / "again", body, works_with=NEXT)) == []


def test_nobody_promises_more_than_the_migration_before(tmp_path: Path) -> None:
    plant_next(tmp_path / "planted", works_with=NEXT)
    planted = plant_next(tmp_path / "planted", 'op.execute("select 1")', works_with=SCHEMA, number=NEXT + 1)
    assert faults_of(planted) == [f"{NEXT + 1}: works_with is {SCHEMA}, and must be from {NEXT} to {NEXT + 1}"]


def test_an_online_migration_can_be_run_again(tmp_path: Path) -> None:
    assert faults_of(plant_next(tmp_path / "planted", ONLINE, online=True)) == []
    once = 'op.create_index("ix_events_role", "events", ["role"], postgresql_concurrently=True)'
    [cannot] = faults_of(plant_next(tmp_path / "planted", once, online=True))
    assert cannot.startswith(f"{NEXT}: cannot be run again: create index concurrently")
    [says_not] = faults_of(plant_next(tmp_path / "planted", once))
    assert says_not.startswith(f"{NEXT}: needs online = True")


def test_every_statement_names_its_columns() -> None:
    """One that does not would fail, or mean something else, once a newer schema has a column more."""
    statements = {where: _compile(said, postgres_dialect()).sql for where, said in all_statements().items()}
    assert len(statements) > 900
    assert {where: sql for where, sql in statements.items() if INSERTS_UNNAMED.search(sql)} == {}
    assert {where: sql for where, sql in statements.items() if TAKES_ALL.search(sql)} == {}


@pytest.mark.parametrize(
    "sql", ["insert into a values(1)", "insert into a select b from c", "select * from a", "select a.*, 1 from a"]
)
def test_the_look_at_statements_sees_what_names_no_columns(sql: str) -> None:
    assert INSERTS_UNNAMED.search(sql) or TAKES_ALL.search(sql)


@pytest.mark.parametrize("sql", ["insert into a(b) values(1)", "select count(*) from a", "select a * 2, b.c * 3"])
def test_the_look_at_statements_sees_nothing_in_others(sql: str) -> None:
    assert (INSERTS_UNNAMED.search(sql), TAKES_ALL.search(sql)) == (None, None)
