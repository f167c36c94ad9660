"""A schema is whole or not there: fresh, migrated, refused, or left as it was (G04)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scripts import freeze_first_migration
from sqlalchemy import text
from tests.stubs.next_version import plant_next
from tests.stubs.planted_migration import plant

from everkept.errors import StoreNotSupported
from everkept.ports.clock import VirtualClock
from everkept.store.connection import Connection
from everkept.store.dialect import sqlite_dialect
from everkept.store.inspection import inspect_store
from everkept.store.migrate import (
    SCHEMA,
    SHIPPED,
    WORKS_WITH,
    Migrations,
    alembic_config,
    read_revision,
    revision,
    upgrade,
)
from everkept.store.migrations.open_connection import engine_over
from everkept.store.projects import ensure_project, list_projects
from everkept.store.sqlite import choose_driver, open_file
from everkept.store.store import Store

pytestmark = pytest.mark.only_on(
    "sqlite", reason="how a file is upgraded; test_migrations_of_a_server.py has the other"
)
NEXT = SCHEMA + 1
ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a store of today's schema in it, and one project."""
    store = Store(tmp_path / "everkept.db", clock=VirtualClock(), threads=False)
    store.open()
    store.close()
    connection = connect(tmp_path)
    connection.raw.execute("insert into projects(workspace_id, name, secret, created_at) values(1, 'p', x'00', 1)")
    connection.raw.close()
    return tmp_path


def connect(home: Path) -> Connection:
    raw = open_file(choose_driver(), home / "everkept.db")
    return Connection(raw, sqlite_dialect(), VirtualClock())


def migrate(home: Path, migrations: Migrations) -> Any:
    connection = connect(home)
    try:
        return upgrade(connection, home / "everkept.db", migrations)
    finally:
        connection.raw.close()


def names(conn: Connection) -> list[str]:
    return [project.name for project in list_projects(conn)]


def snapshot(path: Path) -> list[tuple[Any, ...]]:
    """All that a schema is: statements, columns and indexes."""
    raw = choose_driver().module.connect(str(path))
    try:
        query = "select type, name, tbl_name, sql from sqlite_master where name not like 'sqlite_%'"
        master = raw.execute(query).fetchall()
        rows = [("sql", *row[:3], normal(row[3])) for row in master]
        for kind, name, *_ in master:
            if kind == "table":
                rows += [("column", name, *row) for row in raw.execute(f"pragma table_xinfo('{name}')")]
                rows += [("reference", name, *row[1:]) for row in raw.execute(f"pragma foreign_key_list('{name}')")]
                rows += [("index", name, *row[1:]) for row in raw.execute(f"pragma index_list('{name}')")]
            if kind == "index":
                rows += [("key", name, *row) for row in raw.execute(f"pragma index_xinfo('{name}')")]
        rows.append(("version", raw.execute("pragma user_version").fetchone()[0], read_revision(raw)))
        return sorted(rows, key=repr)
    finally:
        raw.close()


def normal(sql: str | None) -> tuple[str, ...]:
    """A statement as the set of its parts: the order of constraints, blanks and capitals mean nothing."""
    flat = re.sub(r"\s+", " ", (sql or "").lower().replace('"', "")).strip()
    parts = re.fullmatch(r"([^(]*)\((.*)\)([^)]*)", flat)
    if parts is None:
        return (flat,)
    body = re.sub(r"default \((\w+)\)", r"default \1", parts[2])
    columns = sorted(part.strip() for part in re.split(r",(?![^(]*\))", body))
    return (parts[1].strip(), *columns, parts[3].strip())


def test_a_fresh_schema_equals_the_sum_of_migrations(home: Path, tmp_path: Path) -> None:
    raw = open_file(choose_driver(), tmp_path / "migrated.db")
    from alembic import command

    with engine_over(raw).connect() as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    raw.execute(f"pragma user_version = {SCHEMA}")
    raw.close()

    fresh, migrated = snapshot(home / "everkept.db"), snapshot(tmp_path / "migrated.db")
    assert [row for row in fresh if row not in migrated] == []
    assert [row for row in migrated if row not in fresh] == []
    assert len(fresh) > 300


def test_the_first_migration_is_in_step_with_the_tables() -> None:
    assert freeze_first_migration.generate() == freeze_first_migration.TARGET.read_text("utf-8"), (
        "run scripts/freeze_first_migration.py"
    )


def test_the_newest_migration_is_the_schema_of_the_program() -> None:
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(alembic_config())
    assert scripts.get_heads() == [revision(SCHEMA)]
    assert scripts.get_revision(revision(SCHEMA)).module.works_with == WORKS_WITH


