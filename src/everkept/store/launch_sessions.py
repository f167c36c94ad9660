"""Which native sessions belong to which launch, and so to its workstream; and how far each was told (G11)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import text

from everkept.domain.ids import row_id
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection, Row
from everkept.store.ledger import note_linked

_ADOPT = text("""
update launch_sessions set stream_id = :stream
where project_id = :project and agent = :agent and native_id = :native and stream_id is null
returning launch_id, workstream_id""")
_LINK = text("""
insert into launch_sessions(project_id, workstream_id, launch_id, agent, native_id, stream_id, linked_at)
select l.project_id, l.workstream_id, l.id, :agent, :native, :stream, :now from launches l
where l.id = :launch and l.project_id = :project
on conflict do nothing returning launch_id, workstream_id""")
_LINK_CHILD = text("""
insert into launch_sessions(project_id, workstream_id, launch_id, agent, native_id, stream_id, linked_at)
select p.project_id, p.workstream_id, p.launch_id, :agent, :native, :stream, :now from launch_sessions p
where p.project_id = :project and p.agent = :agent and p.native_id = :parent
on conflict do nothing returning launch_id, workstream_id""")
_LINK_BELOW = text("""
with recursive below(native_id) as (
  select c.native_id from sessions c where c.project_id = :project and c.agent = :agent and c.parent = :native
  union select c.native_id from below b
    join sessions c on c.project_id = :project and c.agent = :agent and c.parent = b.native_id)
insert into launch_sessions(project_id, workstream_id, launch_id, agent, native_id, stream_id, linked_at)
select l.project_id, l.workstream_id, l.id, c.agent, c.native_id, c.stream_id, :now from launches l, below b
  join sessions c on c.project_id = :project and c.agent = :agent and c.native_id = b.native_id
  join streams s on s.id = c.stream_id and s.erased_at is null
  join subjects u on u.id = s.subject_id and u.erased_at is null
where l.id in (select value from numbers(:launches)) and b.native_id <> :native
on conflict do nothing returning stream_id""")
_UNTOLD = text("""
select distinct l.workstream_id, l.stream_id, s.subject_id, s.last_seq from launch_sessions l
  join streams s on s.id = l.stream_id and s.last_seq > 0
where l.stream_id in (select value from numbers(:streams)) and not exists (
  select 1 from workstream_ledger w where w.stream_id = l.stream_id and w.workstream_id = l.workstream_id)
order by l.workstream_id, l.stream_id""")
_RECEIVE = text("""
update launches set native_id = :native
where id in (select value from numbers(:launches)) and agent = :agent and native_id is null
returning id, workstream_id, accepted_at, packet_from, packet_through, offer_id""")
_ADDRESS = text("update offers set native_id = :native where id = :offer and agent = :agent")
_MOVE: Final = text("""
insert into workstream_cursors(workstream_id, agent, native_id, delivered)
select :workstream, :agent, :native, :through where :start = 0 or exists (
  select 1 from workstream_cursors c where c.workstream_id = :workstream and c.agent = :agent and c.native_id = :native)
on conflict(workstream_id, agent, native_id) do update set
  delivered = max(workstream_cursors.delivered, excluded.delivered)
  where workstream_cursors.delivered >= :start""")
_CURSOR = text("""
select delivered, source_cursor from workstream_cursors
where workstream_id = :workstream and agent = :agent and native_id = :native""")
_SOURCE = text("""
insert into workstream_cursors(workstream_id, agent, native_id, source_cursor)
values(:workstream, :agent, :native, :cursor)
on conflict(workstream_id, agent, native_id) do update set source_cursor = excluded.source_cursor""")
_LINKED = """
select l.stream_id, l.agent, l.native_id, max(l.launch_id) from launch_sessions l
where l.workstream_id = :workstream and (cast(:launch as bigint) is null or l.launch_id = :launch) """
_HEARD = text(f"""{_LINKED} and l.stream_id < :before
group by l.stream_id, l.agent, l.native_id order by l.stream_id desc limit :limit""")
_UNHEARD = text(f"""{_LINKED} and l.stream_id is null
group by l.stream_id, l.agent, l.native_id order by max(l.launch_id) desc limit :limit""")
_COUNTS = text("""
select d.workstream_id, count(*) from (
  select distinct l.workstream_id, l.agent, l.native_id from launch_sessions l
  where l.workstream_id in (select value from numbers(:workstreams))) d
group by d.workstream_id""")
NEWEST: Final = 1 << 62
"""Before it comes every session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeSession:
    """`stream`: None until anything of it was taken in."""

    agent: str
    native: str
    parent: str | None = None
    stream: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedRow:
    """`launch`: the last one that linked it."""

    stream: int | None
    agent: str
    native: str
    launch: int


