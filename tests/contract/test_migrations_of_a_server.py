"""A schema on a server is upgraded when somebody says so, beside the programs of the version before (G04)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from alembic import command
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool
from tests.postgres import new_database
from tests.stubs.next_version import CONTRACT, NEXT, ONLINE, plant_next

from everkept.errors import Conflict, StoreNotSupported
from everkept.ports.clock import SystemClock, VirtualClock
from everkept.store.database import reading
from everkept.store.migrate import SCHEMA, Migrations, alembic_config
from everkept.store.postgres import PostgresDatabase
from everkept.store.postgres_schema import administrators_statements, read_oldest_program, read_revision
from everkept.store.postgres_upgrade import upgrade_database, upgrading_statements

pytestmark = pytest.mark.only_on("postgresql", reason="how a server is upgraded; test_migrations.py has the file")
SHAPE = (
    "select 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated::text,"
    " pg_get_expr(d.adbin, d.adrelid), l.collname from pg_attribute a join pg_class c on c.oid = a.attrelid"
    " left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum left join pg_collation l on"
    " l.oid = a.attcollation where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'S')"
    " and a.attnum > 0",
    "select 'table', relname, relrowsecurity, relforcerowsecurity from pg_class"
    " where relnamespace = 'public'::regnamespace and relkind = 'r'",
    "select 'index', indexname, indexdef from pg_indexes where schemaname = 'public'",
    "select 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint"
    " where connamespace = 'public'::regnamespace",
    "select 'extension', extname from pg_extension",
    "select 'function', pg_get_functiondef(oid) from pg_proc p where pronamespace = 'public'::regnamespace"
    " and not exists(select 1 from pg_depend d where d.objid = p.oid and d.deptype = 'e')",
    "select 'trigger', pg_get_triggerdef(oid) from pg_trigger where not tgisinternal",
    "select 'policy', tablename, policyname, roles::text, cmd, qual, with_check from pg_policies",
    "select 'stamp', version_num from alembic_version",
    "select 'support', schema, oldest_program from schema_support",
)


def shape(url: str) -> list[tuple[Any, ...]]:
    """All that a schema is."""
    with psycopg.connect(url) as raw:
        return sorted((row for query in SHAPE for row in raw.execute(query).fetchall()), key=repr)


@cache
def template() -> str:
    """The URL of a database with today's schema, a workspace and a project, that stays as it is."""
    url = new_database()
    PostgresDatabase(url).prepare(VirtualClock())
    with psycopg.connect(url) as raw:
        raw.execute("insert into projects(workspace_id, name, secret, created_at) values(1, 'p', '', 1)")
    return url


@pytest.fixture
def database() -> PostgresDatabase:
    """The same, that nobody has open, to do with what you want."""
    return PostgresDatabase(new_database(like=template()))


def ask(database: PostgresDatabase, sql: str) -> list[Any]:
    with database.connect(read_only=True) as raw:
        return raw.execute(sql.encode()).fetchall()


def as_role(database: PostgresDatabase, role: str) -> PostgresDatabase:
    parts = urlsplit(database.name)
    return PostgresDatabase(urlunsplit(parts._replace(netloc=f"{role}@{parts.netloc.rpartition('@')[2]}")))


@contextmanager
def role_of(database: PostgresDatabase, name: str) -> Iterator[PostgresDatabase]:
    """The database as a role that owns nothing in it, and may do nothing in it but connect."""
    with database.connect(read_only=False) as raw:
        raw.execute(f"create role {name} login")
    yield as_role(database, name)
    with database.connect(read_only=False) as raw:
        raw.execute(f"drop owned by {name}")
        raw.execute(f"drop role {name}")


def test_a_fresh_schema_equals_the_sum_of_migrations(database: PostgresDatabase) -> None:
    migrated = PostgresDatabase(new_database())
    engine = create_engine("postgresql+psycopg://", creator=migrated.connect_to_alter, poolclass=NullPool)
    with engine.begin() as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")

    made, summed = shape(database.name), shape(migrated.name)
    assert [row for row in made if row not in summed] == []
    assert [row for row in summed if row not in made] == []
    assert len(made) > 900


