"""`everkept db index`: the vector index of large projects, as an administrator makes it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import psycopg
import pytest
from tests.acceptance.test_database_server import as_role
from tests.postgres import new_database

from everkept.doors.cli.database import index_vectors
from everkept.errors import InvalidInput, StoreNotSupported
from everkept.ports.clock import VirtualClock
from everkept.store import postgres
from everkept.store.postgres import PostgresDatabase
from everkept.store.vector_graphs import make_graphs

LARGE = 20
"""Vectors, to the command under test."""


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The URL of a database with one large project and a small one, which the command is given."""
    url = new_database()
    PostgresDatabase(url).prepare(VirtualClock())
    with psycopg.connect(url, autocommit=True) as raw:
        for name in ("large", "small"):
            raw.execute("insert into projects(workspace_id, name, secret, created_at) values(1, %s, '', 0)", (name,))
        raw.execute("set session_replication_role = replica")
        raw.execute(
            "insert into vectors(passage_id, model, project_id, subject_id, own, around)"
            " select n, 'words', case when n <= %s then 2 else 1 end, 1, '', sha256(n::text::bytea)"
            " from generate_series(1, %s) n",
            (LARGE, 2 * LARGE + 1),
        )
    monkeypatch.setattr(postgres, "make_graphs", partial(make_graphs, lacking_max=LARGE))
    monkeypatch.setenv("EVERKEPT_HOME", str(tmp_path))
    monkeypatch.setenv("EVERKEPT_DATABASE_URL", url)
    return url


@pytest.mark.usefixtures("large")
def test_db_index_makes_what_is_missing_and_then_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    index_vectors(json=True)
    assert json.loads(capsys.readouterr().out) == {"made": [{"project": 1, "model": "words", "vectors": LARGE + 1}]}
    index_vectors()
    assert capsys.readouterr().out.strip() == "nothing to do"


def test_a_role_that_does_not_own_the_tables_is_told_so(large: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(large, autocommit=True) as raw:
        if raw.execute("select 1 from pg_roles where rolname = 'everkept_reader'").fetchone() is None:
            raw.execute("create role everkept_reader login")
        raw.execute("grant all on all tables in schema public to everkept_reader")
    monkeypatch.setenv("EVERKEPT_DATABASE_URL", as_role(large, "everkept_reader"))
    with pytest.raises(StoreNotSupported, match="must be owner of table vectors"):
        index_vectors()


def test_a_store_in_a_file_has_no_such_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EVERKEPT_HOME", str(tmp_path))
    monkeypatch.setenv("EVERKEPT_DATABASE_URL", f"sqlite:///{tmp_path / 'everkept.db'}")
    with pytest.raises(InvalidInput, match="needs no index of its vectors"):
        index_vectors()
