"""What a database server says of itself where the store is on one: its connections, and transactions that it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import text

from everkept.store.connection import Connection
from everkept.store.store import READERS

EACH_MAX: Final = READERS + 2
"""Connections that one process opens at most: its readers, its writer and its listener."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    """Of the server at this moment."""

    connections: int
    """Of everybody."""
    connections_max: int
    """That it takes from whoever is no administrator."""
    ours: int
    """Of processes of this program on this database."""
    processes: int
    """Of this program, on this database: each has one listener."""
    deadlocks: int
    """In this database, since the server began to count."""

    @property
    def could_be(self) -> int:
        """Connections, once each of our processes has opened all that it may and nobody else any more."""
        return self.connections - self.ours + max(self.ours, self.processes * EACH_MAX)


# What other roles' connections are is hidden from an ordinary one, but not that they are.
_SERVER = text("""
select count(*),
  current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
    - coalesce(current_setting('reserved_connections', true), '0')::int,
  count(*) filter (where datname = current_database() and application_name like 'everkept%'),
  count(*) filter (where datname = current_database() and application_name = 'everkept-listener'),
  (select deadlocks from pg_stat_database where datname = current_database())
from pg_stat_activity where datid is not null and coalesce(backend_type, 'client backend') = 'client backend'""")


def read_server(conn: Connection) -> ServerRow | None:
    """None where the store is a file."""
    row = None if conn.dialect.name == "sqlite" else conn.first(_SERVER)
    if row is None:
        return None
    connections, most, ours, processes, deadlocks = row
    return ServerRow(
        connections=connections, connections_max=most, ours=ours, processes=processes, deadlocks=deadlocks or 0
    )