def test_a_store_that_is_new_or_up_to_date_does_not_load_alembic(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from everkept.store.store import Store\n"
        "for _ in range(2):\n"
        "    store = Store(Path(sys.argv[1]), threads=False); store.open(); store.close()\n"
        "print('alembic' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "everkept.db")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_an_up_to_date_store_costs_one_statement(home: Path) -> None:
    connection = connect(home)
    seen: list[str] = []
    connection.raw.set_trace_callback(seen.append)
    upgrade(connection, home / "everkept.db")
    connection.raw.close()
    assert seen == ["pragma user_version"]


def test_an_older_store_is_migrated_after_a_copy_was_made(home: Path, tmp_path: Path) -> None:
    before = snapshot(home / "everkept.db")
    done = migrate(home, plant(tmp_path / "planted"))

    assert done.found == SCHEMA
    assert done.copy == home / f"everkept.before-{NEXT}.db"
    assert snapshot(done.copy) == before
    assert done.copy.stat().st_mode & 0o777 == 0o600
    connection = connect(home)
    assert connection.rows(text("select name, colour, position from projects order by id")) == [("p", "green", 0)]
    assert connection.rows(text("select count(*) from ribbons")) == [(1,)]
    assert connection.rows(text("pragma user_version")) == [(NEXT,)]
    assert read_revision(connection.raw) == revision(NEXT)
    assert connection.rows(text("pragma foreign_keys")) == [(1,)]
    connection.raw.close()
    assert migrate(home, plant(tmp_path / "planted")).copy is None


def test_a_newer_store_that_says_so_is_used_by_this_program(home: Path, tmp_path: Path) -> None:
    """Also by one that runs meanwhile: its statements are prepared anew, and each names its columns."""
    running = Store(home / "everkept.db", threads=False)
    running.open()
    assert running.read_now(names) == ["p"]
    migrate(home, plant_next(tmp_path / "planted"))
    assert running.read_now(names) == ["p"]
    running.write_now(ensure_project, "q", bytes(32))
    running.close()

    started = Store(home / "everkept.db", threads=False)
    started.open()
    started.write_now(ensure_project, "r", bytes(32))
    assert started.read_now(names) == ["p", "q", "r"]
    started.close()
    connection = connect(home)
    assert upgrade(connection, home / "everkept.db").schema == NEXT
    connection.raw.close()
    assert [found.ok for found in inspect_store(home / "everkept.db").findings if found.name == "schema"] == [True]


def test_a_newer_store_whose_word_is_of_another_schema_is_refused(home: Path, tmp_path: Path) -> None:
    migrate(home, plant_next(tmp_path / "planted"))
    connection = connect(home)
    connection.raw.execute(f"update schema_support set schema = {NEXT + 1}")
    with pytest.raises(StoreNotSupported, match=rf"has schema {NEXT}"):
        upgrade(connection, home / "everkept.db")
    connection.raw.close()


def test_a_migration_that_does_not_say_who_goes_on_is_refused(home: Path, tmp_path: Path) -> None:
    before = snapshot(home / "everkept.db")
    planted = plant_next(tmp_path / "planted")
    source = next((tmp_path / "planted").iterdir())
    source.write_text(source.read_text("utf-8").replace("works_with", "wrks_with"), "utf-8")
    with pytest.raises(AttributeError, match="works_with"):
        migrate(home, planted)
    assert snapshot(home / "everkept.db") == before


def test_a_newer_store_is_refused(home: Path, tmp_path: Path) -> None:
    migrate(home, plant(tmp_path / "planted"))
    before = snapshot(home / "everkept.db")
    with pytest.raises(StoreNotSupported, match=rf"has schema {NEXT}, and this Everkept knows {SCHEMA}"):
        Store(home / "everkept.db", threads=False).open()
    assert snapshot(home / "everkept.db") == before


def test_a_database_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "everkept.db"
    raw = choose_driver().module.connect(str(path))
    raw.execute("create table songs(title)")
    raw.close()
    with pytest.raises(StoreNotSupported, match="not one of Everkept"):
        Store(path, threads=False).open()
    raw = choose_driver().module.connect(str(path))
    assert raw.execute("select name from sqlite_master").fetchall() == [("songs",)]
    raw.close()


@pytest.mark.parametrize("fails_at", range(4))
def test_a_migration_that_fails_leaves_the_old_schema_whole(home: Path, tmp_path: Path, fails_at: int) -> None:
    before = snapshot(home / "everkept.db")
    with pytest.raises(RuntimeError, match="planted"):
        migrate(home, plant(tmp_path / "planted", fails_at=fails_at))

    assert snapshot(home / "everkept.db") == before
    assert migrate(home, SHIPPED).found == SCHEMA
    assert migrate(home, plant(tmp_path / "mended")).found == SCHEMA


def test_a_migration_with_wrong_sql_leaves_the_old_schema_whole(home: Path, tmp_path: Path) -> None:
    before = snapshot(home / "everkept.db")
    with pytest.raises(choose_driver().module.OperationalError, match="no such table"):
        migrate(home, plant(tmp_path / "planted", last="update nowhere set a = 1"))
    assert snapshot(home / "everkept.db") == before


def test_a_migration_that_breaks_references_is_taken_back(home: Path, tmp_path: Path) -> None:
    before = snapshot(home / "everkept.db")
    with pytest.raises(StoreNotSupported, match="rows of projects without what they refer to"):
        migrate(home, plant(tmp_path / "planted", last="delete from workspaces"))
    assert snapshot(home / "everkept.db") == before


def test_a_migration_that_is_killed_at_any_statement_leaves_the_old_schema_whole(home: Path, tmp_path: Path) -> None:
    plant(tmp_path / "planted")
    command = [sys.executable, "-m", "tests.stubs.planted_migration", str(home), str(tmp_path / "planted")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stderr)
    assert report["killed"] > 15
    assert report["broken"] == []
    assert report["schema"] == NEXT
