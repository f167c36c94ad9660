"""One PostgreSQL database as a database of the store: its connections, transactions, clock, schema and errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from weakref import WeakKeyDictionary

import psycopg
import structlog
from psycopg.adapt import Loader
from psycopg.pq import TransactionStatus
from psycopg.types.string import StrDumper

from everkept.errors import EverkeptError, StoreFull, StoreNotSupported, StoreUnavailable
from everkept.ports.clock import Clock, SystemClock
from everkept.store.connection import Connection
from everkept.store.dialect import postgres_dialect
from everkept.store.migrate import SCHEMA, SEED, revision, schema_statements
from everkept.store.postgres_listening import CHANGED, DUE, Listening

log = structlog.get_logger("everkept.store")
OLDEST: Final = 140_000
"""The oldest server that is supported, as it numbers itself."""
WRITING: Final = 7_411_001
"""The advisory lock of whoever writes. It ends with the transaction, so it holds behind a pooler too."""
PREPARING: Final = 7_411_002
STATEMENT_S: Final = 60
IDLE_S: Final = 60
"""How long a transaction may stand idle before the server ends it: a frozen process must not hold up the others."""
# All of it holds for the transaction alone, and in one trip: behind a pooler the next one is on another connection.
_SET: Final = f"""
set local statement_timeout = '{STATEMENT_S}s';
set local idle_in_transaction_session_timeout = '{IDLE_S}s';
set local jit = off;"""  # it costs more than any statement of ours
_CLOCK: Final = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint"
_READ: Final = f"begin isolation level repeatable read read only; {_SET} {_CLOCK}"
_WRITE: Final = f"begin; {_SET} select pg_advisory_xact_lock({WRITING}); {_CLOCK}"


class _NumberLoader(Loader):
    """`sum` and the like give numbers of any length; ours are whole, or as good as a float."""

    def load(self, data: Any) -> int | float:
        said = bytes(data).decode()
        return float(said) if "." in said or "e" in said.lower() or said == "NaN" else int(said)


class _TextDumper(StrDumper):
    """PostgreSQL keeps no NUL in a text: it is kept as its picture, U+2400."""

    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\x00", "\u2400") if "\x00" in obj else obj)


class _DatabaseClock:
    """The database's wall clock, read as a transaction begins; from there this machine's monotonic one goes on."""

    def __init__(self, local: Clock) -> None:
        self._local = local
        self._read_at_s = 0.0
        self._wall_us = 0

    def set(self, wall_us: int) -> None:
        self._wall_us, self._read_at_s = wall_us, time.monotonic()

    def now_us(self) -> int:
        return self._wall_us + int((time.monotonic() - self._read_at_s) * 1e6)

    def monotonic_s(self) -> float:
        return self._local.monotonic_s()

    def random(self) -> float:
        return self._local.random()


def without_password(url: str) -> str:
    """The URL as it may be shown."""
    shown = urlsplit(url)
    place = shown.netloc.rpartition("@")
    user = place[0].partition(":")[0]
    asked = [(k, "***" if k == "password" else v) for k, v in parse_qsl(shown.query)]
    return urlunsplit(
        shown._replace(netloc=f"{user}@{place[2]}" if user else place[2], query=urlencode(asked, safe="/*"))
    )


class PostgresDatabase:
    """`database.Database`. The URLs are libpq ones, `postgresql://…`; `direct_url` passes a pooler by."""

    path: Path | None = None
    reads_wait = True
    degraded: str | None = None
    driver: type[psycopg.Connection[Any]] = psycopg.Connection

    def __init__(self, url: str, direct_url: str | None = None) -> None:
        self.dialect = postgres_dialect()
        self._url = url
        self._direct_url = direct_url or url
        self.name = without_password(url)
        self._clocks: WeakKeyDictionary[psycopg.Connection[Any], _DatabaseClock] = WeakKeyDictionary()

    def connect(self, *, read_only: bool) -> psycopg.Connection[Any]:
        raw = self.driver.connect(self._url, autocommit=True, prepare_threshold=None, application_name="everkept")
        raw.adapters.register_loader("numeric", _NumberLoader)
        raw.adapters.register_dumper(str, _TextDumper)
        return raw

    def connect_once(self, error: Exception) -> Any:
        raise self.translate(error) from error

    def clock(self, raw: Any, clock: Clock) -> Clock:
        """The database's, except in tests, which own the time."""
        if not isinstance(clock, SystemClock):
            return clock
        self._clocks[raw] = ours = _DatabaseClock(clock)
        return ours

    def begin_read(self, raw: Any) -> None:
        self._begin(raw, _READ)

    def end_read(self, raw: Any) -> None:
        if raw.info.transaction_status != TransactionStatus.IDLE and not raw.closed:
            raw.execute("rollback")

    def _begin(self, raw: Any, statements: str) -> None:
        cursor = raw.execute(statements)
        while cursor.nextset():
            pass
        if (clock := self._clocks.get(raw)) is not None:
            clock.set(cursor.fetchone()[0])

    def is_usable(self, raw: Any) -> bool:
        return not raw.closed and not raw.broken

    def transactions(self) -> PostgresTransactions:
        return PostgresTransactions(lambda raw: self._begin(raw, _WRITE))

    def translate(self, error: Exception) -> Exception:
        return translate(error)

    def failing(self) -> str | None:
        return None

    def listen(self, *, changed: Callable[[int], None], due: Callable[[int], None]) -> Callable[[], None]:
        return Listening(self._connect_to_listen, changed=changed, due=due).stop

    def _connect_to_listen(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self._direct_url, autocommit=True, application_name="everkept-listener")

    # ---- the schema

    def prepare(self, clock: Clock) -> None:
        """Make the schema in an empty database. An older one is never brought up to date unasked: that is for whoever
        runs the replicas. Raises StoreNotSupported, StoreUnavailable."""
        try:
            with self.connect(read_only=False) as raw:
                self._prepare(raw, clock)
        except EverkeptError:
            raise
        except Exception as error:
            raise translate(error) from error

    def _prepare(self, raw: psycopg.Connection[Any], clock: Clock) -> None:
        if raw.info.server_version < OLDEST:
            raise StoreNotSupported(f"PostgreSQL {raw.info.server_version // 10_000} is too old: 14 is needed")
        raw.execute("begin")
        raw.execute("select pg_advisory_xact_lock(%s)", (PREPARING,))
        found = read_revision(raw)
        if found is None:
            for statement in making_statements():
                raw.execute(statement)
            self.seed(raw, clock)
        raw.execute("commit")
        if found is not None:
            _require(found)

    def seed(self, raw: psycopg.Connection[Any], clock: Clock) -> None:
        """What an empty store holds."""
        Connection(raw, self.dialect, clock).run(SEED, {"now": clock.now_us()})
        raw.execute("select setval(pg_get_serial_sequence('workspaces', 'id'), 1)")

    def require_schema(self) -> None:
        with self.connect(read_only=True) as raw:
            _require(read_revision(raw))

    def is_readable(self) -> bool:
        try:
            self.require_schema()
        except (psycopg.Error, EverkeptError):
            return False
        return True


