"""Bringing a database to this program's schema, whole or not at all.

On SQLite an upgrade happens by itself at start, in one transaction, after a copy of the file was made beside it.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import text
from sqlalchemy.schema import CreateIndex, CreateTable

from everkept.errors import StoreNotSupported
from everkept.store.connection import Connection
from everkept.store.tables import FULL_TEXT_SQLITE, metadata

SCHEMA = 1


def upgrade(connection: Connection, path: Path) -> None:
    """Make the schema in an empty file; refuse one that is newer than this program (G04)."""
    raw = connection.raw
    raw.execute("begin immediate")
    try:
        found = raw.execute("pragma user_version").fetchone()[0]
        if found > SCHEMA:
            raise StoreNotSupported(
                f"{path} has schema {found}, and this Everkept knows {SCHEMA}: use a newer Everkept", found=found, known=SCHEMA
            )
        if found == 0:
            _create(connection)
            raw.execute(f"pragma user_version = {SCHEMA}")
    except BaseException:
        raw.execute("rollback")
        raise
    raw.execute("commit")


def _create(connection: Connection) -> None:
    for table in metadata.sorted_tables:
        connection.raw.execute(str(CreateTable(table).compile(dialect=connection.dialect)))
        for index in sorted(table.indexes, key=lambda i: str(i.name)):
            connection.raw.execute(str(CreateIndex(index).compile(dialect=connection.dialect)))
    for statement in FULL_TEXT_SQLITE:
        connection.raw.execute(statement)
    now = connection.now()
    connection.run(text("insert into workspaces(id, name, created_at) values(1, 'default', :now)"), {"now": now})
