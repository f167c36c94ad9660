"""The next version of the program, with a schema that none has: its migrations, and a copy of the package with one."""

from __future__ import annotations

import shutil
from pathlib import Path

import everkept
from everkept.store.migrate import SCHEMA, SHIPPED, WORKS_WITH, Migrations, revision

NEXT = SCHEMA + 1
SOURCE = '''"""A migration that no version has."""

import sqlalchemy as sa
from alembic import op

revision, down_revision, works_with, online = {revision!r}, {down!r}, {works_with!r}, {online!r}


def upgrade():
    {body}
'''
EXPAND = """op.add_column("streams", sa.Column("colour", sa.Text()))
    op.create_table("ribbons", sa.Column("id", sa.BigInteger(), primary_key=True), sa.Column("name", sa.Text()))
    op.create_index("ix_streams_colour", "streams", ["colour"])"""
CONTRACT = """op.drop_column("streams", "summary")"""
ONLINE = """op.drop_index("ix_events_role", "events", if_exists=True, postgresql_concurrently=True)
    op.create_index("ix_events_role", "events", ["role"], postgresql_concurrently=True)"""


def plant_next(
    folder: Path, body: str = EXPAND, *, works_with: int = WORKS_WITH, online: bool = False, number: int = NEXT
) -> Migrations:
    """The shipped migrations and those in `folder`, of which `number` does `body` and is the last."""
    folder.mkdir(exist_ok=True)
    source = SOURCE.format(
        revision=revision(number), down=revision(number - 1), works_with=works_with, online=online, body=body
    )
    (folder / f"m{revision(number)}_planted.py").write_text(source, "utf-8")
    return Migrations(head=number, places=(*SHIPPED.places, folder))


def build_next_version(folder: Path) -> Path:
    """A folder to be put on `PYTHONPATH`: this package with schema `NEXT`, which expands today's."""
    package = folder / "everkept"
    shutil.copytree(Path(everkept.__file__).parent, package)  # with what is compiled: it keeps its time
    plant_next(package / "store" / "migrations" / "versions")
    module = package / "store" / "migrate.py"
    source = module.read_text("utf-8")
    known = f"\nSCHEMA = {SCHEMA}\n"
    assert source.count(known) == 1
    module.write_text(source.replace(known, f"\nSCHEMA = {NEXT}\n"), "utf-8")
    return folder
