"""Write migration 0001 from `store/tables/`. Only while no version has been released: after that 0001 never changes.

Run it after each change of the tables; a test fails while the two are out of step.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from alembic.autogenerate import produce_migrations, render_python_code
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine

from everkept.store.migrate import statements_after_tables, statements_before_tables
from everkept.store.tables import metadata

TARGET = Path(__file__).parent.parent / "src/everkept/store/migrations/versions/m0001_first_schema.py"
HEAD = '''"""The first schema. Made by scripts/freeze_first_migration.py; frozen with the first release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None
works_with = 1

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    dialect = op.get_context().dialect.name
    for statement in BEFORE_TABLES[dialect]:
        op.execute(statement)
    _create_tables(_revises(dialect))
    for statement in AFTER_TABLES[dialect]:
        op.execute(statement)
    op.create_table(
        "schema_support",
        sa.Column("schema", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("oldest_program", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("schema", name="pk_schema_support"),
    )


def _revises(dialect: str) -> sa.Computed:
    if dialect == "sqlite":
        return sa.Computed("metadata->>'revises'", persisted=False)
    return sa.Computed("(metadata::json->>'revises')::bigint", persisted=True)


def _create_tables(revises: sa.Computed) -> None:
'''
DIALECTS = ("sqlite", "postgresql")


def generate() -> str:
    """The text of the migration, as its file must have it."""
    with create_engine("sqlite://").connect() as connection:
        context = MigrationContext.configure(connection)
        operations = produce_migrations(context, metadata).upgrade_ops
        assert operations is not None
        tables = render_python_code(operations, migration_context=context)
    tables = tables.replace("sa.Text().with_variant(sa.Text(collation='C'), 'postgresql')", "TEXT")
    tables = tables.replace("sa.BigInteger().with_variant(sa.Integer(), 'sqlite')", "ID")
    tables = tables.replace("""sa.Computed("metadata->>'revises'", persisted=False)""", "revises")
    lines = [line for line in tables.splitlines() if not line.lstrip().startswith("#")]
    lines[0] = f"    {lines[0].lstrip()}"
    beside = [
        _by_dialect("BEFORE_TABLES", statements_before_tables),
        _by_dialect("AFTER_TABLES", statements_after_tables),
    ]
    head, upgrade = HEAD.rstrip().split("\n\n\n", 1)
    return _formatted("\n".join([head, *beside, "\n", upgrade, *lines, ""]))


def _by_dialect(name: str, statements: Callable[[str], Sequence[str]]) -> str:
    """A constant of the migration: {dialect: statements}."""
    of_each = [f"{dialect!r}: ({''.join(f'({_literal(s)}),' for s in statements(dialect))})," for dialect in DIALECTS]
    return f"{name}: dict[str, tuple[str, ...]] = {{{''.join(of_each)}}}"


def _literal(text: str) -> str:
    """A text as lines of source, none too long."""
    return "".join(f"\n        {line!r}" for line in textwrap.wrap(text, 90, drop_whitespace=False))


def _formatted(code: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(command, input=code, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    TARGET.write_text(generate(), "utf-8")
    sys.stdout.write(f"wrote {TARGET}\n")