def link_session(conn: Connection, project: int, session: NativeSession, launch: int | None) -> None:
    """Link it to the launch, to those that named it before, and to those of the session that started it.

    With it those that it started, and that these started, whenever they came. The workstream gets what each has told so
    far under a number of its own. Linking again changes nothing; a launch that is not one of the project links nothing.
    """
    asked = {
        "project": project, "agent": session.agent, "native": session.native, "stream": session.stream,
        "parent": session.parent, "launch": launch, "now": conn.now(),
    }  # fmt: skip
    rows = conn.rows(_ADOPT, asked) if session.stream is not None else []
    rows += conn.rows(_LINK, asked) if launch is not None else []
    rows += conn.rows(_LINK_CHILD, asked) if session.parent is not None else []
    linked = list(dict.fromkeys(number for number, _ in rows))
    if not linked:
        return
    below = [stream for (stream,) in conn.rows(_LINK_BELOW, {**asked, "launches": json.dumps(linked)})]
    _catch_up(conn, project, below if session.stream is None else [session.stream, *below])
    if session.parent is None:
        _receive(conn, session, linked)


def _catch_up(conn: Connection, project: int, streams: Sequence[int]) -> None:
    """What they told before they were linked."""
    untold = conn.rows(_UNTOLD, {"streams": json.dumps(list(streams))})
    last = record_changes(conn, project, [
        NewChange(
            kind="workstream.linked", ref=row_id("wst", workstream), subject=subject, stream=stream,
            data={"last_seq": last_seq},
        )
        for workstream, stream, subject, last_seq in untold
    ])  # fmt: skip
    for seq, (workstream, stream, _, last_seq) in enumerate(untold, last - len(untold) + 1):
        note_linked(conn, workstream, stream, last_seq, seq)


def _receive(conn: Connection, session: NativeSession, launches: Sequence[int]) -> None:
    """The first session of a launch's agent is the one that its packet was for, also where it was accepted before."""
    asked = {"launches": json.dumps(list(launches)), "agent": session.agent, "native": session.native}
    for _, workstream, accepted_at, start, through, offer in conn.rows(_RECEIVE, asked):
        if accepted_at is not None:
            move_cursor(conn, workstream, session.agent, session.native, start, through)
        if offer is not None:
            conn.run(_ADDRESS, {"offer": offer, "agent": session.agent, "native": session.native})


def move_cursor(conn: Connection, workstream: int, agent: str, native: str, start: int, through: int) -> bool:
    """To `through`, never back, and only where it has come to `start`: else something between would be skipped."""
    moved = conn.run(_MOVE, {
        "workstream": workstream, "agent": agent, "native": native, "start": start, "through": through,
    })  # fmt: skip
    return moved > 0


def find_cursor(conn: Connection, workstream: int, agent: str, native: str | None) -> tuple[int, str | None]:
    """(how far it was told, how far its transcript was read); (0, None) for a session that nobody knows."""
    asked = {"workstream": workstream, "agent": agent, "native": native}
    row = None if native is None else conn.first(_CURSOR, asked)
    return (0, None) if row is None else (int(row[0]), row[1])


def set_source_cursor(conn: Connection, workstream: int, agent: str, native: str, cursor: str) -> None:
    conn.run(_SOURCE, {"workstream": workstream, "agent": agent, "native": native, "cursor": cursor})


def linked_sessions(
    conn: Connection, workstream: int, *, launch: int | None, before: int, limit: int
) -> list[LinkedRow]:
    """Of one launch, or of all (None): those that told anything, the newest first, from before stream `before` on."""
    asked = {"workstream": workstream, "launch": launch, "before": before, "limit": limit}
    return [_linked(r) for r in conn.rows(_HEARD, asked)]


def unheard_sessions(conn: Connection, workstream: int, *, launch: int | None, limit: int) -> list[LinkedRow]:
    """As `linked_sessions`, those of which nothing was taken in yet, as the launches that named them."""
    return [_linked(r) for r in conn.rows(_UNHEARD, {"workstream": workstream, "launch": launch, "limit": limit})]


def _linked(r: Row) -> LinkedRow:
    return LinkedRow(stream=r[0], agent=r[1], native=r[2], launch=r[3])


def count_sessions(conn: Connection, workstreams: Sequence[int]) -> dict[int, int]:
    """{workstream: sessions}; those without any are left out."""
    return dict(conn.rows(_COUNTS, {"workstreams": json.dumps(list(workstreams))}))
