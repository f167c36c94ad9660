"""The end of a launch: what its finish tells is kept once, and its source cursor only by who holds the newest fence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import text

from everkept.domain.ids import row_id
from everkept.store.connection import Connection
from everkept.store.launch_events import has_gap
from everkept.store.launch_sessions import NativeSession, link_session, set_source_cursor
from everkept.store.launches import LaunchRow, end_launch, get_launch, tell_end
from everkept.store.sessions import end_session, find_session, stream_name
from everkept.store.streams import find_stream

Fate = Literal["taken", "kept", "refused", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Its events are here already."""

    launch: int
    fence: int
    native: str | None
    source_cursor: str | None
    exit_code: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    launch: LaunchRow
    cursor: Fate
    because: str


def finish_launch(conn: Connection, project: int, finish: Finish) -> Finished:
    """May be repeated. What was told first stays; who was fenced off changes nothing but what is known of its session.

    Raises NotFound.
    """
    row = get_launch(conn, project, finish.launch)
    if finish.native is not None:
        _link(conn, row, finish.native)
        row = get_launch(conn, project, finish.launch)
    if finish.fence == row.fence:
        end_launch(conn, row)
    fate, because = _fate(conn, row, finish)
    if fate == "taken" and row.source_cursor is None:
        assert finish.source_cursor is not None
        set_source_cursor(conn, row.workstream, row.agent, _session(row, finish), finish.source_cursor)
    if finish.fence == row.fence:
        tell_end(conn, row.id, finish.exit_code, finish.source_cursor if fate == "taken" else None)
    return Finished(launch=get_launch(conn, project, finish.launch), cursor=fate, because=because)


def _link(conn: Connection, row: LaunchRow, native: str) -> None:
    stream = find_stream(conn, row.project, "session", stream_name(row.agent, native))
    session = NativeSession(agent=row.agent, native=native, stream=None if stream is None else stream.id)
    link_session(conn, row.project, session, row.id)


_GOING_ON = text("""
select l.stream_id from launch_sessions l join streams s on s.id = l.stream_id and s.erased_at is null
  join subjects u on u.id = s.subject_id and u.erased_at is null
where l.launch_id = :launch and s.covered_seq < s.last_seq and s.end_through < s.last_seq
order by l.stream_id limit :limit""")
SESSIONS_AT_ONCE: Final = 25


def end_sessions(conn: Connection, project: int, launch: int) -> int:
    """Their agent has ended, and what they did is to be digested now; how many, `SESSIONS_AT_ONCE` at most."""
    streams = conn.rows(_GOING_ON, {"launch": launch, "limit": SESSIONS_AT_ONCE})
    for (stream,) in streams:
        session = find_session(conn, project, stream)
        assert session is not None
        end_session(conn, session)
    return len(streams)


def _fate(conn: Connection, row: LaunchRow, finish: Finish) -> tuple[Fate, str]:
    if finish.source_cursor is None:
        return "none", "the finish tells no cursor"
    if row.state == "lost" or finish.fence != row.fence or finish.fence != row.workstream_fence:
        return "refused", "the workstream was leased again since: its cursor is the newer holder's"
    if row.state == "cancelled":
        return "refused", "the launch was cancelled"
    if row.source_cursor not in (None, finish.source_cursor):
        return "kept", "an earlier finish told another cursor, which stays"
    if has_gap(conn, row):
        return "refused", f"event {row.acknowledged + 1} of {row_id('lch', row.id)} is not here, and later ones are"
    if not _session(row, finish):
        return "refused", "no session is known that it could be of"
    return "taken", "it is the session's now"


def _session(row: LaunchRow, finish: Finish) -> str:
    return finish.native or row.native or row.resumes or ""
