"""Bringing a database to this program's schema, whole or not at all.

A new file is made from `tables/` and stamped, and one that is up to date is recognised by one statement; Alembic is
loaded only where a migration has to run. That happens by itself at start, in one transaction, after a copy of the file
was made beside it. `pragma user_version` and Alembic's own table always name the same migration.

Each migration says which programs go on beside it (`works_with`), and the database keeps that of its newest one in
`schema_support`: so a program can tell of a schema that it does not know whether it was made to run on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import text
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from everkept.errors import StoreNotSupported
from everkept.ports.clock import SystemClock
from everkept.store.connection import Connection
from everkept.store.copy import copy_store
from everkept.store.dialect import POSTGRES_FUNCTIONS, sqlite_dialect
from everkept.store.sqlite import choose_driver, open_file, translate

log = structlog.get_logger("everkept.store")
SCHEMA = 1
"""The newest migration; its file is `migrations/versions/m0001_….py`, its name in Alembic `0001`."""
WORKS_WITH = 1
"""What that migration says: the oldest schema whose programs run on this one."""
MOVING_IN = 9_999
"""No schema: what a place says of itself while a memory is being moved into it (`moving/arriving.py`)."""
MOVING_IN_TOLD = "a memory is being moved into this place: `everkept move` finishes it"
_VERSIONS = Path(__file__).parent / "migrations" / "versions"
SEED = text("insert into workspaces(id, name, created_at) values(1, 'default', :now)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrations:
    head: int
    places: tuple[Path, ...]
    """The folders that hold the migrations 1 to `head`."""


SHIPPED = Migrations(head=SCHEMA, places=(_VERSIONS,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    found: int
    """The schema that was there; 0 where there was none."""
    schema: int
    copy: Path | None
    """The store as it was before, where a migration ran."""


def revision(schema: int) -> str:
    """1 → `0001`: what Alembic calls it."""
    return f"{schema:04d}"


def is_newer_and_known(found: int, known: int, oldest_program: int | None) -> bool:
    """Whether a program that knows schema `known` runs on the newer `found`, of which the database says
    `oldest_program`; None where it says nothing."""
    return found > known and oldest_program is not None and oldest_program <= known


def upgrade(connection: Connection, path: Path, migrations: Migrations = SHIPPED) -> Upgraded:
    """Make the schema in an empty file, or migrate an older one; whatever fails leaves it as it was (G04).

    Raises StoreNotSupported for a store that is newer than this program or is none of ours, StoreFull.
    """
    found = read_schema(connection.raw, path, known=migrations.head)
    copy: Path | None = None
    if found > migrations.head:
        log.info("the schema is newer than this program, which goes on beside it", found=found, known=migrations.head)
        return Upgraded(found=found, schema=found, copy=None)
    if found == 0:
        _make(connection, path, migrations)
    elif found < migrations.head:
        copy = _migrate(connection.raw, path, migrations)
    return Upgraded(found=found, schema=migrations.head, copy=copy)


def upgrade_file(path: Path) -> Upgraded:
    """`upgrade` for a file that nobody in this process has open."""
    raw = open_file(choose_driver(), path)
    try:
        return upgrade(Connection(raw, sqlite_dialect(), SystemClock()), path)
    except Exception as error:
        raise translate(error) from error
    finally:
        raw.close()


def read_schema(raw: Any, path: Path, *, known: int = SCHEMA) -> int:
    """The schema of an open file, 0 where it is empty.

    Raises StoreNotSupported for one newer than `known` that does not say that programs of `known` run on it.
    """
    found: int = raw.execute("pragma user_version").fetchone()[0]
    if found == MOVING_IN:
        raise StoreNotSupported(f"{path}: {MOVING_IN_TOLD}", path=str(path), moving_in=True)
    if found > known and not is_newer_and_known(found, known, read_oldest_program(raw, found)):
        raise StoreNotSupported(
            f"{path} has schema {found}, and this Everkept knows {known}: use a newer Everkept",
            path=str(path), found=found, known=known,
        )  # fmt: skip
    return found


def read_revision(raw: Any) -> str | None:
    """The migration that Alembic's table names; None where there is no such table."""
    if raw.execute("select 1 from sqlite_master where name = 'alembic_version'").fetchone() is None:
        return None
    row = raw.execute("select version_num from alembic_version").fetchone()
    return None if row is None else str(row[0])


def read_oldest_program(raw: Any, schema: int) -> int | None:
    """The oldest schema whose programs run on `schema`; None where the file says nothing of that one."""
    if raw.execute("select 1 from sqlite_master where name = 'schema_support'").fetchone() is None:
        return None
    row = raw.execute("select oldest_program from schema_support where schema = ?", (schema,)).fetchone()
    return None if row is None else int(row[0])


def schema_statements(dialect: Dialect | None = None) -> list[str]:
    """The DDL of the whole schema in the order in which it can be run, for SQLite unless another dialect is given."""
    from everkept.store.tables import metadata  # a tenth of a start, and only a new file needs them

    dialect = dialect or sqlite_dialect()
    statements = statements_before_tables(dialect.name)
    for table in metadata.sorted_tables:
        statements.append(str(CreateTable(table).compile(dialect=dialect)).strip())
        indexes = sorted(table.indexes, key=lambda i: str(i.name))
        statements += [str(CreateIndex(index).compile(dialect=dialect)) for index in indexes]
    return statements + statements_after_tables(dialect.name)


