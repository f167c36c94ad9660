"""Handoffs: where a session left off. One is open per worktree: offered, acknowledged, replaced or expired (G11)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from sqlalchemy import text

from everkept.domain.digest.values import OpenEnd
from everkept.domain.ids import row_id
from everkept.errors import NotFound
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection

KEPT_US: Final = 30 * 86_400 * 1_000_000
"""A handoff that nobody took up for so long after it was known has expired: the work has moved on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewHandoff:
    project: int
    stream: int
    worktree: str | None
    branch: str | None
    title: str
    body: str
    open_ends: Sequence[OpenEnd]
    left_at: int
    """When its session was last heard: a later session's handoff is not replaced by an earlier one's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffRow:
    id: int
    project: int
    stream: int
    agent: str
    native: str
    worktree: str | None
    branch: str | None
    title: str
    body: str
    open_ends: tuple[OpenEnd, ...]
    state: str
    replaced_by: int | None
    acknowledged_by: str | None
    created_at: int
    expires_at: int
    settled_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The handoff that is offered, why it is this one, and which others are open (the newest `OTHERS_MAX`)."""

    chosen: HandoffRow | None
    because: str
    others: tuple[HandoffRow, ...]


_COLUMNS = """
select h.id, h.project_id, h.stream_id, x.agent, x.native_id, h.worktree, h.branch, h.title, h.body, h.open_ends,
  case when h.state = 'open' and h.expires_at <= :now then 'expired' else h.state end, h.replaced_by,
  h.acknowledged_by, h.created_at, h.expires_at, h.settled_at
from handoffs h join sessions x on x.stream_id = h.stream_id join streams s on s.id = h.stream_id
  join subjects u on u.id = s.subject_id
where h.project_id = :project and s.erased_at is null and u.erased_at is null and not exists (
  select 1 from erasures r where r.done_at is null and r.kind = 'event' and r.stream_id = h.stream_id) """
_BY_ID = text(_COLUMNS + "and h.id = :id")
_OPEN = _COLUMNS + "and h.state = 'open' and h.expires_at > :now "
_NEWEST_FIRST = "and h.stream_id <> :not_of order by h.created_at desc, h.id desc limit :limit"
_IN_WORKTREE = text(_OPEN + "and h.worktree = :worktree " + _NEWEST_FIRST)
_ON_BRANCH = text(_OPEN + "and h.branch = :branch " + _NEWEST_FIRST)
_NEWEST_OPEN = text(_OPEN + _NEWEST_FIRST)
_IN_ITS_PLACE = text(
    _OPEN
    + """and h.id in (
  select id from handoffs where stream_id = :stream
  union all select id from handoffs where project_id = :project and worktree = :worktree and state = 'open')
order by h.created_at desc, h.id desc"""
)
_LIST = text(
    _COLUMNS
    + """and (:before is null or (h.created_at, h.id) < (select created_at, id from handoffs where id = :before))
  and (:state is null or (h.state = :state and (:state <> 'open' or h.expires_at > :now)))
order by h.created_at desc, h.id desc limit :limit"""
)
_NEIGHBOUR = (
    _COLUMNS
    + """and h.worktree = :worktree and h.stream_id <> :stream
  and h.stream_id in (select stream_id from sessions where project_id = :project and worktree = :worktree)
  and not exists (select 1 from handoffs n where n.stream_id = h.stream_id and n.id > h.id) """
)
_BEFORE = text(_NEIGHBOUR + "and h.created_at < :at order by h.created_at desc, h.id desc limit 1")
_AFTER = text(_NEIGHBOUR + "and h.created_at > :at order by h.created_at, h.id limit 1")
_LAST_OF = text(_COLUMNS + "and h.stream_id = :stream order by h.id desc limit 1")
_TELL_ANEW = text("update handoffs set body = :body, open_ends = :open_ends where id = :id")
_ADD = text("""
insert into handoffs(project_id, stream_id, worktree, branch, title, body, open_ends, state, replaced_by, created_at,
  expires_at)
values(:project, :stream, :worktree, :branch, :title, :body, :open_ends, :state, :replaced_by, :at, :expires_at)
returning id""")
_REPLACE = text("""
update handoffs set state = 'replaced', replaced_by = :by, settled_at = :now
where id in (select value from numbers(:ids)) and state = 'open'""")
_ACKNOWLEDGE = text("""
update handoffs set state = 'acknowledged', acknowledged_by = :by, settled_at = :now where id = :id
  and state = 'open'""")
_EXPIRE = text("""
update handoffs set state = 'expired', settled_at = :now where id in (
  select id from handoffs where state = 'open' and expires_at <= :now limit :limit)""")
OTHERS_MAX: Final = 20
"""Of the other open handoffs so many are told of, newest first."""
_NOBODY: Final = 0


def _handoff(r: tuple[Any, ...]) -> HandoffRow:
    return HandoffRow(
        id=r[0], project=r[1], stream=r[2], agent=r[3], native=r[4], worktree=r[5], branch=r[6], title=r[7], body=r[8],
        open_ends=_read_ends(r[9]), state=r[10], replaced_by=r[11], acknowledged_by=r[12], created_at=r[13],
        expires_at=r[14], settled_at=r[15],
    )  # fmt: skip


def _read_ends(kept: str) -> tuple[OpenEnd, ...]:
    return tuple(OpenEnd(**end) for end in json.loads(kept))


def _write_ends(ends: Sequence[OpenEnd]) -> str:
    return json.dumps([asdict(end) for end in ends], ensure_ascii=False)


