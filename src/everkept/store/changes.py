"""The outbox: domain changes with a dense sequence per project, and the cursors of those who follow them (G11)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final

from sqlalchemy import text

from everkept.domain.changes import ERASED
from everkept.errors import Conflict, CursorExpired, LeaseLost, NotFound
from everkept.store.connection import Connection, Row
from everkept.store.merging import require_unmerged

SCAN_MAX: Final = 10_000
"""Changes that one filtered read looks through."""
CONSUMERS_MAX: Final = 1_000
"""Of one project, beside its wiki."""
NOBODY: Final = 0
"""A subject that was never seen: nothing is about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """Which changes are asked for. What is about an erase is given for every subject."""

    kinds: Sequence[str] | None = None
    subject: int | None = None
    """Its number; None: everybody."""


EVERYTHING: Final = Only()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChange:
    kind: str
    ref: str
    subject: int | None = None
    stream: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


_TAKE = text("update projects set change_seq = change_seq + :n where id = :project returning change_seq")
_ADD = text("""
insert into changes(project_id, seq, kind, subject_id, stream_id, ref, data, at)
values(:project, :seq, :kind, :subject, :stream, :ref, :data, :at)""")


_SPELL: Final = json.JSONEncoder(ensure_ascii=False).encode


def record_changes(conn: Connection, project: int, changes: Sequence[NewChange]) -> int:
    """The last statements of a commit: a sequence taken here is visible with its neighbours or not at all.

    The number of the last of them; 0 for none.
    """
    if not changes:
        return 0
    last = conn.scalar(_TAKE, {"project": project, "n": len(changes)})
    now = conn.now()
    first = last - len(changes) + 1
    conn.many(_ADD, [
        {"project": project, "seq": first + i, "kind": c.kind, "subject": c.subject, "stream": c.stream, "ref": c.ref,
         "data": _SPELL(c.data), "at": now}
        for i, c in enumerate(changes)
    ])  # fmt: skip
    conn.ring(project)
    return int(last)


_HEAD = text("select change_seq from projects where id = :project")
_FLOOR = text("select min(seq) from changes where project_id = :project")
# While a merge runs, what it brought may still be about the source's subject that will be joined to the asked one.
_LIST = text("""
select c.seq, c.kind, s.name, t.name, c.ref, c.at, c.data,
  coalesce(c.born, c.project_id || '_' || c.seq) || '_' || c.at from changes c
left join subjects s on s.id = c.subject_id left join streams t on t.id = c.stream_id
where c.project_id = :project and c.seq > :after and c.seq <= :through
  and (:kinds is null or c.kind in (select value from words(:kinds)))
  and (:subject is null or c.subject_id = :subject or c.kind = :erased or s.merged_into = :subject
    or (s.project_id <> c.project_id and s.name = (select n.name from subjects n where n.id = :subject)))
order by c.seq limit :limit""")
_CURSOR = text("select cursor, owner, lease_until, fence from consumers where project_id = :project and name = :name")
_CONSUMER = text("""
insert into consumers(project_id, name, fence, created_at)
select p.id, :name, p.last_fence, :now from projects p where p.id = :project on conflict do nothing""")
_COUNT_CONSUMERS = text("select count(*) from consumers where project_id = :project and name <> 'wiki'")
_ACK = text("""
update consumers set cursor = :upto, acked_at = :now where project_id = :project and name = :name and cursor < :upto
  and (:fence is null or (fence = :fence and lease_until > :now))""")
_LEASE = text("""
update consumers set owner = :owner, lease_until = :until, fence = fence + 1,
  handed_out = cursor
where project_id = :project and name = :name and (lease_until is null or lease_until <= :now or owner = :owner)
returning fence""")


def read_changes(
    conn: Connection, project: int, after: int, limit: int, only: Only = EVERYTHING
) -> tuple[list[Row], int]:
    """(rows after `after`, head of the sequence). `covered` says how far that was looked through.

    A row: (number, kind, subject, thread, what it is about, when in µs, JSON, what names it and nothing else for ever).
    The number is the project's: a merge gives others, and a restored backup gives them again.

    Raises CursorExpired where rows in between were pruned, NotFound where the sequence has not come so far.
    """
    head = require_kept(conn, project, after)
    rows = conn.rows(_LIST, {
        "project": project, "after": after, "limit": limit, "through": _end_of_scan(after, head), "erased": ERASED,
        "kinds": None if only.kinds is None else json.dumps(list(only.kinds)), "subject": only.subject,
    })  # fmt: skip
    return rows, head


