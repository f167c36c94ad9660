"""Launches: one leased start of an agent at a time for a workstream, each lease under a fence that grows (G6, G11)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

from sqlalchemy import text

from everkept.domain.ids import row_id
from everkept.domain.launch import LEASE_US, LIVE, MOVES, Event, State
from everkept.errors import Conflict, KeyConflict, LeaseLost, NotFound
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.project_names import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRow:
    id: int
    project: int
    workstream: int
    workstream_name: str
    workstream_fence: int
    request_hash: str
    agent: str
    owner: str
    directory: str
    worktree: str
    branch: str | None
    fingerprint: str
    chosen_because: str
    state: State
    fence: int
    lease_until: int
    resumes: str | None
    native: str | None
    packet: str | None
    packet_from: int
    packet_through: int
    packet_shown: int
    packet_counted: int
    packet_erasure: int
    offer: int | None
    accepted_at: int | None
    acknowledged: int
    source_cursor: str | None
    exit_code: int | None
    prepared_at: int
    ended_at: int | None

    @property
    def is_live(self) -> bool:
        return self.state in LIVE

    @property
    def receiver(self) -> tuple[str, str]:
        """(agent, native id) of the session that the packet is for; no session is called as nobody's is."""
        return self.agent, self.native or self.resumes or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPacket:
    """The range (`start`, `through`] of the ledger in words; `erasure`: the project's newest when it was read."""

    text: str
    start: int
    through: int
    shown: int
    counted: int
    erasure: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLaunch:
    project: int
    workstream: int
    key_hash: str
    request_hash: str
    agent: str
    owner: str
    directory: str
    worktree: str
    branch: str | None
    fingerprint: str
    chosen_because: str
    resumes: str | None
    packet: NewPacket


_COLUMNS = """
select l.id, l.project_id, l.workstream_id, w.name, w.fence, l.request_hash, l.agent, l.owner, l.directory, l.worktree,
  l.branch, l.fingerprint, l.chosen_because, l.state, l.fence, l.lease_until, l.resumes, l.native_id, l.packet,
  l.packet_from, l.packet_through, l.packet_shown, l.packet_counted, l.packet_erasure, l.offer_id, l.accepted_at,
  l.acknowledged, l.source_cursor, l.exit_code, l.prepared_at, l.ended_at
from launches l join workstreams w on w.id = l.workstream_id where l.project_id = :project """
_BY_ID = text(_COLUMNS + "and l.id = :id")
_BY_KEY = text(_COLUMNS + "and l.key_hash = :key")
_LIVE_OF = text(_COLUMNS + "and l.workstream_id = :workstream and l.state in ('prepared', 'running')")
_LAST_OF = text(_COLUMNS + "and l.workstream_id = :workstream order by l.id desc limit 1")
_LIST_OF = text(
    _COLUMNS
    + "and l.workstream_id = :workstream and (:before is null or l.id < :before) order by l.id desc limit :limit"
)
_PROJECT = text(f"select {shown('p')} from launches l join projects p on p.id = l.project_id where l.id = :id")
_NEXT_FENCE = text("update workstreams set fence = fence + 1 where id = :workstream returning fence")
_ADD = text("""
insert into launches(project_id, workstream_id, key_hash, request_hash, agent, owner, directory, worktree, branch,
  fingerprint, chosen_because, state, fence, lease_until, resumes, packet, packet_from, packet_through, packet_shown,
  packet_counted, packet_erasure, prepared_at)
values(:project, :workstream, :key, :request, :agent, :owner, :directory, :worktree, :branch, :fingerprint, :because,
  'prepared', :fence, :until, :resumes, :packet, :start, :through, :shown, :counted, :erasure, :now) returning id""")
_LEASE = text("""
update launches set state = :state, fence = :fence, lease_until = :until, ended_at = null where id = :id""")
_END = text("update launches set state = :state, ended_at = :now where id = :id")
_TELL = text("""
update launches set exit_code = coalesce(exit_code, :exit_code), source_cursor = coalesce(source_cursor, :cursor)
where id = :id""")


