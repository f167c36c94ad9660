"""Write migration 0001 from `store/tables/`. Only while no version has been released: after that 0001 never changes.

Run it after each change of the tables; a test fails while the two are out of step.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from alembic.autogenerate import produce_migrations, render_python_code
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine

from everkept.store.tables import FULL_TEXT_SQLITE, metadata

TARGET = Path(__file__).parent.parent / "src/everkept/store/migrations/versions/m0001_first_schema.py"
HEAD = '''"""The first schema. Made by scripts/freeze_first_migration.py; frozen with the first release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
'''
FULL_TEXT = """    if op.get_bind().dialect.name == "sqlite":
        _create_full_text()


def _create_full_text() -> None:
"""


def generate() -> str:
    """The text of the migration, as its file must have it."""
    with create_engine("sqlite://").connect() as connection:
        context = MigrationContext.configure(connection)
        operations = produce_migrations(context, metadata).upgrade_ops
        assert operations is not None
        tables = render_python_code(operations, migration_context=context)
    tables = tables.replace("sa.Text().with_variant(sa.Text(collation='C'), 'postgresql')", "TEXT")
    tables = tables.replace("sa.BigInteger().with_variant(sa.Integer(), 'sqlite')", "ID")
    lines = [line for line in tables.splitlines() if not line.lstrip().startswith("#")]
    full_text = [f"    op.execute({_literal(statement)})" for statement in FULL_TEXT_SQLITE]
    lines[0] = f"    {lines[0].lstrip()}"
    return _formatted("\n".join([HEAD.rstrip(), *lines, FULL_TEXT.rstrip(), *full_text, ""]))


def _literal(text: str) -> str:
    """A text as lines of source, none too long."""
    return "".join(f"\n        {line!r}" for line in textwrap.wrap(text, 90, drop_whitespace=False))


def _formatted(code: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(command, input=code, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    TARGET.write_text(generate(), "utf-8")
    sys.stdout.write(f"wrote {TARGET}\n")
