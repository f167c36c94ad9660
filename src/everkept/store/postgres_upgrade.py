"""Bringing a PostgreSQL database to this program's schema, when whoever runs the replicas asks for it.

Replicas of the version before work on meanwhile, so nothing waits long for the locks of an upgrade: what it cannot lock
at once it gives up, and tries again. What cannot be done at once, or in no transaction, is a migration with
`online = True`, which is run by itself, in autocommit, and again from its beginning where it was interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg
import structlog
from alembic import command
from alembic.script import ScriptDirectory
from psycopg.errors import DeadlockDetected, InsufficientPrivilege, LockNotAvailable
from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from everkept.errors import Conflict, StoreNotSupported, StoreUnavailable
from everkept.ports.clock import Clock, SystemClock
from everkept.store.isolation import reach_statement
from everkept.store.migrate import SCHEMA, SHIPPED, Migrations, Upgraded, alembic_config, revision
from everkept.store.migrations.printed import printed
from everkept.store.postgres import PREPARING, UPGRADING, PostgresDatabase, translate
from everkept.store.postgres_schema import granting_statements, read_revision
from everkept.store.reach import Across

log = structlog.get_logger("everkept.store")
LOCK_MS: Final = 500
"""How long it waits for a lock, and everybody else behind it. Less than `deadlock_timeout` (1 s), so that in a circle
it is the upgrade that gives way."""
PAUSE_S: Final = 0.5
PATIENCE_S: Final = 120
"""For how long it tries to get its locks."""
_TRY_LOCK: Final = f"select pg_try_advisory_xact_lock({PREPARING})"
_CONNECTED: Final = """
select count(*) from pg_stat_activity where datname = current_database()
  and application_name like 'everkept%%' and application_name <> %s"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Migrations that are run at once: an online one by itself, others together in one transaction."""

    older: int
    newer: int
    online: bool
    oldest_program: int
    """The oldest schema whose programs go on after it."""


def batches(older: int, migrations: Migrations = SHIPPED) -> list[Batch]:
    """What is missing after `older`, in order."""
    scripts = ScriptDirectory.from_config(alembic_config(migrations))
    found: list[Batch] = []
    for number in range(older + 1, migrations.head + 1):
        migration: Any = scripts.get_revision(revision(number))
        online = getattr(migration.module, "online", False)
        joins = bool(found) and not online and not found[-1].online
        begins = found.pop().older if joins else number - 1
        found.append(
            Batch(older=begins, newer=number, online=online, oldest_program=migration.module.works_with)
        )  # fmt: skip
    return found


def upgrade_database(
    database: PostgresDatabase, migrations: Migrations = SHIPPED, clock: Clock | None = None
) -> Upgraded:
    """Make the schema in an empty database, or run the migrations that an older one has not seen.

    What runs in one transaction is there whole or not at all; an online migration that failed is run again by the next
    call. Raises StoreNotSupported where the role may not alter it or it is newer than this program, Conflict where
    programs are connected that the new schema would break, StoreUnavailable where its locks were never free.
    """
    found = database.make(clock or SystemClock())
    if found is None:
        return Upgraded(found=0, schema=SCHEMA, copy=None)
    if found >= migrations.head:
        database.require_schema()
        return Upgraded(found=found, schema=found, copy=None)
    try:
        with _alone(database) as raw:
            found = int(read_revision(raw) or 0)  # another upgrade was first, maybe
            _run_all(database, migrations, found)
            reached = int(read_revision(raw) or 0)
    except InsufficientPrivilege as error:
        raise StoreNotSupported(
            f"the database refuses this role: {str(error).splitlines()[0]}; "
            f"`everkept db sql --from {found}` prints what an administrator runs"
        ) from error
    except psycopg.Error as error:
        raise translate(error) from error
    return Upgraded(found=found, schema=reached, copy=None)


@contextmanager
def _alone(database: PostgresDatabase) -> Iterator[psycopg.Connection[Any]]:
    """While nobody else upgrades.

    An idle transaction holds the lock, so that it is held behind a pooler too. It is asked for again and again instead
    of waited for: a statement that waits has a snapshot, which `create index concurrently` would wait for.
    """
    with database.connect_to_alter() as guard:
        while True:
            guard.execute("set local idle_in_transaction_session_timeout = 0")
            # Nothing here has parameters: with them, the server keeps a statement's snapshot until the next one.
            row = guard.execute(_TRY_LOCK).fetchone()
            if row is not None and row[0]:
                break
            guard.rollback()
            time.sleep(PAUSE_S)
        yield guard
        guard.rollback()


def _run_all(database: PostgresDatabase, migrations: Migrations, found: int) -> None:
    missing = batches(found, migrations)
    if missing and missing[-1].oldest_program > found:
        _require_nobody(database, found, missing[-1])
    engine = create_engine("postgresql+psycopg://", creator=database.connect_to_alter, poolclass=NullPool)
    for batch in missing:
        log.info("upgrading the schema", found=batch.older, schema=batch.newer, online=batch.online)
        _run_patiently(engine, migrations, batch)


def _require_nobody(database: PostgresDatabase, found: int, last: Batch) -> None:
    with database.connect_to_alter() as raw:
        row = raw.execute(_CONNECTED, (UPGRADING,)).fetchone()
    if row is not None and row[0]:
        raise Conflict(
            f"schema {last.newer} does not work beside programs of schema {found}, and {row[0]} connections of "
            "Everkept are open: stop every process of it, then run this again",
            connections=row[0], oldest=last.oldest_program,
        )  # fmt: skip


def _run_patiently(engine: Engine, migrations: Migrations, batch: Batch) -> None:
    ends_at = time.monotonic() + PATIENCE_S
    while True:
        try:
            return _run(engine, migrations, batch)
        except (LockNotAvailable, DeadlockDetected) as error:
            if time.monotonic() > ends_at:
                raise StoreUnavailable(
                    f"what schema {batch.newer} alters was in use for {PATIENCE_S} s without a pause: "
                    "nothing of it was changed"
                ) from error
            time.sleep(PAUSE_S)


def _run(engine: Engine, migrations: Migrations, batch: Batch) -> None:
    """Raises the driver's errors."""
    config = alembic_config(migrations)
    try:
        with engine.connect() as connection:
            if batch.online:
                connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            with connection.begin():
                for statement in _beginning(batch):
                    connection.exec_driver_sql(statement)
                config.attributes["connection"] = connection
                command.upgrade(config, revision(batch.newer))
    except DBAPIError as error:
        if error.orig is None:
            raise
        raise error.orig from error


def _beginning(batch: Batch) -> list[str]:
    """What is said before it. Policies bind whoever owns the tables, too: an upgrade reaches the rows of every project.

    An index may be made for hours; what holds locks has the server's own limits, and takes none that is not free.
    """
    if batch.online:
        return ["set statement_timeout = 0", "set everkept.everything = 'on'"]
    return [f"set local lock_timeout = '{LOCK_MS}ms'", reach_statement({Across.EVERYTHING})]


def upgrading_statements(older: int, role: str = "everkept", migrations: Migrations = SHIPPED) -> list[str]:
    """What an administrator runs in a database of schema `older`, for a program that connects as `role`."""
    statements: list[str] = []
    for batch in batches(older, migrations):
        ours = [*_beginning(batch), *printed(batch.older, batch.newer, "postgresql", migrations)]
        statements += ours if batch.online else ["begin", *ours, "commit"]
    return [*statements, *granting_statements(role)] if statements else []
