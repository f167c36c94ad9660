"""The outbox: domain changes with a dense sequence per project, and the cursors of those who follow them (G11)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from sqlalchemy import text

from everkept.errors import CursorExpired, LeaseLost, NotFound
from everkept.store.connection import Connection


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


def record_changes(conn: Connection, project: int, changes: Sequence[NewChange]) -> None:
    """The last statements of a commit: a sequence taken here is visible with its neighbours or not at all."""
    if not changes:
        return
    last = conn.scalar(_TAKE, {"project": project, "n": len(changes)})
    now = conn.now()
    first = last - len(changes) + 1
    conn.many(_ADD, [
        {"project": project, "seq": first + i, "kind": c.kind, "subject": c.subject, "stream": c.stream, "ref": c.ref,
         "data": json.dumps(c.data, ensure_ascii=False), "at": now}
        for i, c in enumerate(changes)
    ])  # fmt: skip


_HEAD = text("select change_seq from projects where id = :project")
_FLOOR = text("select min(seq) from changes where project_id = :project")
_LIST = text("""
select c.seq, c.kind, s.name, t.name, c.ref, c.at, c.data from changes c
left join subjects s on s.id = c.subject_id left join streams t on t.id = c.stream_id
where c.project_id = :project and c.seq > :after order by c.seq limit :limit""")
_CURSOR = text("select cursor, owner, lease_until, fence from consumers where project_id = :project and name = :name")
_CONSUMER = text("""
insert into consumers(project_id, name, created_at) values(:project, :name, :now) on conflict do nothing""")
_ACK = text("""
update consumers set cursor = :upto, acked_at = :now where project_id = :project and name = :name and cursor < :upto
  and (:fence is null or (fence = :fence and lease_until > :now))""")
_LEASE = text("""
update consumers set owner = :owner, lease_until = :until, fence = fence + 1
where project_id = :project and name = :name and (lease_until is null or lease_until <= :now or owner = :owner)
returning fence""")


def read_changes(conn: Connection, project: int, after: int, limit: int) -> tuple[list[tuple[Any, ...]], int]:
    """(rows after `after`, head of the sequence).

    Raises CursorExpired where rows in between were pruned, NotFound where the sequence has not come so far.
    """
    head = int(conn.scalar(_HEAD, {"project": project}) or 0)
    if after > head:
        raise NotFound(f"there is no change {after}; the newest is {head}", after=after, head=head)
    floor = conn.scalar(_FLOOR, {"project": project})
    oldest = head + 1 if floor is None else int(floor)
    if after + 1 < oldest:
        raise CursorExpired(
            f"changes up to {oldest - 1} are no longer kept; start from a snapshot", oldest=oldest, after=after
        )
    return conn.rows(_LIST, {"project": project, "after": after, "limit": limit}), head


def find_cursor(conn: Connection, project: int, name: str) -> int:
    """How far a consumer has acknowledged; one never seen is at 0."""
    row = conn.first(_CURSOR, {"project": project, "name": name})
    return 0 if row is None else int(row[0])


def lease_consumer(conn: Connection, project: int, name: str, owner: str, lease_s: float) -> int | None:
    """The fence of a lease on the consumer, or None where somebody else holds it."""
    now = conn.now()
    conn.run(_CONSUMER, {"project": project, "name": name, "now": now})
    fence = conn.scalar(
        _LEASE, {"project": project, "name": name, "owner": owner, "now": now, "until": now + int(lease_s * 1e6)}
    )
    return None if fence is None else int(fence)


def acknowledge(conn: Connection, project: int, name: str, upto: int, fence: int | None = None) -> int:
    """Move the cursor forward to `upto`, never back; the cursor afterwards. With a fence, only its holder may."""
    now = conn.now()
    head = int(conn.scalar(_HEAD, {"project": project}) or 0)
    if upto > head or upto < 0:
        raise NotFound(f"there is no change {upto}; the newest is {head}", up_to=upto, head=head)
    conn.run(_CONSUMER, {"project": project, "name": name, "now": now})
    moved = conn.run(_ACK, {"project": project, "name": name, "upto": upto, "now": now, "fence": fence})
    row = conn.first(_CURSOR, {"project": project, "name": name})
    assert row is not None
    if not moved and fence is not None and row[0] < upto:
        raise LeaseLost("another process holds this consumer now; its cursor did not move", consumer=name)
    return int(row[0])


_PROJECTS = text("select id from projects order by id")
_OLDEST = text("select seq, at from changes where project_id = :project order by seq limit :limit")
_PRUNE = text("delete from changes where project_id = :project and seq <= :through")


def prune_changes(conn: Connection, keep_s: float, limit: int = 500) -> int:
    """Delete the oldest changes past their retention, at most `limit`: up to the first one of a project that is kept.

    Never from the middle: a clock that was set back would leave a gap that no cursor notices.
    """
    before = conn.now() - int(keep_s * 1e6)
    gone = 0
    for (project,) in conn.rows(_PROJECTS):
        if gone >= limit:
            break
        oldest = conn.rows(_OLDEST, {"project": project, "limit": limit - gone})
        past = [seq for seq, _ in takewhile(lambda row: row[1] < before, oldest)]
        if past:
            gone += conn.run(_PRUNE, {"project": project, "through": past[-1]})
    return gone
