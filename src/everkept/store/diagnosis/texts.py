"""Every text that the store keeps, one after another in small pieces, with its id and what erases it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import TextClause, text

from everkept.domain.ids import event_id, row_id
from everkept.store.connection import Connection
from everkept.store.project_names import shown
from everkept.store.projects import shown_name

ROWS_AT_ONCE: Final = 50
RESTS_ON = "erase the messages that it rests on: it goes with them"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptText:
    project: str
    kind: str
    """message, session, thread, subject, entity, project, folder, page, fact, summary, handoff, offer, proposal or
    reply."""
    id: str
    text: str
    erase: str
    """The command that destroys it, or what it goes with; it may name what holds the secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Rows of (first key, second key, project, what belongs to it, text), in the order of their keys."""

    kind: str
    rows: TextClause
    name: Callable[[Any, Any], str]
    erase: Callable[[str, str, Any], str]
    """(id, project, what belongs to it) → what to do."""
    before: tuple[Any, Any] = (-1, -1)
    """Keys of their types that are before all others."""


def _rows(a: str, b: str, belongs: str, parts: str, tables: str) -> TextClause:
    return text(f"""
select {a}, {b}, {shown("p")}, {belongs}, {parts} from {tables}
where ({a}, {b}) > (:a, :b) order by 1, 2 limit :limit""")


def _joined(*columns: str) -> str:
    return " || '\n' || ".join(f"coalesce({column}, '')" for column in columns)


def _rests(_id: str, _project: str, _belongs: Any) -> str:
    return RESTS_ON


def _erase_event(id_: str, project: str, _belongs: Any) -> str:
    return f"everkept erase --event {id_} --project {project}"


def _erase_session(id_: str, project: str, _belongs: Any) -> str:
    return f"everkept erase --session {id_} --project {project}"


def _erase_thread(_id: str, project: str, name: Any) -> str:
    return f"everkept erase --thread {name} --project {project}"


def _erase_subject(_id: str, project: str, name: Any) -> str:
    return f"everkept erase --subject {name} --project {project}"


def _erase_project(_id: str, project: str, _belongs: Any) -> str:
    return f"everkept erase --project {project}"


def _erase_fact(_id: str, project: str, subject: Any) -> str:
    return RESTS_ON if subject is None else f"{_erase_subject(_id, project, subject)}: it rests on no message"


def _erase_page(_id: str, project: str, stream: Any) -> str:
    if stream is None:
        return "write the page without it; its earlier versions go with the project alone"
    return f"everkept erase --session {row_id('ses', stream)} --project {project}"


_SOURCES: Final = (
    _Source(
        kind="message", name=event_id, erase=_erase_event,
        rows=_rows("e.stream_id", "e.seq", "null", _joined("e.content", "e.name", "e.model", "e.metadata"),
                     "events e join projects p on p.id = e.project_id and e.erased_at is null"),
    ),
    _Source(
        kind="page", name=lambda page, version: f"{row_id('pag', page)}@{version}", erase=_erase_page,
        rows=_rows("v.page_id", "v.version", "g.stream_id",
                     _joined("v.title", "v.body", "v.author", "v.reason", "g.source"),
                     "page_versions v join pages g on g.id = v.page_id join projects p on p.id = g.project_id"),
    ),
    _Source(
        kind="fact", name=lambda fact, _: row_id("fct", fact), erase=_erase_fact,
        rows=_rows("f.id", "0", "case when f.window_id is null then u.name end",
                     _joined("f.text", "f.quote", "f.predicate", "f.object", "f.retired_because"),
                     "facts f join projects p on p.id = f.project_id join subjects u on u.id = f.subject_id"),
    ),
    _Source(
        kind="summary", name=lambda window, _: row_id("epi", window), erase=_rests,
        rows=_rows("w.id", "0", "null", _joined("w.summary", "w.learnings"),
                     "windows w join projects p on p.id = w.project_id"),
    ),
    _Source(
        kind="summary", name=lambda window, piece: f"{row_id('epi', window)}#{piece}", erase=_rests,
        rows=_rows("s.window_id", "s.slice", "null", _joined("s.summary", "s.learnings", "s.rejected"),
                     "slices s join windows w on w.id = s.window_id join projects p on p.id = w.project_id"),
    ),
    _Source(
        kind="handoff", name=lambda handoff, _: row_id("hnd", handoff), erase=_rests,
        rows=_rows("h.id", "0", "null", _joined("h.title", "h.body", "h.open_ends", "h.acknowledged_by"),
                     "handoffs h join projects p on p.id = h.project_id"),
    ),
    _Source(
        kind="offer", name=lambda offer, _: row_id("off", offer), erase=_rests,
        rows=_rows("o.id", "0", "null", _joined("o.body"),
                     "offers o join projects p on p.id = o.project_id"),
    ),
    _Source(
        kind="session", name=lambda stream, _: row_id("ses", stream), erase=_erase_session,
        rows=_rows("x.stream_id", "0", "null",
                     _joined("x.agent", "x.native_id", "x.title", "x.cwd", "x.worktree", "x.branch", "x.model",
                             "x.transcript"),
                     "sessions x join projects p on p.id = x.project_id"),
    ),
    _Source(
        kind="thread", name=lambda stream, _: str(stream), erase=_erase_thread,
        rows=_rows("s.id", "0", "s.name", _joined("s.name", "s.summary"),
                     "streams s join projects p on p.id = s.project_id and s.kind = 'thread'"),
    ),
    _Source(
        kind="subject", name=lambda subject, _: str(subject), erase=_erase_subject,
        rows=_rows("u.id", "0", "u.name", _joined("u.name"), "subjects u join projects p on p.id = u.project_id"),
    ),
    _Source(
        kind="project", name=lambda project, _: str(project), erase=_erase_project,
        rows=_rows("p.id", "0", "null", _joined("p.name"), "projects p"),
    ),
    _Source(
        kind="entity", name=lambda entity, _: str(entity), erase=_erase_subject,
        rows=_rows("n.id", "0", "u.name", _joined("n.name"),
                     "entities n join projects p on p.id = n.project_id join subjects u on u.id = n.subject_id"),
    ),
    _Source(
        kind="folder", name=lambda sign, _: f"known by its {sign}", erase=_erase_project, before=("", ""),
        rows=_rows("a.kind", "a.value", "null", _joined("a.value"),
                     "project_aliases a join projects p on p.id = a.project_id"),
    ),
    _Source(
        kind="proposal", name=lambda proposal, _: row_id("prp", proposal), erase=_rests,
        rows=_rows("r.id", "0", "null", _joined("r.title", "r.body", "r.why", "r.state_reason", "r.decided_by"),
                     "proposals r join projects p on p.id = r.project_id"),
    ),
    _Source(
        kind="reply", name=lambda reply, _: f"reply {reply}", erase=_rests,
        rows=_rows("r.id", "0", "null", _joined("r.text"),
                     "replies r join projects p on p.id = r.project_id"),
    ),
)  # fmt: skip


def kept_texts(conn: Connection) -> Iterator[KeptText]:
    """Each piece is one short read, so that a large store is neither held in memory nor kept from its checkpoints."""
    for source in _SOURCES:
        a, b = source.before
        while rows := conn.rows(source.rows, {"a": a, "b": b, "limit": ROWS_AT_ONCE}):
            for a, b, project, belongs, words in rows:
                id_, named = source.name(a, b), str(shown_name(project))
                yield KeptText(project=named, kind=source.kind, id=id_, text=words,
                               erase=source.erase(id_, named, belongs))  # fmt: skip
