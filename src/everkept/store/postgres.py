"""One PostgreSQL database as a database of the store: its connections, transactions, clock, schema and errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from weakref import WeakKeyDictionary

import psycopg
import structlog
from psycopg.adapt import Loader
from psycopg.pq import TransactionStatus
from psycopg.types.string import StrDumper

from everkept.errors import EverkeptError, StoreFull, StoreMoved, StoreNotSupported, StoreUnavailable
from everkept.ports.clock import Clock, SystemClock
from everkept.store.connection import Connection
from everkept.store.dialect import postgres_dialect
from everkept.store.isolation import projects_reached, reach_statement
from everkept.store.migrate import SCHEMA, SEED
from everkept.store.pgvector import require_pgvector
from everkept.store.postgres_listening import CHANGED, DUE, Listening
from everkept.store.postgres_schema import making_statements, read_revision, require
from everkept.store.reach import Across, Reach, together
from everkept.store.vector_graphs import Graph, make_graphs

log = structlog.get_logger("everkept.store")
OLDEST: Final = 140_000
"""The oldest server that is supported, as it numbers itself."""
WRITING: Final = 7_411_001
"""The advisory lock of whoever writes: shared by those that reach somewhere, whole for what reaches everything. Like
the others it ends with the transaction, so it holds behind a pooler too."""
PREPARING: Final = 7_411_002
UPGRADING: Final = "everkept-upgrade"
"""What a process calls itself that alters the schema: none that keeps memory."""
QUEUE: Final = 7_411_003
SHARED_ROWS: Final = 7_411_004
PROJECTS: Final = 7_411_000_000_000_000
"""The lock of a project is this number and its id."""
STATEMENT_S: Final = 60
PREPARED_FROM: Final = 3
"""How often a writer runs a statement before the server keeps its plan, which halves what it costs. Readers' statements
are planned for the values that they ask for."""
IDLE_S: Final = 3
"""How long a transaction may stand idle before the server ends it: a frozen process must not hold up the others."""
WRITE_S: Final = 20.0
"""How long a writer may hold what it has locked, unless the store is told otherwise."""
WRITE_MIN_S: Final = 2.0
BOUNDED_FROM: Final = 170_000
"""The first server that can hold a transaction to a time (`transaction_timeout`)."""
# All of it holds for the transaction alone, and in one trip: behind a pooler the next one is on another connection.
_SET: Final = (
    f"set local statement_timeout = '{STATEMENT_S}s'",
    f"set local idle_in_transaction_session_timeout = '{IDLE_S}s'",
    "set local random_page_cost = 1.1",  # disks of today seek as well as they read
    "set local jit = off",  # it costs more than any statement of ours
)
_CLOCK: Final = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint"


def _read(reach: Reach) -> str:
    return "; ".join(["begin isolation level repeatable read read only", *_SET, reach_statement([reach]), _CLOCK])


def is_bounded(raw: psycopg.Connection[Any]) -> bool:
    """Whether a transaction can be held to a time there."""
    return raw.info.server_version >= BOUNDED_FROM


def _write(reaches: Collection[Reach], within_s: float | None) -> str:
    """Begin a transaction that reaches so far. Everybody takes locks in this order, so none waits for another in a
    circle."""
    if Across.EVERYTHING in reaches:
        locks = [f"select pg_advisory_xact_lock({WRITING})"]
    elif Across.QUEUE in reaches:
        locks = [f"select pg_advisory_xact_lock_shared({WRITING})", f"select pg_advisory_xact_lock({QUEUE})"]
    elif Across.LEASES in reaches:
        locks = [f"select pg_advisory_xact_lock_shared({WRITING})"]
    else:
        reached = f"select id from ({projects_reached(reaches)}) as reached order by id"
        locks = [
            f"select pg_advisory_xact_lock_shared({WRITING})",
            f"select count(pg_advisory_xact_lock({PROJECTS} + id)) from ({reached}) as in_order",
        ]
    unbounded: list[str] = []
    if within_s is not None:
        # From the last lock on: whoever waits for one holds nobody up. What a role or a server sets runs from the
        # beginning, and only 0 ends it: a later value is not looked at.
        unbounded = ["set local transaction_timeout = 0"]
        locks.append(f"set local transaction_timeout = '{within_s:g}s'")
    return "; ".join(["begin", *_SET, *unbounded, *locks, reach_statement(reaches), _CLOCK])


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


def _is_direct(raw: psycopg.Connection[Any]) -> bool:
    """Whether no pooler is between: one gives out a process number of its own, and the next transaction to another."""
    row = raw.execute("select pg_backend_pid()").fetchone()
    return row is not None and row[0] == raw.info.backend_pid


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
    conflicts: int = 0
    driver: type[psycopg.Connection[Any]] = psycopg.Connection

    def __init__(self, url: str, direct_url: str | None = None, *, write_s: float = WRITE_S) -> None:
        self.dialect = postgres_dialect()
        self._write_s = write_s
        self._url = url
        self._direct_url = direct_url or url
        self.name = without_password(url)
        self._listening: Listening | None = None
        self._clocks: WeakKeyDictionary[psycopg.Connection[Any], _DatabaseClock] = WeakKeyDictionary()

    def connect(self, *, read_only: bool) -> psycopg.Connection[Any]:
        raw = self.driver.connect(self._url, autocommit=True, prepare_threshold=None, application_name="everkept")
        raw.adapters.register_loader("numeric", _NumberLoader)
        raw.adapters.register_dumper(str, _TextDumper)
        if not read_only and _is_direct(raw):
            raw.prepare_threshold = PREPARED_FROM
        return raw

    def connect_once(self, error: Exception) -> Any:
        raise self.translate(error) from error

    def clock(self, raw: Any, clock: Clock) -> Clock:
        """The database's, except in tests, which own the time."""
        if not isinstance(clock, SystemClock):
            return clock
        self._clocks[raw] = ours = _DatabaseClock(clock)
        return ours

    def begin_read(self, raw: Any, reach: Reach = Across.EVERYTHING) -> None:
        self._begin(raw, _read(reach))

    def end_read(self, raw: Any) -> None:
        if raw.info.transaction_status != TransactionStatus.IDLE and not raw.closed:
            raw.execute("rollback")

    def _begin(self, raw: Any, statements: str) -> None:
        cursor = raw.execute(statements, prepare=False)
        while cursor.nextset():
            pass
        if (clock := self._clocks.get(raw)) is not None:
            clock.set(cursor.fetchone()[0])

    def is_usable(self, raw: Any) -> bool:
        return not raw.closed and not raw.broken

    def transactions(self) -> PostgresTransactions:
        return PostgresTransactions(
            lambda raw, reaches: self._begin(raw, _write(reaches, self._write_s if is_bounded(raw) else None))
        )

    def translate(self, error: Exception) -> Exception:
        if isinstance(error, psycopg.Error) and error.sqlstate in _CONFLICTS:
            self.conflicts += 1
        return translate(error)

    @property
    def deaf(self) -> str | None:
        return None if self._listening is None else self._listening.trouble

    def failing(self) -> str | None:
        return None

    def listen(self, *, changed: Callable[[int], None], due: Callable[[int], None]) -> Callable[[], None]:
        self._listening = Listening(self._connect_to_listen, changed=changed, due=due)
        return self._listening.stop

    def _connect_to_listen(self) -> psycopg.Connection[Any]:
        return psycopg.connect(
            self._direct_url, autocommit=True, application_name="everkept-listener", keepalives_idle=30,
            keepalives_interval=10, keepalives_count=3,  # else a server that vanished is listened to for hours
        )  # fmt: skip

    # ---- the schema

    def prepare(self, clock: Clock) -> None:
        """Make the schema in an empty database. An older one is never brought up to date unasked: that is for whoever
        runs the replicas (`postgres_upgrade.py`). Raises StoreNotSupported, StoreUnavailable."""
        if self.make(clock) in (None, SCHEMA):
            return
        try:
            self.require_schema()
        except psycopg.Error as error:
            raise translate(error) from error

    def make(self, clock: Clock) -> int | None:
        """Make the schema in an empty database; the number of the one that was there, None where there was none.

        Raises StoreNotSupported, StoreUnavailable.
        """
        try:
            with self.connect(read_only=False) as raw:
                if raw.info.server_version < OLDEST:
                    raise StoreNotSupported(f"PostgreSQL {raw.info.server_version // 10_000} is too old: 14 is needed")
                # Nobody waits for the lock where there is a schema: `create index concurrently` of whoever upgrades it
                # waits for the snapshot of a statement that waits.
                found = read_revision(raw) or self._make(raw, clock)
                return None if found is None else int(found)
        except psycopg.Error as error:
            raise translate(error) from error

    def _make(self, raw: psycopg.Connection[Any], clock: Clock) -> str | None:
        with raw.transaction():
            raw.execute("select pg_advisory_xact_lock(%s)", (PREPARING,))
            if (found := read_revision(raw)) is None:
                require_pgvector(raw)
                for statement in making_statements():
                    raw.execute(statement)
                self.seed(raw, clock)
        return found

    def find_schema(self) -> int:
        """The schema that is there, 0 for none. Raises StoreNotSupported for a newer one that this program does not run
        on, StoreUnavailable."""
        try:
            with self.connect(read_only=True) as raw:
                found = read_revision(raw)
                if found is not None and int(found) > SCHEMA:
                    require(raw, found)
                return int(found or 0)
        except psycopg.Error as error:
            raise translate(error) from error

    def connect_to_alter(self) -> psycopg.Connection[Any]:
        """Past a pooler, which may end what takes long; as any driver opens one, in no autocommit."""
        return psycopg.connect(self._direct_url, prepare_threshold=None, application_name=UPGRADING)

    def make_graphs(self) -> list[Graph]:
        """Of all projects that lack one (`vector_graphs.py`), which may take hours. Raises StoreNotSupported,
        StoreUnavailable."""
        try:
            with self.connect_to_alter() as raw:
                raw.autocommit = True
                return list(make_graphs(raw))
        except psycopg.Error as error:
            raise translate(error) from error

    def seed(self, raw: psycopg.Connection[Any], clock: Clock) -> None:
        """What an empty store holds."""
        Connection(raw, self.dialect, clock).run(SEED, {"now": clock.now_us()})
        raw.execute("select setval(pg_get_serial_sequence('workspaces', 'id'), 1)")

    def require_schema(self) -> None:
        with self.connect(read_only=True) as raw:
            require(raw, read_revision(raw))

    def is_readable(self) -> bool:
        try:
            self.require_schema()
        except (psycopg.Error, EverkeptError):
            return False
        return True