def test_what_is_missing_is_run_and_what_was_there_stays(database: PostgresDatabase, tmp_path: Path) -> None:
    done = upgrade_database(database, plant_next(tmp_path / "planted"))
    assert (done.found, done.schema, done.copy) == (SCHEMA, NEXT, None)
    assert ask(database, "select name from projects") == [("p",)]
    assert ask(database, "select colour from streams") == []
    assert ask(database, "select count(*) from ribbons") == [(0,)]
    again = upgrade_database(database, plant_next(tmp_path / "planted"))
    assert (again.found, again.schema) == (NEXT, NEXT)


def test_an_empty_database_gets_the_schema() -> None:
    database = PostgresDatabase(new_database())
    assert upgrade_database(database).found == 0
    assert upgrade_database(database).found == SCHEMA
    assert ask(database, "select name from workspaces") == [("default",)]


def test_an_older_schema_is_never_upgraded_unasked(database: PostgresDatabase) -> None:
    with database.connect(read_only=False) as raw:
        raw.execute("update alembic_version set version_num = '0000'")
    before = shape(database.name)
    with pytest.raises(StoreNotSupported, match="run `everkept db upgrade`"):
        database.prepare(VirtualClock())
    assert shape(database.name) == before


def test_a_program_goes_on_beside_a_schema_that_says_so(database: PostgresDatabase, tmp_path: Path) -> None:
    with reading(database, SystemClock()) as running:
        upgrade_database(database, plant_next(tmp_path / "planted"))
        assert running.rows(text("select name from projects order by id")) == [("p",)]
    database.prepare(SystemClock())
    assert database.is_readable()
    assert database.find_schema() == NEXT


def test_a_program_stops_before_a_schema_that_does_not_say_so(database: PostgresDatabase, tmp_path: Path) -> None:
    upgrade_database(database, plant_next(tmp_path / "planted", works_with=NEXT))
    for refuses in (lambda: database.prepare(SystemClock()), database.find_schema, lambda: upgrade_database(database)):
        with pytest.raises(StoreNotSupported, match="use a newer Everkept"):
            refuses()
    with database.connect(read_only=False) as raw:  # and before one that says nothing of itself
        raw.execute("delete from schema_support")
    assert not database.is_readable()


def test_a_migration_that_fails_leaves_the_old_schema_whole(database: PostgresDatabase, tmp_path: Path) -> None:
    before = shape(database.name)
    planted = plant_next(tmp_path / "planted")
    planted = plant_next(tmp_path / "planted", 'op.execute("update nowhere set a = 1")', number=NEXT + 1)
    with pytest.raises(psycopg.errors.UndefinedTable, match="nowhere"):
        upgrade_database(database, planted)
    assert shape(database.name) == before
    database.prepare(SystemClock())


def test_an_online_migration_runs_beside_a_reader_and_again_after_it_was_interrupted(
    database: PostgresDatabase, tmp_path: Path
) -> None:
    plant_next(tmp_path / "planted")
    planted = plant_next(tmp_path / "planted", ONLINE, online=True, number=NEXT + 1)
    with database.connect(read_only=False) as raw:  # what a killed `create index concurrently` leaves behind
        raw.execute("create index ix_events_role on events(role)")
        raw.execute("update pg_index set indisvalid = false where indexrelid = 'ix_events_role'::regclass")
    assert upgrade_database(database, planted).schema == NEXT + 1
    valid = "select indisvalid from pg_index where indexrelid = 'ix_events_role'::regclass"
    assert ask(database, valid) == [(True,)]


def test_an_upgrade_holds_nobody_up_and_waits_for_whoever_uses_a_table(
    database: PostgresDatabase, tmp_path: Path
) -> None:
    planted = plant_next(tmp_path / "planted")
    with database.connect(read_only=False) as user, database.connect(read_only=False) as other:
        user.execute("begin")
        user.execute("select name from streams")
        upgrading = threading.Thread(target=upgrade_database, args=(database, planted))
        upgrading.start()
        waited_s = []
        for _ in range(12):
            began = time.monotonic()
            other.execute("select name from streams")
            waited_s.append(time.monotonic() - began)
            time.sleep(0.1)
        assert upgrading.is_alive()
        assert ask(database, "select version_num from alembic_version") == [(f"{SCHEMA:04d}",)]
        user.execute("commit")
        upgrading.join()
    assert ask(database, "select version_num from alembic_version") == [(f"{NEXT:04d}",)]
    assert max(waited_s) < 1.0, "the deadlock detector would come first"


