"""Digests of sessions: what one is made of, and the commit that keeps page, handoff and `finished_seq` together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from everkept.config import Settings
from everkept.domain.digest.values import OpenEnd, SessionEvent
from everkept.domain.ids import row_id
from everkept.domain.jobs import Schedule
from everkept.domain.session import read_back
from everkept.errors import SubjectMoved
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.effective import effective
from everkept.store.handoffs import NewHandoff, leave_handoff, previous_handoff
from everkept.store.jobs import schedule
from everkept.store.journal import subject_epoch
from everkept.store.pages import NewPage, write_page
from everkept.store.sessions import SessionRow, child_sessions, find_native_session, find_session
from everkept.store.streams import get_stream
from everkept.store.windows import DISTIL, LAST_WINDOW, WindowRow, digest_wish, find_window, get_window, rests

PIECE = 1000
"""Events that one statement reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestInput:
    """A session as far as it is known now, with its sub-agents folded in."""

    window: WindowRow
    session: SessionRow
    events: Sequence[SessionEvent]
    open_ends: tuple[OpenEnd, ...]
    """Of the handoff that this session's will replace."""
    opted_out: bool
    folded: bool
    """A sub-agent whose parent is here, and tells of it."""
    epoch: int
    """Of the subject: what was read before an erase is not written after it."""


_EVENTS = text("""
select seq, content, metadata from events
where stream_id = :stream and seq > :after and erased_at is null and evidence <> 2 order by seq limit :limit""")


def digest_input(conn: Connection, window_id: int, base: Settings) -> DigestInput | None:
    """None where the window was erased or is not to be worked, or not now."""
    window = find_window(conn, window_id)
    if window is None or window.skipped_because is not None or rests(conn, window):
        return None
    session = find_session(conn, window.project, window.stream)
    if session is None:
        return None
    stream = get_stream(conn, window.stream)
    previous = previous_handoff(conn, session.stream, session.project, session.worktree)
    events = [e for s in (session, *child_sessions(conn, session)) for e in events_of_session(conn, s)]
    return DigestInput(
        window=window, session=session, events=events,
        open_ends=() if previous is None or previous.stream == session.stream else previous.open_ends,
        folded=session.parent is not None and _parent(conn, session) is not None,
        epoch=subject_epoch(conn, window.subject),
        opted_out=not effective(base, stream.project_settings, stream.settings).memory.enabled,
    )  # fmt: skip


def events_of_session(conn: Connection, session: SessionRow) -> list[SessionEvent]:
    """In the order of the stream; a revision stands in the place of what it completes."""
    found: dict[int, SessionEvent] = {}
    place: dict[int, int] = {}
    after = 0
    while rows := conn.rows(_EVENTS, {"stream": session.stream, "after": after, "limit": PIECE}):
        for seq, content, metadata in rows:
            revises = json.loads(metadata).get("revises")
            first = seq if revises is None else place.get(revises, revises)
            place[seq] = first
            event = read_back(content or "", metadata, agent=session.agent, session=session.native)
            found[first] = SessionEvent(first, event)
        after = rows[-1][0]
    return [found[seq] for seq in sorted(found)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDigest:
    """What is to be committed. `trivial_because`: it makes no page and leaves no handoff."""

    window: int
    through: int
    epoch: int
    hash: str
    trivial_because: str | None
    page: NewPage | None
    handoff: NewHandoff | None
    distil: bool = False
    """There is a model that makes knowledge pages of it."""


_WINDOW_DONE = text("update windows set summary = '', learnings = '[]', summary_at = :now where id = :window")
_SLICE_DONE = text("update slices set summary = '', learnings = '[]', summary_at = :now where window_id = :window")
_NOTE = text("""
update sessions set digested_seq = max(digested_seq, :through), digest_hash = :hash, trivial_because = :trivial
where stream_id = :stream""")
_FINISHED = text("update sessions set finished_seq = :seq where stream_id = :stream")
_TAKE = text("update projects set finished_seq = finished_seq + 1 where id = :project returning finished_seq")


def write_digest(conn: Connection, new: NewDigest) -> None:
    """Page, handoff, passages, `finished_seq` and the window's completion in one commit.

    A digest whose content is what it was before changes nothing but the window. Raises SubjectMoved where something was
    erased since its events were read.
    """
    window = get_window(conn, new.window)
    if subject_epoch(conn, window.subject) != new.epoch:
        raise SubjectMoved("something of this memory was erased while the session was digested; the job runs again")
    session = find_session(conn, window.project, window.stream)
    assert session is not None
    for statement in (_WINDOW_DONE, _SLICE_DONE):
        conn.run(statement, {"window": window.id, "now": conn.now()})
    changed = session.digest_hash != new.hash
    conn.run(
        _NOTE, {"stream": session.stream, "through": new.through, "hash": new.hash, "trivial": new.trivial_because}
    )
    if session.parent is not None and session.digested_seq < new.through:
        _wake_parent(conn, session)
    changes = []
    if changed and new.page is not None:
        page = write_page(conn, new.page)
        if new.handoff is not None:
            handoff = leave_handoff(conn, new.handoff)
            changes.append(NewChange(
                kind="handoff.left", ref=row_id("hnd", handoff.id), subject=window.subject, stream=session.stream,
            ))  # fmt: skip
        if new.distil:
            schedule(conn, [distil_wish(window, conn.now())])
        seq = conn.scalar(_TAKE, {"project": session.project})
        conn.run(_FINISHED, {"stream": session.stream, "seq": seq})
        changes.append(NewChange(
            kind="session.digested", ref=row_id("ses", session.stream), subject=window.subject, stream=session.stream,
            data={"finished_seq": seq, "page": None if page is None else row_id("pag", page.id)},
        ))  # fmt: skip
    record_changes(conn, session.project, changes)


def distil_wish(window: WindowRow, now_us: int) -> Schedule:
    """One job a session, armed again by each digest that says something new; one at a time in a project, so that two
    sessions never write one page at once.
    """
    return Schedule(
        kind=DISTIL, key=str(window.stream), project=window.project, lane=window.lane, due_at_us=now_us, uses="model",
        serial_key=f"distil:{window.project}", args=json.dumps({"stream": window.stream}), rearm_dead=True,
    )  # fmt: skip


def _parent(conn: Connection, child: SessionRow) -> SessionRow | None:
    found = None if child.parent is None else find_native_session(conn, child.project, child.parent, child.agent)
    return None if found is None or found.stream == child.stream else found


def _wake_parent(conn: Connection, child: SessionRow) -> None:
    """What a sub-agent did belongs into its parent's digest, also where that was made before."""
    parent = _parent(conn, child)
    if parent is None or parent.digested_seq == 0:
        return
    window: Any = conn.scalar(LAST_WINDOW, {"stream": parent.stream})
    if window is not None:
        schedule(conn, [digest_wish(get_window(conn, window))])
