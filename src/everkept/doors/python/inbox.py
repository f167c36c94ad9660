"""`Inbox`: a change that is given twice has its effect once, in a database of your own.

The effect and a mark that it happened are one transaction there. What was marked is not done again, whatever was
acknowledged, and whoever gave it again: a consumer after a crash, a replay, a webhook that was sent twice.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from everkept.api.views import Change
from everkept.errors import InvalidInput

TABLE: Final = "everkept_inbox"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


class Inbox:
    """Over a DB-API connection of yours to SQLite or PostgreSQL, which opens its transactions itself (no autocommit).

    `source` tells apart what comes from different memories or under different names.
    """

    def __init__(self, connection: Any, *, source: str = "everkept", table: str = TABLE) -> None:
        """Makes the table where it is not there. Raises InvalidInput for an autocommit connection."""
        if _NAME.fullmatch(table) is None:
            raise InvalidInput("table is a plain name", field="table")
        if getattr(connection, "autocommit", False) is True:
            raise InvalidInput("effect and mark must be one transaction: turn autocommit off", field="connection")
        self._connection = connection
        self._source = source
        self._table = table
        self._mark = "%s" if _paramstyle(connection) in ("format", "pyformat") else "?"
        self._run(
            f"create table if not exists {table}(source text not null, id text not null, "
            "at timestamp default current_timestamp, primary key (source, id))"
        )
        connection.commit()

    @contextmanager
    def once(self, change: Change | str) -> Iterator[bool]:
        """Whether it is new: then do what it asks for over the same connection. Committed together at the end.

        `change`: what `memory.follow` gave, or the `webhook-id` of a request. What the block raises takes both back.
        """
        if getattr(self._connection, "autocommit", False) is True:
            raise InvalidInput("effect and mark must be one transaction: turn autocommit off", field="connection")
        try:
            added = self._run(
                f"insert into {self._table}(source, id) values({self._mark}, {self._mark}) on conflict do nothing",
                self._source, change if isinstance(change, str) else change.id,
            )  # fmt: skip
            if getattr(self._connection, "in_transaction", True) is False:
                raise InvalidInput("effect and mark must be one transaction: turn autocommit off", field="connection")
            yield added == 1
        except BaseException:
            self._connection.rollback()
            raise
        self._connection.commit()

    def _run(self, sql: str, *values: str) -> int:
        cursor = self._connection.cursor()
        try:
            cursor.execute(sql, values)
            return int(cursor.rowcount)
        finally:
            cursor.close()


def _paramstyle(connection: Any) -> str:
    """Of the driver that made the connection. PEP 249 puts it into the driver's module."""
    for kind in type(connection).__mro__:
        driver = sys.modules.get(kind.__module__.partition(".")[0])
        if style := getattr(driver, "paramstyle", None):
            return str(style)
    return "qmark"
