"""The database of a storm: a file, or a database of its own on a server of PostgreSQL, thrown away at the end."""

from __future__ import annotations

import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from everkept.errors import StoreNotSupported, StoreUnavailable
from everkept.store.sqlite import choose_driver

if TYPE_CHECKING:
    import psycopg

RESTART_MAX_S: Final = 60.0
_CLOCK_US: Final = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint"
_CLOCK_READINGS: Final = 20
_CUT: Final = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and application_name = %s"""


class ThrownAway(Protocol):
    """One database that nobody else uses."""

    url: str
    where: str
    """As a reader is told."""
    is_server: bool

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What a query of ours finds now, over a connection of its own. Raises StoreUnavailable while it is away."""
        ...

    def contents(self) -> Any:
        """What the checks read: the file, or an open connection of SQLite's driver to a copy."""
        ...

    def ahead_us_min(self) -> int:
        """By how much its clock is ahead of this machine's, at the least."""
        ...

    def deadlocks(self) -> int:
        """As its server counts them since it last started."""
        ...

    def cut(self) -> None:
        """End every connection that writes or reads."""
        ...

    def deafen(self) -> None:
        """End every connection that listens: what is told until there is another is not heard."""
        ...


class ThrownAwayFile:
    is_server = False

    def __init__(self, folder: Path) -> None:
        self.path = folder / "everkept.db"
        self.url = f"sqlite:///{self.path}"
        self.where = "a file"

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        driver = choose_driver().module
        if not self.path.exists():
            raise StoreUnavailable("nobody has made the file yet")
        try:
            raw = driver.connect(f"file:{self.path}?mode=ro", uri=True, timeout=10)
            try:
                found: list[tuple[Any, ...]] = raw.execute(sql).fetchall()
            finally:
                raw.close()
        except driver.OperationalError as error:
            raise StoreUnavailable(str(error)) from error
        return found

    def contents(self) -> Path:
        return self.path

    def ahead_us_min(self) -> int:
        return 0

    def deadlocks(self) -> int:
        return 0

    def cut(self) -> None:
        """A file has no connections that anybody could end."""

    def deafen(self) -> None:
        """Nobody hears of another process's commits over a file."""


class ThrownAwayDatabase:
    is_server = True

    def __init__(self, url: str, where: str) -> None:
        self.url = url
        self.where = where

    def _asked(self) -> psycopg.Connection[Any]:
        import psycopg

        return psycopg.connect(self.url, autocommit=True, application_name="everkept-torture", connect_timeout=5)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        import psycopg

        try:
            with self._asked() as raw:
                return raw.execute(sql).fetchall()
        except psycopg.OperationalError as error:
            raise StoreUnavailable(str(error).strip()) from error

    def contents(self) -> Any:
        from everkept.prove.copied import copied

        return copied(self.url)

    def ahead_us_min(self) -> int:
        """What it says is older than its arrival here: on a busy machine the bound is lower, and never wrong."""
        return max(int(self.rows(_CLOCK_US)[0][0]) - time.time_ns() // 1000 for _ in range(_CLOCK_READINGS))

    def deadlocks(self) -> int:
        ((count,),) = self.rows("select deadlocks from pg_stat_database where datname = current_database()")
        return int(count)

    def cut(self) -> None:
        self._end("everkept")

    def deafen(self) -> None:
        self._end("everkept-listener")

    def _end(self, application: str) -> None:
        import psycopg

        try:
            with self._asked() as raw:
                raw.execute(_CUT, (application,))
        except psycopg.OperationalError as error:
            raise StoreUnavailable(str(error).strip()) from error


def may_make_databases(server_url: str) -> bool:
    """Raises StoreUnavailable where the server does not answer."""
    import psycopg

    try:
        with psycopg.connect(server_url, autocommit=True) as raw:
            row = raw.execute("select rolcreatedb or rolsuper from pg_roles where rolname = current_user").fetchone()
    except psycopg.OperationalError as error:
        raise StoreUnavailable(f"the database is not available: {str(error).strip()}") from error
    return row == (True,)


@contextmanager
def throw_away(server_url: str) -> Iterator[ThrownAwayDatabase]:
    """A database of its own on this server; a schema of its own where the role may make no database.

    Nothing that is there is touched. Raises StoreNotSupported where neither may be made, StoreUnavailable where the
    server does not answer.
    """
    import psycopg

    name = f"everkept_torture_{secrets.token_hex(4)}"
    try:
        with psycopg.connect(server_url, autocommit=True) as raw:
            drop, url, where = _make(raw, server_url, name)
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreNotSupported(
            f"this role may make neither a database nor a schema to throw away: {str(error).strip()}"
        ) from error
    except psycopg.OperationalError as error:
        raise StoreUnavailable(f"the database is not available: {str(error).strip()}") from error
    try:
        yield ThrownAwayDatabase(url, where)
    finally:
        with psycopg.connect(server_url, autocommit=True) as raw:
            raw.execute(drop)


def _make(raw: psycopg.Connection[Any], server_url: str, name: str) -> tuple[str, str, str]:
    """(what drops it, its URL, what it is)."""
    import psycopg

    parts = urlsplit(server_url)
    host = parts.hostname or "its socket"
    try:
        raw.execute(f"create database {name} template template0 encoding 'utf8'")
    except psycopg.errors.InsufficientPrivilege:
        raw.execute(f"create schema {name}")
        asked = [*parse_qsl(parts.query), ("options", f"-csearch_path={name}")]
        url = urlunsplit(parts._replace(query=urlencode(asked, safe="/*")))
        return f"drop schema {name} cascade", url, f"a schema of its own on PostgreSQL at {host}"
    url = urlunsplit(parts._replace(path=f"/{name}"))
    return f"drop database {name} with (force)", url, f"a database of its own on PostgreSQL at {host}"


def restart(command: str, database: ThrownAway) -> None:
    """Run the command that restarts the server, and wait until it answers. Raises RuntimeError where it does not."""
    done = subprocess.run(  # noqa: S602  (a command of whoever started the storm, as they typed it)
        command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        timeout=RESTART_MAX_S, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the command that restarts the database failed: {done.stderr.strip()[-300:]}")
    end = time.monotonic() + RESTART_MAX_S
    while True:
        try:
            database.rows("select 1")
            return
        except StoreUnavailable as error:
            if time.monotonic() > end:
                raise RuntimeError(f"the database did not come back: {error}") from error
            time.sleep(0.1)
