"""What stands in a PostgreSQL database, as a file of SQLite in memory: both are held against the same queries.

The copy is made row by row from one snapshot, with nothing of the store's own reading in between; the full-text rows
are written as SQLite has them, from the words and scopes that stand in PostgreSQL's index.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg
from sqlalchemy import Table

from everkept.ports.clock import SystemClock
from everkept.store.connection import Connection
from everkept.store.dialect import sqlite_dialect
from everkept.store.full_text_sqlite import SqliteText
from everkept.store.migrate import schema_statements
from everkept.store.sqlite import choose_driver
from everkept.store.tables import metadata
from everkept.store.text_rows import TextRow

_AT_ONCE: Final = 2_000
_WORDS: Final = """
select t.id, i.project_id, i.subject_id, i.stream_id, i.kind, t.speaker, t.own, t.said, t.before
from passage_text t left join passage_index i on i.passage_id = t.id"""


def copied(url: str) -> Any | None:
    """An open connection of SQLite's driver to the copy, which whoever asked closes; None where there is no store.

    Raises psycopg.Error.
    """
    with psycopg.connect(url, autocommit=True) as there:
        there.execute("begin isolation level repeatable read read only")
        there_is = there.execute("select to_regclass('projects') is not null").fetchone() == (True,)
        return _copy(there) if there_is else None


def _copy(there: psycopg.Connection[Any]) -> Any:
    copy = choose_driver().module.connect(":memory:", isolation_level=None, check_same_thread=False)
    copy.execute("pragma foreign_keys = off")  # rows come table by table; the checks look at all of them at the end
    for statement in schema_statements():
        copy.execute(statement)
    copy.execute("begin")
    for table in metadata.sorted_tables:
        _copy_rows(there, copy, table)
    _copy_words(there, copy)
    copy.execute("commit")
    return copy


def _copy_rows(there: psycopg.Connection[Any], copy: Any, table: Table) -> None:
    columns = [column.name for column in table.columns if column.computed is None]
    listed = ", ".join(f'"{name}"' for name in columns)
    rows = there.execute(f'select {listed} from "{table.name}"')
    marks = ", ".join("?" for _ in columns)
    while some := rows.fetchmany(_AT_ONCE):
        copy.executemany(f'insert into "{table.name}"({listed}) values({marks})', some)


def _copy_words(there: psycopg.Connection[Any], copy: Any) -> None:
    kept = Connection(copy, sqlite_dialect(), SystemClock())
    rows = there.execute(_WORDS)
    while some := rows.fetchmany(_AT_ONCE):
        SqliteText().put(kept, [TextRow(row[0], (row[1], row[2], row[3], row[4]), *row[5:]) for row in some])
