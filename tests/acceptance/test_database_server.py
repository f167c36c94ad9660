"""The commands over a store on PostgreSQL, as the role that its administrator made for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from tests.postgres import new_database


def everkept(home: Path, database: str, *words: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("EVERKEPT_")}
    environment = {**plain, "EVERKEPT_HOME": str(home), "EVERKEPT_DATABASE_URL": database}
    command = [sys.executable, "-m", "everkept", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)


def as_role(url: str, role: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{role}@{parts.netloc.rpartition('@')[2]}"))


def test_what_db_sql_prints_lets_a_role_that_owns_nothing_keep_a_memory(tmp_path: Path) -> None:
    administrator = new_database()
    program = as_role(administrator, "everkept")
    with psycopg.connect(administrator, autocommit=True) as raw:
        raw.execute("drop role if exists everkept")
        raw.execute("create role everkept login")
    refused = everkept(tmp_path, program, "add", "I live in Lisbon.", "--subject", "anna")
    assert refused.returncode != 0
    assert "everkept db sql" in refused.stderr
    assert "Traceback" not in refused.stderr

    printed = everkept(tmp_path, program, "db", "sql")
    assert printed.returncode == 0, printed.stderr
    with psycopg.connect(administrator, autocommit=True) as raw:
        raw.execute("drop role everkept")
        raw.execute(printed.stdout)

    added = everkept(tmp_path, program, "add", "I live in Lisbon.", "--subject", "anna")
    assert added.returncode == 0, added.stderr
    worked = everkept(tmp_path, program, "worker", "--until-idle")
    assert worked.returncode == 0, worked.stderr
    ended = everkept(tmp_path, program, "threads", "end", "cli-anna")
    assert ended.returncode == 0, ended.stderr
    assert everkept(tmp_path, program, "worker", "--until-idle").returncode == 0
    facts = everkept(tmp_path, program, "facts", "anna", "--json")
    assert "Lisbon" in facts.stdout, facts.stderr
    upgraded = everkept(tmp_path, program, "db", "upgrade")
    assert (upgraded.returncode, upgraded.stdout.strip()) == (0, "schema 1 is up to date")
    told = json.loads(everkept(tmp_path, program, "status", "--json").stdout)
    assert (told["messages"], told["store"]["library"].split()[0]) == (1, "PostgreSQL")
    with psycopg.connect(administrator) as raw:
        owned = raw.execute(
            "select count(*) from pg_class c join pg_roles r on r.oid = c.relowner where r.rolname = 'everkept'"
        ).fetchone()
    assert owned == (0,)


def test_a_server_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    done = everkept(tmp_path, "postgresql://nobody@127.0.0.1:1/nothing", "status")
    assert done.returncode != 0
    assert "the database is not available" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_for_a_file_alone_says_so(tmp_path: Path) -> None:
    done = everkept(tmp_path, "postgresql://nobody@127.0.0.1:1/nothing", "backup", str(tmp_path / "b.db"))
    assert done.returncode != 0
    assert "PostgreSQL has tools of its own" in done.stderr