def covered(rows: Sequence[Row], *, after: int, head: int, limit: int) -> int:
    """Up to where a read looked: what was filtered out counts as covered, and a cursor may move past it."""
    return int(rows[-1][0]) if len(rows) == limit else _end_of_scan(after, head)


def _end_of_scan(after: int, head: int) -> int:
    return min(head, after + SCAN_MAX)


def require_kept(conn: Connection, project: int, after: int) -> int:
    """The head of the sequence, if one can go on after `after`. Raises CursorExpired, NotFound."""
    head = find_head(conn, project)
    if after > head:
        raise NotFound(f"there is no change {after}; the newest is {head}", after=after, head=head)
    oldest = find_oldest(conn, project)
    if after + 1 < oldest:
        raise CursorExpired(
            f"changes up to {oldest - 1} are no longer kept; start from a snapshot", oldest=oldest, after=after
        )
    return head


def find_head(conn: Connection, project: int) -> int:
    """The newest change of the project; 0 where there is none."""
    return int(conn.scalar(_HEAD, {"project": project}) or 0)


def find_oldest(conn: Connection, project: int) -> int:
    """The oldest change that is kept; the number of the next one where none is."""
    floor = conn.scalar(_FLOOR, {"project": project})
    return find_head(conn, project) + 1 if floor is None else int(floor)


def find_cursor(conn: Connection, project: int, name: str) -> int:
    """How far a consumer has acknowledged; one never seen is at 0."""
    row = conn.first(_CURSOR, {"project": project, "name": name})
    return 0 if row is None else int(row[0])


def ensure_consumer(conn: Connection, project: int, name: str) -> None:
    """One that is new has a fence above that of any that was removed. Raises Conflict where there are too many."""
    if not conn.run(_CONSUMER, {"project": project, "name": name, "now": conn.now()}):
        return
    require_unmerged(conn, project)
    if conn.scalar(_COUNT_CONSUMERS, {"project": project}) > CONSUMERS_MAX:
        raise Conflict(
            f"a project has at most {CONSUMERS_MAX:,} consumers and webhooks; remove one that nobody needs",
            consumer=name, limit=CONSUMERS_MAX,
        )  # fmt: skip


def lease_consumer(conn: Connection, project: int, name: str, owner: str, lease_s: float) -> int | None:
    """The fence of a lease on the consumer, or None where somebody else holds it."""
    now = conn.now()
    ensure_consumer(conn, project, name)
    fence = conn.scalar(
        _LEASE, {"project": project, "name": name, "owner": owner, "now": now, "until": now + int(lease_s * 1e6)}
    )
    return None if fence is None else int(fence)


def acknowledge(conn: Connection, project: int, name: str, upto: int, fence: int | None = None) -> int:
    """Move the cursor forward to `upto`, never back; the cursor afterwards. With a fence, only its holder may."""
    now = conn.now()
    head = find_head(conn, project)
    if upto > head or upto < 0:
        raise NotFound(f"there is no change {upto}; the newest is {head}", up_to=upto, head=head)
    ensure_consumer(conn, project, name)
    moved = conn.run(_ACK, {"project": project, "name": name, "upto": upto, "now": now, "fence": fence})
    row = conn.first(_CURSOR, {"project": project, "name": name})
    assert row is not None
    if not moved and fence is not None and row[0] < upto:
        raise LeaseLost("another process holds this consumer now; its cursor did not move", consumer=name)
    return int(row[0])


_PAST = text("""
select p.id from projects p
where (select c.at from changes c where c.project_id = p.id order by c.seq limit 1) < :before
order by p.id limit :limit""")
_OLDEST = text("select seq, at from changes where project_id = :project order by seq limit :limit")
_PRUNE = text("delete from changes where project_id = :project and seq <= :through")


def prune_changes(conn: Connection, keep_s: float, limit: int = 500) -> int:
    """Delete the oldest changes past their retention, at most `limit`: up to the first one of a project that is kept.

    Never from the middle: a clock that was set back would leave a gap that no cursor notices.
    """
    before = conn.now() - int(keep_s * 1e6)
    gone = 0
    for (project,) in conn.rows(_PAST, {"before": before, "limit": limit}):
        if gone >= limit:
            break
        oldest = conn.rows(_OLDEST, {"project": project, "limit": limit - gone})
        past = [seq for seq, _ in takewhile(lambda row: row[1] < before, oldest)]
        gone += conn.run(_PRUNE, {"project": project, "through": past[-1]})
    return gone
