"""Which native sessions belong to which launch, and so to its workstream; and how far each was told (G11)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import text

from everkept.domain.ids import row_id
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.ledger import holds_stream, note_linked

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
_LAST = text("select last_seq, subject_id from streams where id = :stream")
_RECEIVE = text("""
update launches set native_id = :native
where id in (select value from json_each(:launches)) and agent = :agent and native_id is null
returning id, workstream_id, accepted_at, packet_from, packet_through, offer_id""")
_ADDRESS = text("update offers set native_id = :native where id = :offer and agent = :agent")
_MOVE: Final = text("""
insert into workstream_cursors(workstream_id, agent, native_id, delivered)
select :workstream, :agent, :native, :through where :start = 0 or exists (
  select 1 from workstream_cursors c where c.workstream_id = :workstream and c.agent = :agent and c.native_id = :native)
on conflict(workstream_id, agent, native_id) do update set delivered = max(delivered, excluded.delivered)
  where delivered >= :start""")
_CURSOR = text("""
select delivered, source_cursor from workstream_cursors
where workstream_id = :workstream and agent = :agent and native_id = :native""")
_SOURCE = text("""
insert into workstream_cursors(workstream_id, agent, native_id, source_cursor)
values(:workstream, :agent, :native, :cursor)
on conflict(workstream_id, agent, native_id) do update set source_cursor = excluded.source_cursor""")
_OF_WORKSTREAMS = text("""
select l.workstream_id, l.stream_id, l.agent, l.native_id, min(l.launch_id) from launch_sessions l
where l.workstream_id in (select value from json_each(:workstreams))
group by l.workstream_id, l.agent, l.native_id order by l.workstream_id, min(l.launch_id), min(l.linked_at)""")
_OF_LAUNCH = text("select stream_id from launch_sessions where launch_id = :launch and stream_id is not null")


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeSession:
    """`stream`: None until anything of it was taken in."""

    agent: str
    native: str
    parent: str | None = None
    stream: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedRow:
    workstream: int
    stream: int | None
    agent: str
    native: str
    launch: int


def link_session(conn: Connection, project: int, session: NativeSession, launch: int | None) -> None:
    """Link it to the launch, to those that named it before, and to those of the session that started it.

    The workstream gets what it has told so far under a number of its own. Linking again changes nothing; a launch that
    is not one of the project links nothing.
    """
    asked = {
        "project": project, "agent": session.agent, "native": session.native, "stream": session.stream,
        "parent": session.parent, "launch": launch, "now": conn.now(),
    }  # fmt: skip
    linked = conn.rows(_ADOPT, asked) if session.stream is not None else []
    linked += conn.rows(_LINK, asked) if launch is not None else []
    linked += conn.rows(_LINK_CHILD, asked) if session.parent is not None else []
    if session.stream is not None:
        _catch_up(conn, project, session.stream, list(dict.fromkeys(workstream for _, workstream in linked)))
    if linked and session.parent is None:
        _receive(conn, session, [launch for launch, _ in linked])


def _catch_up(conn: Connection, project: int, stream: int, workstreams: Sequence[int]) -> None:
    fresh = [w for w in workstreams if not holds_stream(conn, w, stream)]
    row = conn.first(_LAST, {"stream": stream}) if fresh else None
    if row is None or not row[0]:
        return
    last, subject = row
    for workstream in fresh:
        seq = record_changes(conn, project, [NewChange(
            kind="workstream.linked", ref=row_id("wst", workstream), subject=subject, stream=stream,
            data={"last_seq": last},
        )])  # fmt: skip
        note_linked(conn, workstream, stream, last, seq)


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


def sessions_of(conn: Connection, workstreams: Sequence[int]) -> list[LinkedRow]:
    """By workstream, in the order in which they were linked."""
    rows = conn.rows(_OF_WORKSTREAMS, {"workstreams": json.dumps(list(workstreams))})
    return [LinkedRow(workstream=r[0], stream=r[1], agent=r[2], native=r[3], launch=r[4]) for r in rows]


def sessions_of_launch(conn: Connection, launch: int) -> list[int]:
    """Their streams."""
    return [r[0] for r in conn.rows(_OF_LAUNCH, {"launch": launch})]
