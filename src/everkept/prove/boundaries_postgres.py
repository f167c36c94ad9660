"""The instants of a process whose store is a PostgreSQL database; what it leaves there are its commits.

Only for a process that was forked to die: it changes the connections that the store opens for good.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from everkept.prove.boundaries import Boundaries
from everkept.store.postgres import PostgresDatabase

_READS_ONLY = re.compile(r"\s*begin\b[^;]*\bread only\b")


def install_postgres(boundaries: Boundaries) -> Callable[[], int]:
    """From here on every connection of a store counts; how many commits there were, to be asked at any time."""
    commits = 0

    class Counting(psycopg.Cursor[Any]):
        def execute(self, query: Any, params: Any = None, **kw: Any) -> Any:
            if _READS_ONLY.match(str(query)):
                self.connection.counts = False  # type: ignore[attr-defined]
            return self._passed(str(query), lambda: super(Counting, self).execute(query, params, **kw))

        def executemany(self, query: Any, params_seq: Iterable[Any], **kw: Any) -> None:
            self._passed(str(query), lambda: super(Counting, self).executemany(query, params_seq, **kw))

        def _passed(self, sql: str, execute: Callable[[], Any]) -> Any:
            nonlocal commits
            connection: Any = self.connection
            if not connection.counts:
                return execute()
            done = boundaries.run(connection, sql, execute)
            commits += not connection.in_transaction
            return done

    class Connection(psycopg.Connection[Any]):
        counts = True

        def __init__(self, *args: Any, **kw: Any) -> None:
            super().__init__(*args, **kw)
            self.cursor_factory = Counting

        @property
        def in_transaction(self) -> bool:
            return self.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    PostgresDatabase.driver = Connection
    return lambda: commits
