"""Where a session, a page or a handoff comes from: the events, the session and the versions behind it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from everkept.api import views as v
from everkept.api.agents import handoff_view, page_view, session_view, version_view
from everkept.api.present import message_view
from everkept.domain.ids import event_id, parse_event_id, parse_row_id, row_id
from everkept.errors import NotFound
from everkept.store.connection import Connection
from everkept.store.handoffs import get_handoff
from everkept.store.pages import get_page, page_history
from everkept.store.sessions import SessionRow, find_session
from everkept.store.streams import events_at, last_events, list_events

EVENTS_SHOWN: Final = 20
"""Of a session; `sessions show` has all of them."""
VERSIONS_SHOWN: Final = 50
_CITED = re.compile(r"\bevt_[1-9]\d{0,17}_[1-9]\d{0,17}\b")


def why_session(conn: Connection, project: int, id_: str) -> v.Why:
    """Who told of it, its first events, and what was made of it."""
    session = find_session(conn, project, parse_row_id("ses", id_))
    if session is None:
        raise NotFound(f"there is no session {id_} in this project", id=id_)
    events = [message_view(e) for e in list_events(conn, session.stream, 1, session.last_seq, EVENTS_SHOWN)]
    steps = [_session_step(session), *_events_steps(session, events), _digest_step(session)]
    return v.Why(id=id_, kind="session", text=session_view(session).title or "", events=events, steps=steps)


def why_page(conn: Connection, project: int, name: str) -> v.Why:
    """The events that it cites, the session or file that it came from, and each of its versions, newest first."""
    page = get_page(conn, project, name)
    view = page_view(page, body=True)
    places = [parse_event_id(cited) for cited in dict.fromkeys(_CITED.findall(page.body))]
    events = [message_view(e) for e in events_at(conn, project, places)]
    steps: list[dict[str, Any]] = []
    if page.source is not None:
        steps.append({"step": "file", "source": page.source})
    session = None if page.stream is None else find_session(conn, project, page.stream)
    if session is not None:
        steps.append(_session_step(session))
        if not events:
            events = [message_view(e) for e in list_events(conn, session.stream, 1, session.last_seq, EVENTS_SHOWN)]
            steps += _events_steps(session, events)
    for row in page_history(conn, page.id, VERSIONS_SHOWN):
        version = version_view(row)
        steps.append({
            "step": "version", "version": version.version, "base": version.base, "author": version.author,
            "reason": version.reason, "at": version.created_at.isoformat(),
        })  # fmt: skip
    if page.superseded_by is not None:
        steps.append({"step": "superseded", "by": row_id("pag", page.superseded_by)})
    return v.Why(id=view.id, kind=f"{view.kind} page", text=view.title, events=events, steps=steps)


def why_handoff(conn: Connection, project: int, id_: str) -> v.Why:
    """The session that left it, its last events, and who took it up."""
    row = get_handoff(conn, project, parse_row_id("hnd", id_))
    view = handoff_view(row)
    session = find_session(conn, project, row.stream)
    assert session is not None, "a handoff is not read without its session"
    events = [message_view(e) for e in last_events(conn, row.stream, EVENTS_SHOWN)]
    state = {
        "step": "state", "state": view.state, "left_at": view.left_at.isoformat(), "taken_up_by": view.acknowledged_by,
        "replaced_by": None if row.replaced_by is None else row_id("hnd", row.replaced_by),
    }  # fmt: skip
    steps = [_session_step(session), *_events_steps(session, events), _digest_step(session), state]
    return v.Why(id=id_, kind="handoff", text=view.title, events=events, steps=steps)


def _session_step(row: SessionRow) -> dict[str, Any]:
    session = session_view(row)
    return {
        "step": "session", "id": session.id, "agent": session.agent, "native_id": session.native_id,
        "told_by": {"hook": "hooks", "import": "its transcript"}[row.origin], "parent": session.parent,
        "worktree": session.worktree, "branch": session.branch,
    }  # fmt: skip


def _events_steps(row: SessionRow, shown: Sequence[v.Message]) -> list[dict[str, Any]]:
    if not row.last_seq:
        return []
    first, last = event_id(row.stream, 1), event_id(row.stream, row.last_seq)
    return [{"step": "events", "first": first, "last": last, "shown": f"{len(shown):,} of {row.last_seq:,}"}]


def _digest_step(row: SessionRow) -> dict[str, Any]:
    """How far it was digested, and into what."""
    return {
        "step": "digest", "through": event_id(row.stream, row.digested_seq) if row.digested_seq else None,
        "state": session_view(row).state, "page": row.page, "no_page_because": row.trivial_because,
    }  # fmt: skip