def _launch(r: tuple[Any, ...]) -> LaunchRow:
    return LaunchRow(
        id=r[0], project=r[1], workstream=r[2], workstream_name=r[3], workstream_fence=r[4], request_hash=r[5],
        agent=r[6], owner=r[7], directory=r[8], worktree=r[9], branch=r[10], fingerprint=r[11], chosen_because=r[12],
        state=cast(State, r[13]), fence=r[14], lease_until=r[15], resumes=r[16], native=r[17], packet=r[18],
        packet_from=r[19], packet_through=r[20], packet_shown=r[21], packet_counted=r[22], packet_erasure=r[23],
        offer=r[24], accepted_at=r[25], acknowledged=r[26], source_cursor=r[27], exit_code=r[28], prepared_at=r[29],
        ended_at=r[30],
    )  # fmt: skip


# ---- reading


def find_launch(conn: Connection, project: int, launch: int) -> LaunchRow | None:
    row = conn.first(_BY_ID, {"project": project, "id": launch})
    return None if row is None else _launch(row)


def get_launch(conn: Connection, project: int, launch: int) -> LaunchRow:
    found = find_launch(conn, project, launch)
    if found is None:
        raise NotFound(f"there is no launch {row_id('lch', launch)} in this project", id=row_id("lch", launch))
    return found


def find_launch_by_key(conn: Connection, project: int, key_hash: str) -> LaunchRow | None:
    row = conn.first(_BY_KEY, {"project": project, "key": key_hash})
    return None if row is None else _launch(row)


def live_launch(conn: Connection, project: int, workstream: int) -> LaunchRow | None:
    """The one that holds it, or held it last where its lease has ended and nobody has taken over."""
    row = conn.first(_LIVE_OF, {"project": project, "workstream": workstream})
    return None if row is None else _launch(row)


def last_launch(conn: Connection, project: int, workstream: int) -> LaunchRow | None:
    row = conn.first(_LAST_OF, {"project": project, "workstream": workstream})
    return None if row is None else _launch(row)


def list_launches(conn: Connection, project: int, workstream: int, before: int | None, limit: int) -> list[LaunchRow]:
    """Newest first. `before`: those that come after this one in the list."""
    asked = {"project": project, "workstream": workstream, "before": before, "limit": limit}
    return [_launch(row) for row in conn.rows(_LIST_OF, asked)]


def project_of_launch(conn: Connection, launch: int) -> str | None:
    """Its name."""
    found = conn.scalar(_PROJECT, {"id": launch})
    return None if found is None else str(found)


# ---- the lease


def add_launch(conn: Connection, new: NewLaunch) -> LaunchRow:
    """Lease the workstream; one whose lease has ended loses it. Raises Conflict while another launch holds it."""
    _require_free(conn, new.project, new.workstream, but=None)
    now = conn.now()
    id_ = conn.scalar(_ADD, {
        "project": new.project, "workstream": new.workstream, "key": new.key_hash, "request": new.request_hash,
        "agent": new.agent, "owner": new.owner, "directory": new.directory, "worktree": new.worktree,
        "branch": new.branch, "fingerprint": new.fingerprint, "because": new.chosen_because,
        "fence": conn.scalar(_NEXT_FENCE, {"workstream": new.workstream}), "until": now + LEASE_US,
        "resumes": new.resumes, "packet": new.packet.text, "start": new.packet.start, "through": new.packet.through,
        "shown": new.packet.shown, "counted": new.packet.counted, "erasure": new.packet.erasure, "now": now,
    })  # fmt: skip
    record_changes(conn, new.project, [_change("launch.prepared", id_)])
    return get_launch(conn, new.project, int(id_))


def take_again(conn: Connection, project: int, launch: int, request_hash: str) -> LaunchRow:
    """As its owner prepares it again: the same one, with a new lease, and with a new fence where the old lease ended.

    One that has ended stays as it is. Raises KeyConflict where the key was used for something else, and Conflict where
    another launch holds the workstream by now.
    """
    row = get_launch(conn, project, launch)
    if row.request_hash != request_hash:
        raise KeyConflict(f"this key prepared {row_id('lch', row.id)} for another workstream, agent or session before")
    moved = MOVES[row.state].get("take_again")
    if moved is None:
        return row
    fence = row.fence
    if not _holds(conn, row):
        _require_free(conn, project, row.workstream, but=row.id)
        fence = conn.scalar(_NEXT_FENCE, {"workstream": row.workstream})
    conn.run(_LEASE, {"id": row.id, "state": moved, "fence": fence, "until": conn.now() + LEASE_US})
    return get_launch(conn, project, launch)


