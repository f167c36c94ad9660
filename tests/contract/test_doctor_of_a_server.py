"""Doctor over a database server: each cause that lies in it has a planted case that yields it and no other."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from tests.factories import settings_of
from tests.postgres import empty_database, new_database, ordinary_role
from tests.stubs.next_version import plant_next

from everkept.ports.clock import SystemClock
from everkept.store.diagnosis import server
from everkept.store.diagnosis.diagnose import Diagnosis, diagnose_database
from everkept.store.diagnosis.look import Look
from everkept.store.postgres import PostgresDatabase
from everkept.store.postgres_upgrade import upgrade_database

pytestmark = pytest.mark.only_on("postgresql", reason="it is about a server; test_doctor has what lies in a file")
SAFE = "&options=-c%20synchronous_commit%3Don"


@pytest.fixture(scope="module")
def url() -> str:
    """Of a store on a server, as a role that may do what it must and no more."""
    empty_database()
    return ordinary_role() + SAFE


def look(home: Path, url: str) -> Diagnosis:
    database = PostgresDatabase(url)
    found = Look(settings=settings_of(home), name=database.name, around=None)
    return diagnose_database(found, SystemClock(), database)


def causes(found: Diagnosis) -> list[str]:
    return [finding.cause for finding in found.findings]


def store_unreachable(url: str, home: Path, _more: ExitStack) -> Diagnosis:
    return look(home, "postgresql://nobody@127.0.0.1:1/nothing")


def connections_short(url: str, home: Path, more: ExitStack) -> Diagnosis:
    for _ in range(82):  # of a hundred
        more.enter_context(psycopg.connect(url))
    return look(home, url)


def transaction_idle(url: str, home: Path, more: ExitStack) -> Diagnosis:
    more.enter_context(psycopg.connect(url)).execute("select 1")
    more.enter_context(pytest.MonkeyPatch.context()).setattr(server, "IDLE_US", 0)
    return look(home, url)


def server_unsafe(url: str, home: Path, _more: ExitStack) -> Diagnosis:
    return look(home, url.removesuffix(SAFE) + SAFE.replace("Don", "Doff"))


def role_too_mighty(_url: str, home: Path, _more: ExitStack) -> Diagnosis:
    return look(home, empty_database() + SAFE)


PLANTED: tuple[Callable[[str, Path, ExitStack], Diagnosis], ...] = (
    store_unreachable, connections_short, transaction_idle, server_unsafe, role_too_mighty,
)  # fmt: skip


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_planted_cause_is_found_and_no_other(
    url: str, tmp_path: Path, plant: Callable[[str, Path, ExitStack], Diagnosis]
) -> None:
    with ExitStack() as more:
        found = plant(url, tmp_path, more)
    assert causes(found) == [plant.__name__]
    assert (found.findings[0].what != "", found.findings[0].mend != "") == (True, True)
    assert found.looked is (plant is not store_unreachable)


def test_a_server_in_which_nothing_is_wrong_is_described(url: str, tmp_path: Path) -> None:
    found = look(tmp_path, url)
    assert (causes(found), found.looked) == ([], True)
    assert str(found.store["library"]).startswith("PostgreSQL ")
    assert found.store["size_bytes"] > 1_000_000
    assert "path" in found.store
    assert "free_bytes" not in found.store


def test_a_password_is_never_shown() -> None:
    shown = PostgresDatabase("postgresql://me:secret@db.example:5433/memory?password=secret&sslmode=require").name
    assert shown == "postgresql://me@db.example:5433/memory?password=***&sslmode=require"


def test_an_empty_database_has_no_schema_yet_and_one_of_another_version_is_named(tmp_path: Path) -> None:
    empty = new_database()
    assert causes(look(tmp_path, empty)) == ["store_missing"]
    newer = new_database()
    with psycopg.connect(newer, autocommit=True) as raw:
        raw.execute("create table alembic_version(version_num varchar(32))")
        raw.execute("insert into alembic_version values('9998')")
    assert causes(look(tmp_path, newer)) == ["store_newer"]
    with psycopg.connect(newer, autocommit=True) as raw:
        raw.execute("update alembic_version set version_num = '0000'")
    assert causes(look(tmp_path, newer)) == ["migration_pending"]


def test_a_schema_that_was_made_to_go_on_with_this_program_is_named(tmp_path: Path) -> None:
    url = new_database()
    PostgresDatabase(url).prepare(SystemClock())
    upgrade_database(PostgresDatabase(url), plant_next(tmp_path / "planted"))
    found = look(tmp_path, url + SAFE)
    assert causes(found) == ["schema_newer", "role_too_mighty"]
    assert found.findings[0].what == "the schema is 2, newer than this program's 1, which goes on with it"
