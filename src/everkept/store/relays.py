"""What a relay of the whole outbox reads and writes: a consumer of one name in every project, each under its lease."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import text

from everkept.store.changes import (
    acknowledge,
    ensure_consumer,
    find_cursor,
    find_oldest,
    lease_consumer,
    read_changes,
)
from everkept.store.connection import Connection, Row
from everkept.store.consumers import hold_consumer, replay_consumer
from everkept.store.merging import is_merged
from everkept.store.project_names import shown

BATCH: Final = 100
"""Changes of a project that are relayed in its turn."""
PROJECTS_MAX: Final = 100
"""Projects that one look finds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A project in which something waits."""

    id: int
    name: str
    """As everybody names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpublished:
    """How far a relay is behind."""

    projects: int
    changes: int
    """At most: of a project that was never relayed, those are counted too that are no longer kept."""
    oldest_s: float | None
    """For how long the oldest of them has waited that is still kept."""


_DUE = text(f"""
select p.id, {shown("p")} from projects p
  left join consumers c on c.project_id = p.id and c.name = :consumer
where p.id > :after and p.erased_at is null and p.merged_into is null and coalesce(c.cursor, 0) < p.change_seq
  and (c.lease_until is null or c.lease_until <= :now or c.owner = :owner)
order by p.id limit :limit""")
_UNPUBLISHED = text("""
select count(*), coalesce(sum(p.change_seq - coalesce(c.cursor, 0)), 0), min((
  select x.at from changes x where x.project_id = p.id and x.seq > coalesce(c.cursor, 0) order by x.seq limit 1))
from projects p left join consumers c on c.project_id = p.id and c.name = :consumer
where p.erased_at is null and p.merged_into is null and coalesce(c.cursor, 0) < p.change_seq""")
_KNOWN = text("select 1 from consumers where project_id = :project and name = :consumer")


def due_relays(conn: Connection, consumer: str, owner: str, after: int = 0) -> list[Waiting]:
    """Projects above the number `after` with changes to relay that nobody else holds, at most `PROJECTS_MAX`."""
    at = {"consumer": consumer, "owner": owner, "after": after, "now": conn.now(), "limit": PROJECTS_MAX}
    return [Waiting(id=row[0], name=row[1]) for row in conn.rows(_DUE, at)]


def count_unrelayed(conn: Connection, consumer: str) -> Unpublished:
    """Of all projects."""
    row = conn.first(_UNPUBLISHED, {"consumer": consumer})
    assert row is not None
    projects, changes, oldest_at = row
    oldest_s = None if oldest_at is None else max(0.0, (conn.now() - oldest_at) / 1e6)
    return Unpublished(projects=projects, changes=int(changes), oldest_s=oldest_s)


def take_relay(conn: Connection, project: int, consumer: str, owner: str, lease_s: float) -> int | None:
    """The fence of a lease, or None where somebody else holds it. A new consumer begins with the oldest change kept.

    Raises Conflict where the project was merged, or has too many consumers.
    """
    if conn.first(_KNOWN, {"project": project, "consumer": consumer}) is None:
        ensure_consumer(conn, project, consumer)
        replay_consumer(conn, project, consumer, find_oldest(conn, project) - 1)
    return lease_consumer(conn, project, consumer, owner, lease_s)


def next_changes(conn: Connection, project: int, consumer: str) -> list[Row]:
    """As `read_changes` gives them, after the cursor. While its project is merged, what waits goes there.

    Raises CursorExpired where some of them are no longer kept.
    """
    if is_merged(conn, project):
        return []
    return read_changes(conn, project, find_cursor(conn, project, consumer), BATCH)[0]


def settle_relay(conn: Connection, project: int, consumer: str, owner: str, fence: int, upto: int | None) -> None:
    """All up to there has arrived (None: nothing has), and another process may go on. Raises LeaseLost."""
    if upto is not None:
        acknowledge(conn, project, consumer, upto, fence)
    hold_consumer(conn, project, consumer, owner, 0.0, fence)