def heartbeat_launch(conn: Connection, project: int, launch: int, fence: int) -> LaunchRow:
    """Extend a lease that is still held. Raises LeaseLost once it has ended, taken over or not."""
    row = get_launch(conn, project, launch)
    state = _next_state(row, "heartbeat")
    if not _holds(conn, row) or row.fence != fence:
        raise _lost(row, "its lease has ended; prepare it again with the same key, and go on with the new fence")
    conn.run(_LEASE, {"id": row.id, "state": state, "fence": fence, "until": conn.now() + LEASE_US})
    return get_launch(conn, project, launch)


def cancel_launch(conn: Connection, project: int, launch: int, fence: int) -> LaunchRow:
    """Raises LeaseLost where it is not the caller's any more, Conflict where it was finished."""
    row = get_launch(conn, project, launch)
    if row.state == "cancelled" and row.fence == fence:
        return row
    state = _next_state(row, "cancel")
    if row.fence != fence:
        raise _lost(row, "another process holds it under a newer fence")
    _end(conn, row, state, "launch.cancelled")
    return get_launch(conn, project, launch)


def end_launch(conn: Connection, row: LaunchRow) -> None:
    """It is finished; one that had ended before stays as it is."""
    moved = MOVES[row.state].get("finish")
    if moved is not None:
        _end(conn, row, moved, "launch.finished")


def tell_end(conn: Connection, launch: int, exit_code: int | None, source_cursor: str | None) -> None:
    """What was told of its end first stays."""
    conn.run(_TELL, {"id": launch, "exit_code": exit_code, "cursor": source_cursor})


def require_held(row: LaunchRow, fence: int | None) -> None:
    """Raises LeaseLost where somebody has taken over since the fence was given; without one, since it was leased."""
    if row.state == "lost" or (fence is not None and fence != row.fence):
        raise _lost(row, "somebody has taken over")


def _end(conn: Connection, row: LaunchRow, state: State, kind: str) -> None:
    conn.run(_END, {"id": row.id, "state": state, "now": conn.now()})
    record_changes(conn, row.project, [_change(kind, row.id)])


def _holds(conn: Connection, row: LaunchRow) -> bool:
    return row.is_live and row.lease_until > conn.now()


def _require_free(conn: Connection, project: int, workstream: int, *, but: int | None) -> None:
    holder = live_launch(conn, project, workstream)
    if holder is None or holder.id == but:
        return
    if holder.lease_until > conn.now():
        left_s = -(-(holder.lease_until - conn.now()) // 1_000_000)
        raise Conflict(
            f"{holder.owner} has the workstream {holder.workstream_name!r} with {holder.agent}"
            f" ({row_id('lch', holder.id)}); unless it goes on, its lease ends in {left_s} s",
            holder=holder.owner, launch=row_id("lch", holder.id), lease_until=_iso(holder.lease_until),
        )  # fmt: skip
    _end(conn, holder, MOVES[holder.state]["take_over"], "launch.lost")


def _next_state(row: LaunchRow, event: Event) -> State:
    state = MOVES[row.state].get(event)
    if state is not None:
        return state
    if row.state == "lost":
        raise _lost(row, "somebody has taken over")
    raise Conflict(f"{row_id('lch', row.id)} is {row.state} already", launch=row_id("lch", row.id), state=row.state)


def _lost(row: LaunchRow, why: str) -> LeaseLost:
    id_: Final = row_id("lch", row.id)
    return LeaseLost(f"{id_} is not the caller's to go on with: {why}", launch=id_, fence=row.fence)


def _iso(us: int) -> str:
    return datetime.fromtimestamp(us // 1_000_000, UTC).isoformat()


def _change(kind: str, launch: int) -> NewChange:
    return NewChange(kind=kind, ref=row_id("lch", launch))