def making_statements() -> list[str]:
    """What makes the schema in an empty database, but for `SEED`."""
    return [
        *schema_statements(postgres_dialect()),
        "create table alembic_version (version_num varchar(32) not null,"
        " constraint alembic_version_pkc primary key (version_num))",
        f"insert into alembic_version(version_num) values('{revision(SCHEMA)}')",
    ]


def administrators_statements(role: str = "everkept") -> list[str]:
    """What an administrator runs in an empty database for a program that connects as `role` and owns nothing."""
    return [
        f"create role {role} login",
        *making_statements(),
        "insert into workspaces(id, name, created_at)"
        " values(1, 'default', (extract(epoch from now()) * 1000000)::bigint)",
        "select setval(pg_get_serial_sequence('workspaces', 'id'), 1)",
        f"grant select, insert, update, delete on all tables in schema public to {role}",
        f"revoke insert, update, delete on alembic_version from {role}",
        f"grant usage, select, update on all sequences in schema public to {role}",
    ]


def read_revision(raw: Any) -> str | None:
    """The migration that the database stands at; None where there is no schema."""
    if raw.execute("select to_regclass('alembic_version')").fetchone()[0] is None:
        return None
    row = raw.execute("select version_num from alembic_version").fetchone()
    return None if row is None else str(row[0])


def _require(found: str | None) -> None:
    """Raises StoreNotSupported for another schema than this program's."""
    needed = revision(SCHEMA)
    if found is None:
        raise StoreNotSupported(
            "the database has no schema of Everkept yet: the first `everkept serve` makes it", known=needed
        )
    if found != needed:
        mend = "use a newer Everkept" if found > needed else "run `everkept db upgrade`"
        raise StoreNotSupported(
            f"the database has schema {found}, and this Everkept needs {needed}: {mend}", found=found, known=needed
        )


_TELL = "select pg_notify(channel, note) from unnest(%s::text[], %s::text[]) as t(channel, note)"


class PostgresTransactions:
    """`transactions.Transactions`: one writer at a time in the whole database, as in a file.

    Every rule about the order of what is written then holds by itself, whatever process wrote before.
    """

    def __init__(self, begin: Callable[[Any], None]) -> None:
        self._begin = begin

    def begin(self, raw: Any) -> None:
        self._begin(raw)

    def is_open(self, raw: Any) -> bool:
        if raw.closed:
            return False
        status = raw.info.transaction_status
        return status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    def is_usable(self, raw: Any) -> bool:
        return not raw.closed and not raw.broken

    def tell(self, raw: Any, due: Sequence[int], changed: Sequence[int]) -> None:
        notes = [(CHANGED, str(project)) for project in sorted(set(changed))]
        if due:
            notes.append((DUE, str(min(due))))
        if notes:
            raw.execute(_TELL, ([channel for channel, _ in notes], [note for _, note in notes]))

    def committed(self) -> None:
        return None

    def pause_s(self) -> float:
        return 0.0

    def tidy(self, raw: Any, *, everything: bool = False) -> None:
        return None


_FORBIDDEN: Final = "42501"
_FULL: Final = ("53100", "53200", "25006")
"""Disk full, out of memory, read-only transaction."""


def translate(error: Exception) -> Exception:
    """psycopg's error as one of ours; ours and programming errors come back as they are."""
    if not isinstance(error, psycopg.Error):
        return error
    said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if error.sqlstate == _FORBIDDEN:
        ours: Exception = StoreNotSupported(
            f"the database refuses this role: {said}; `everkept db sql` prints what an administrator runs"
        )
    elif error.sqlstate in _FULL:
        ours = StoreFull(f"the database could not be written: {said}")
    elif isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        ours = StoreUnavailable(f"the database is not available: {said}")
    else:
        return error
    ours.__cause__ = error
    return ours