def statements_before_tables(dialect: str) -> list[str]:
    """What tables stand on, for `sqlite` or `postgresql`; migration 0001 has it written out."""
    return list(POSTGRES_FUNCTIONS) if dialect == "postgresql" else []


def statements_after_tables(dialect: str) -> list[str]:
    """What stands on tables and is none of `metadata`, likewise."""
    from everkept.store.isolation import policy_statements
    from everkept.store.tables import FULL_TEXT_POSTGRES, FULL_TEXT_SQLITE, VECTORS_POSTGRES

    if dialect == "sqlite":
        return list(FULL_TEXT_SQLITE)
    return [*FULL_TEXT_POSTGRES, *VECTORS_POSTGRES, *policy_statements()]


def stamp_statements() -> list[str]:
    """What a new schema says of itself, for both databases: as Alembic and the migrations write it."""
    return [
        "CREATE TABLE schema_support (schema INTEGER NOT NULL, oldest_program INTEGER NOT NULL,"
        " CONSTRAINT pk_schema_support PRIMARY KEY (schema))",
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL,"
        " CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))",
        f"insert into alembic_version(version_num) values('{revision(SCHEMA)}')",
        *support_statements(SCHEMA, WORKS_WITH),
    ]


def support_statements(schema: int, oldest_program: int) -> list[str]:
    """What a migration says of itself, in place of what the one before it said."""
    return [
        "delete from schema_support",
        f"insert into schema_support(schema, oldest_program) values({schema}, {oldest_program})",
    ]


def _make(connection: Connection, path: Path, migrations: Migrations) -> None:
    raw = connection.raw
    with _transaction(raw):
        if read_schema(raw, path, known=migrations.head):
            return  # another process was first
        if raw.execute("select count(*) from sqlite_master").fetchone()[0]:
            raise StoreNotSupported(f"{path} is a database, but not one of Everkept", path=str(path))
        for statement in (*schema_statements(connection.dialect), *stamp_statements()):
            raw.execute(statement)
        connection.run(SEED, {"now": connection.now()})
        raw.execute(f"pragma user_version = {SCHEMA}")


@contextmanager
def _transaction(raw: Any) -> Iterator[None]:
    raw.execute("begin immediate")
    try:
        yield
    except BaseException:
        if raw.in_transaction:  # a full disk has already rolled it back
            raw.execute("rollback")
        raise
    raw.execute("commit")


def _migrate(raw: Any, path: Path, migrations: Migrations) -> Path | None:
    """Run what is missing; the copy of the store as it was, or None where another process was first."""
    raw.execute("pragma foreign_keys = off")  # a migration rebuilds tables; references are checked before the commit
    try:
        with _transaction(raw):
            found = read_schema(raw, path, known=migrations.head)
            if found >= migrations.head:
                return None
            _require_revision(raw, path, found)
            # The transaction already keeps other writers out, so the copy is exactly what is migrated.
            copy = path.with_name(f"{path.stem}.before-{migrations.head}{path.suffix}")
            copy_store(path, copy, replace=True)
            log.info("upgrading the store", path=str(path), found=found, schema=migrations.head, copy=str(copy))
            _run_alembic(raw, migrations)
            _require_references(raw)
            _require_revision(raw, path, migrations.head)
            raw.execute(f"pragma user_version = {migrations.head}")
        return copy
    finally:
        raw.execute("pragma foreign_keys = on")


def _require_revision(raw: Any, path: Path, schema: int) -> None:
    found = read_revision(raw)
    if found != revision(schema):
        raise StoreNotSupported(
            f"{path} says schema {schema}, its record of migrations says {found or 'nothing'}: nothing was changed",
            path=str(path), schema=schema, revision=found,
        )  # fmt: skip


def _require_references(raw: Any) -> None:
    broken = {row[0] for row in raw.execute("pragma foreign_key_check").fetchall()}
    if broken:
        raise StoreNotSupported(
            f"the upgrade left rows of {', '.join(sorted(broken))} without what they refer to, and was taken back",
            tables=sorted(broken),
        )


def _run_alembic(raw: Any, migrations: Migrations) -> None:
    """Run the missing migrations in the transaction that is open on `raw`, which stays open. Raises driver errors."""
    from alembic import command
    from sqlalchemy.exc import DBAPIError

    from everkept.store.migrations.open_connection import engine_over

    with engine_over(raw).connect() as connection:
        config = alembic_config(migrations)
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, revision(migrations.head))
        except DBAPIError as error:
            if error.orig is None:
                raise
            raise error.orig from error


def alembic_config(migrations: Migrations = SHIPPED) -> Any:
    """An `alembic.config.Config` for these migrations; whoever runs it adds `attributes["connection"]`."""
    import os

    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "everkept.store:migrations")
    config.set_main_option("file_template", "m%%(rev)s_%%(slug)s")
    if migrations.places != SHIPPED.places:
        config.set_main_option("path_separator", "os")
        places = os.pathsep.join(str(place) for place in migrations.places)
        config.set_main_option("version_locations", places.replace("%", "%%"))
    return config