def left_before(
    conn: Connection, project: int, stream: int, worktree: str | None, left_at: int, by: str
) -> tuple[OpenEnd, ...]:
    """What the session before this one in its worktree left open, in whatever order the two were digested.

    What somebody took up is theirs: it is carried on by them (`by`, agent and native session), not by others.
    """
    asked = {"project": project, "stream": stream, "worktree": worktree, "at": left_at, "now": conn.now()}
    row = conn.first(_BEFORE, asked)
    before = None if row is None else _handoff(row)
    if before is None or before.state == "expired" or before.acknowledged_by not in (None, by):
        return ()
    return before.open_ends


def stream_after(conn: Connection, left: HandoffRow) -> int | None:
    """The session whose handoff follows this one in its worktree: it carries what this one leaves open."""
    asked = {"project": left.project, "stream": left.stream, "worktree": left.worktree, "at": left.created_at,
             "now": conn.now()}  # fmt: skip
    row = conn.first(_AFTER, asked)
    return None if row is None else _handoff(row).stream


def tell_anew(conn: Connection, new: NewHandoff) -> HandoffRow | None:
    """The session's handoff as it stands, with what is known now of earlier open ends; None where it tells so already.

    Whose turn it is does not change: it stays open, replaced or acknowledged.
    """
    row = conn.first(_LAST_OF, {"project": new.project, "stream": new.stream, "now": conn.now()})
    if row is None or _handoff(row).open_ends == tuple(new.open_ends):
        return None
    told = _handoff(row)
    conn.run(_TELL_ANEW, {"id": told.id, "body": new.body, "open_ends": _write_ends(new.open_ends)})
    return replace(told, body=new.body, open_ends=tuple(new.open_ends))


def _in_its_place(conn: Connection, stream: int, project: int, worktree: str | None) -> list[HandoffRow]:
    """What is open of this session or in this worktree, newest first."""
    params = {"project": project, "stream": stream, "worktree": worktree, "now": conn.now()}
    return [_handoff(r) for r in conn.rows(_IN_ITS_PLACE, params)]


def leave_handoff(conn: Connection, new: NewHandoff) -> HandoffRow:
    """Open it in the place of the worktree's earlier one. One of an earlier session is kept, but not opened."""
    now = conn.now()
    new = replace(new, left_at=min(new.left_at, now))  # a clock that was ahead would close its worktree to all others
    there = _in_its_place(conn, new.stream, new.project, new.worktree)
    later = next((h for h in there if h.stream != new.stream and h.created_at > new.left_at), None)
    id_ = conn.scalar(_ADD, {
        "project": new.project, "stream": new.stream, "worktree": new.worktree, "branch": new.branch,
        "title": new.title, "body": new.body, "open_ends": _write_ends(new.open_ends),
        "state": "open" if later is None else "replaced", "replaced_by": None if later is None else later.id,
        "at": new.left_at, "expires_at": now + KEPT_US,
    })  # fmt: skip
    if later is None:
        conn.run(_REPLACE, {"ids": json.dumps([h.id for h in there]), "by": id_, "now": now})
    return get_handoff(conn, new.project, int(id_))


def get_handoff(conn: Connection, project: int, handoff: int) -> HandoffRow:
    row = conn.first(_BY_ID, {"project": project, "id": handoff, "now": conn.now()})
    if row is None:
        raise NotFound(f"there is no handoff {row_id('hnd', handoff)} in this project", id=row_id("hnd", handoff))
    return _handoff(row)


def list_handoffs(
    conn: Connection, project: int, *, state: str | None = None, before: int | None = None, limit: int = 50
) -> list[HandoffRow]:
    """The last left first. `before`: those that come after this one in the list."""
    asked = {"project": project, "state": state, "before": before, "limit": limit, "now": conn.now()}
    return [_handoff(r) for r in conn.rows(_LIST, asked)]


def choose_handoff(
    conn: Connection, project: int, *, worktree: str | None, branch: str | None, for_stream: int | None = None
) -> Choice:
    """The one for a session in this worktree: of the same worktree, else of the same branch, else the newest.

    A session is not offered what it left itself.
    """
    asked = {"project": project, "worktree": worktree, "branch": branch, "now": conn.now(),
             "not_of": _NOBODY if for_stream is None else for_stream}  # fmt: skip
    newest = [_handoff(r) for r in conn.rows(_NEWEST_OPEN, asked | {"limit": OTHERS_MAX + 1})]
    for because, statement in (("left in this worktree", _IN_WORKTREE), ("left on this branch", _ON_BRANCH)):
        row = conn.first(statement, asked | {"limit": 1})
        if row is not None:
            return _choice(_handoff(row), because, newest)
    return _choice(newest[0], "the newest of this project", newest) if newest else _NOTHING_OPEN


_NOTHING_OPEN: Final = Choice(chosen=None, because="no handoff is open", others=())


def _choice(chosen: HandoffRow, because: str, newest: Sequence[HandoffRow]) -> Choice:
    others = tuple(h for h in newest if h.id != chosen.id)[:OTHERS_MAX]
    return Choice(chosen=chosen, because=because, others=others)


def acknowledge_handoff(conn: Connection, project: int, handoff: int, by: str) -> bool:
    """Somebody has taken it up; False where it was not open any more."""
    found = get_handoff(conn, project, handoff)
    taken = found.state == "open" and conn.run(_ACKNOWLEDGE, {"id": handoff, "by": by, "now": conn.now()}) > 0
    if taken:
        record_changes(conn, project, [
            NewChange(kind="handoff.acknowledged", ref=row_id("hnd", handoff), stream=found.stream, data={"by": by})
        ])  # fmt: skip
    return taken


def expire_handoffs(conn: Connection, _after: int, limit: int) -> tuple[int, int]:
    """(how many, 1 where there may be more)."""
    gone = conn.run(_EXPIRE, {"now": conn.now(), "limit": limit})
    return gone, int(gone == limit)
