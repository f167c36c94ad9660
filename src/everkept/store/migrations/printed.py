"""Migrations as the SQL that they would run, for whoever runs it by hand, and for whoever judges it."""

from __future__ import annotations

import io
from typing import Literal

from alembic import command

from everkept.store.migrate import SHIPPED, Migrations, alembic_config, revision

Dialect = Literal["sqlite", "postgresql"]


def printed(older: int, newer: int, dialect: Dialect, migrations: Migrations = SHIPPED) -> list[str]:
    """The statements of the migrations after `older` up to `newer`, without what begins and ends transactions.

    Nothing is opened. On SQLite a table that is made again cannot be printed: Alembic has to look at it.
    """
    statements = _Statements()
    config = alembic_config(migrations)
    config.attributes["dialect"] = dialect
    config.output_buffer = statements
    command.upgrade(config, f"{revision(older) if older else 'base'}:{revision(newer)}", sql=True)
    return statements.found


class _Statements(io.StringIO):
    """Alembic writes a statement at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def write(self, text: str) -> int:
        statement = text.strip().removesuffix(";")
        if statement not in ("", "BEGIN", "COMMIT") and not statement.startswith("-- Running"):
            self.found.append(statement)
        return len(text)