def test_two_upgrades_at_once_do_it_once(database: PostgresDatabase, tmp_path: Path) -> None:
    planted = plant_next(tmp_path / "planted")
    found: list[int] = []
    both = [threading.Thread(target=lambda: found.append(upgrade_database(database, planted).found)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert sorted(found) in ([SCHEMA, SCHEMA], [SCHEMA, NEXT])
    assert database.find_schema() == NEXT


def test_a_schema_that_breaks_running_programs_waits_until_they_have_stopped(
    database: PostgresDatabase, tmp_path: Path
) -> None:
    planted = plant_next(tmp_path / "planted", CONTRACT, works_with=NEXT)
    with database.connect(read_only=True):
        with pytest.raises(Conflict, match="1 connections of Everkept are open: stop every process"):
            upgrade_database(database, planted)
        assert database.find_schema() == SCHEMA
    assert upgrade_until_they_left(database, planted) == NEXT


def upgrade_until_they_left(database: PostgresDatabase, planted: Migrations) -> int:
    """A closed connection is seen for a moment still."""
    for _ in range(50):
        try:
            return upgrade_database(database, planted).schema
        except Conflict:
            time.sleep(0.1)
    raise AssertionError("they never left")


def test_a_role_that_may_not_alter_is_told_what_an_administrator_runs(
    database: PostgresDatabase, tmp_path: Path
) -> None:
    planted = plant_next(tmp_path / "planted")
    with role_of(database, "everkept_reads") as program:
        with database.connect(read_only=False) as raw:
            raw.execute("grant select on all tables in schema public to everkept_reads")
        with pytest.raises(StoreNotSupported, match=rf"must be owner.*`everkept db sql --from {SCHEMA}` prints"):
            upgrade_database(program, planted)
        assert database.find_schema() == SCHEMA


def test_a_migration_reaches_the_rows_of_every_project(tmp_path: Path) -> None:
    """Also that of an owner who is bound by the policies."""
    database, role = PostgresDatabase(new_database()), "everkept_owns"
    with database.connect(read_only=False) as raw:
        name = raw.info.dbname
        raw.execute(
            f"create extension vector; create role {role} login; alter database {name} owner to {role}".encode()
        )
    owner = as_role(database, role)
    owner.prepare(SystemClock())
    with database.connect(read_only=False) as raw:
        raw.execute("insert into projects(workspace_id, name, secret, created_at) values(1, 'p', '', 1)")
        raw.execute("insert into subjects(project_id, name, created_at) values(1, 'ana', 1)")
    upgrade_database(owner, plant_next(tmp_path / "planted", "op.execute(\"update subjects set name = 'ana maria'\")"))
    assert ask(database, "select name from subjects") == [("ana maria",)]
    assert ask(owner, "select name from subjects") == []
    with database.connect(read_only=False) as raw:
        raw.execute(f"alter database {name} owner to postgres; reassign owned by {role} to postgres".encode())
        raw.execute(f"drop owned by {role}; drop role {role}".encode())


def test_what_is_printed_upgrades_and_grants_what_it_made(tmp_path: Path) -> None:
    database, role = PostgresDatabase(new_database()), "everkept_printed"
    plant_next(tmp_path / "planted")
    planted = plant_next(tmp_path / "planted", ONLINE, online=True, number=NEXT + 1)
    with database.connect(read_only=False) as raw:
        for statement in administrators_statements(role):
            raw.execute(statement.encode())
        upgrading = upgrading_statements(SCHEMA, role, planted)
        for statement in upgrading:
            raw.execute(statement.encode())
        assert (read_revision(raw), read_oldest_program(raw, NEXT + 1)) == ("0003", 1)
    program = as_role(database, role)
    program.prepare(SystemClock())
    assert ask(program, "select count(*) from ribbons") == [(0,)]
    with program.connect(read_only=False) as raw, pytest.raises(psycopg.errors.InsufficientPrivilege):
        raw.execute("update schema_support set oldest_program = 0")
    assert upgrading.index("commit") < next(n for n, said in enumerate(upgrading) if "CONCURRENTLY" in said)
    assert upgrading_statements(NEXT + 1, role, planted) == []
    with database.connect(read_only=False) as raw:
        raw.execute(f"drop owned by {role}; drop role {role}".encode())
