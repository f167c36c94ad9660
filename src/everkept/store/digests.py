"""Digests of sessions: what one is made of, and the commit that keeps page, handoff and `finished_seq` together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

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
from everkept.store.handoffs import HandoffRow, NewHandoff, leave_handoff, left_before, stream_after, tell_anew
from everkept.store.jobs import schedule
from everkept.store.journal import subject_epoch
from everkept.store.pages import NewPage, write_page
from everkept.store.reviews import note_generation
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
    """What the session before it in its worktree left open."""
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
    events = [e for s in (session, *child_sessions(conn, session)) for e in events_of_session(conn, s)]
    return DigestInput(
        window=window, session=session, events=events,
        open_ends=_ends_before(conn, session),
        folded=session.parent is not None and _parent(conn, session) is not None,
        epoch=subject_epoch(conn, window.subject),
        opted_out=not effective(base, stream.project_settings, stream.settings).memory.enabled,
    )  # fmt: skip


def _ends_before(conn: Connection, session: SessionRow) -> tuple[OpenEnd, ...]:
    by = f"{session.agent}/{session.native}"
    return left_before(conn, session.project, session.stream, session.worktree, session.last_event_at or 0, by)


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
    ends_before: tuple[OpenEnd, ...] = ()
    """What the handoff rests on beside the session's own events."""
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
    changes: list[NewChange] = []
    if changed and new.page is not None:
        page = write_page(conn, new.page)
        changes += _leave(conn, window, session, new, leave_handoff)
        if new.distil:
            schedule(conn, [_distil_wish(conn, window, session), *_never_asked(conn, session)])
        seq = conn.scalar(_TAKE, {"project": session.project})
        conn.run(_FINISHED, {"stream": session.stream, "seq": seq})
        note_generation(conn, session, seq, new.hash)
        changes.append(NewChange(
            kind="session.digested", ref=row_id("ses", session.stream), subject=window.subject, stream=session.stream,
            data={"finished_seq": seq, "page": None if page is None else row_id("pag", page.id)},
        ))  # fmt: skip
    elif not changed:
        changes += _leave(conn, window, session, new, tell_anew)
    record_changes(conn, session.project, changes)


def _leave(
    conn: Connection, window: WindowRow, session: SessionRow, new: NewDigest,
    how: Callable[[Connection, NewHandoff], HandoffRow | None],
) -> Iterator[NewChange]:  # fmt: skip
    """Sessions may be digested in any order: the one that follows in the worktree carries what this one leaves open."""
    if new.handoff is None:
        return
    if _ends_before(conn, session) != new.ends_before:  # one before it was digested since its events were read
        _digest_again(conn, session.stream)
    left = how(conn, new.handoff)
    if left is not None:
        following = stream_after(conn, left)
        if following is not None:
            _digest_again(conn, following)
        yield NewChange(kind="handoff.left", ref=row_id("hnd", left.id), subject=window.subject, stream=session.stream)


_ASKED_BEFORE = text("select 1 from jobs where kind = :kind and key = :key")
AGAIN_US: Final = 4 * 3_600_000_000
AGAIN_LONGEST_US: Final = 24 * 3_600_000_000
"""A session that was asked about is asked about again when nothing new was digested for so long, or after a day of work
without such a rest: one that is taken up and left ten times a day is paid for once or twice, not ten times."""


def _distil_wish(conn: Connection, window: WindowRow, before: SessionRow) -> Schedule:
    """One job a session, armed again by each digest that says something new; one at a time in a project, so that two
    sessions never write one page at once. At once for the first time and after an erase took its pages, else after a
    rest.
    """
    wish = _ask_now(conn, window, history=(before.last_event_at or 0) < conn.now() - AT_WORK_US)
    if before.digest_hash is None or not conn.first(_ASKED_BEFORE, {"kind": DISTIL, "key": wish.key}):
        return wish
    return replace(wish, due_at_us=wish.due_at_us + AGAIN_US, debounce_max_us=AGAIN_LONGEST_US)


AT_WORK_US: Final = 86_400_000_000
"""A session that goes on is digested within a day of its last event; one that was imported long after."""


def _ask_now(conn: Connection, window: WindowRow, *, history: bool = False) -> Schedule:
    """`history`: it is asked about only if few of its project came after it, as its turn comes."""
    args = {"stream": window.stream, **({"history": True} if history else {})}
    return Schedule(
        kind=DISTIL, key=str(window.stream), project=window.project, lane=window.lane, due_at_us=conn.now(),
        uses="model", serial_key=f"distil:{window.project}", args=json.dumps(args),
        rearm_dead=True,
    )  # fmt: skip


NEWEST_MAX: Final = 20
"""Of a project's sessions: no more of a history are asked about unless it goes on."""
CATCH_UP_US: Final = 30 * 86_400_000_000
_NEWEST = text("""
select stream_id, digest_hash from sessions
where project_id = :project and stream_id <> :stream and parent is null and trivial_because is null
  and digest_hash <> '' and last_event_at >= :since
order by stream_id desc limit :limit""")
_ASKED_EVER = text("select 1 from replies where project_id = :project and work = :work and step = 'pages'")


def _never_asked(conn: Connection, session: SessionRow) -> Iterator[Schedule]:
    """Of the newest sessions of the project and of the last 30 days, those digested while there was no model.

    Older ones are left as they are: a history is not paid for because a model was configured. A project that nobody
    works in costs nothing, since only a digest asks for this.
    """
    given = {"project": session.project, "stream": session.stream, "since": conn.now() - CATCH_UP_US}
    for stream, content in conn.rows(_NEWEST, {**given, "limit": NEWEST_MAX}):
        asked = {"project": session.project, "work": session_work(stream, content)}
        if conn.first(_ASKED_BEFORE, {"kind": DISTIL, "key": str(stream)}) or conn.first(_ASKED_EVER, asked):
            continue
        window: Any = conn.scalar(LAST_WINDOW, {"stream": stream})
        if window is not None:
            yield _ask_now(conn, get_window(conn, window))


def session_work(stream: int, digest_hash: str) -> str:
    """What a question about a session is kept under: equal as long as its digest says the same (G8)."""
    return f"session:{stream}:{digest_hash}"


def _parent(conn: Connection, child: SessionRow) -> SessionRow | None:
    found = None if child.parent is None else find_native_session(conn, child.project, child.parent, child.agent)
    return None if found is None or found.stream == child.stream else found


def _wake_parent(conn: Connection, child: SessionRow) -> None:
    """What a sub-agent did belongs into its parent's digest, also where that was made before."""
    parent = _parent(conn, child)
    if parent is None or parent.digested_seq == 0:
        return
    _digest_again(conn, parent.stream)


def _digest_again(conn: Connection, stream: int) -> None:
    window: Any = conn.scalar(LAST_WINDOW, {"stream": stream})
    if window is not None:
        schedule(conn, [digest_wish(get_window(conn, window))])