_TELL = "select pg_notify(channel, note) from unnest(%s::text[], %s::text[]) as t(channel, note)"


class PostgresTransactions:
    """`transactions.Transactions`: one writer at a time in a project, and one that looks for work (`reach.py`).

    Every rule about the order of what is written then holds by itself, whatever process wrote before.
    """

    def __init__(self, begin: Callable[[Any, Collection[Reach]], None]) -> None:
        self._begin = begin
        self._shares = False
        self._spent: Any = None
        """A connection on which no transaction is to begin any more."""

    def begin(self, raw: Any, reaches: Collection[Reach]) -> None:
        self._shares = Across.EVERYTHING in reaches
        self._begin(raw, reaches)

    def mark(self, raw: Any, reaches: Collection[Reach]) -> None:
        self._shares = Across.EVERYTHING in reaches  # going back to a mark lets go of what was locked after it
        raw.execute(f"savepoint call; {reach_statement(reaches)}", prepare=False)

    def together(self, one: Reach, other: Reach) -> bool:
        return together(one, other)

    def share(self, raw: Any) -> None:
        """Taken by whoever has its projects already, and wants nothing else that another could have."""
        if not self._shares:
            raw.execute(f"select pg_advisory_xact_lock({SHARED_ROWS})")
            self._shares = True

    @contextmanager
    def overlap(self, raw: Any) -> Iterator[None]:
        """A server that was sent a part waits for the rest with all locks held, and counts it as no standing still. So
        nothing overlaps where it cannot hold the transaction to a time."""
        if not is_bounded(raw):
            yield
            return
        try:
            with raw.pipeline():
                yield
        except Exception:  # the driver may think that a statement is prepared that came behind the one that failed
            raw.prepare_threshold = None
            self._spent = raw
            raise

    def is_open(self, raw: Any) -> bool:
        if raw.closed:
            return False
        status = raw.info.transaction_status
        return status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    def is_usable(self, raw: Any) -> bool:
        return not raw.closed and not raw.broken and raw is not self._spent

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


_ENDED: Final = ("25P03", "25P04")
"""The server ended a session whose process stood still in a transaction for longer than it may."""
_CONFLICTS: Final = ("40P01", "40001")
"""Deadlock, and a snapshot that could not be kept up: neither should ever be."""
_FORBIDDEN: Final = "42501"
MOVED: Final = "EKMOV"
"""What a memory that has moved answers to every write (`moving/postgres_ground.py`)."""
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
    elif error.sqlstate == MOVED:
        ours = StoreMoved(said)
    elif error.sqlstate in _FULL:
        ours = StoreFull(f"the database could not be written: {said}")
    elif isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) or error.sqlstate in _ENDED:
        ours = StoreUnavailable(f"the database is not available: {said}")
    else:
        return error
    ours.__cause__ = error
    return ours
