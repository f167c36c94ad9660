"""Every text that the store keeps, one after another in small pieces, with its id and what erases it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import TextClause, text

from everkept.domain.ids import event_id, row_id
from everkept.store.connection import Connection
from everkept.store.projects import shown_name

ROWS_AT_ONCE: Final = 50
RESTS_ON = "erase the messages that it rests on: it goes with them"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptText:
    project: str
    kind: str
    """message, page, fact, summary, handoff, offer, reply."""
    id: str
    text: str
    erase: str
    """The command that destroys it, or what it goes with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Rows of (first key, second key, project, what belongs to it, text), in the order of their keys."""

    kind: str
    rows: TextClause
    name: Callable[[int, int], str]
    erase: Callable[[str, str, Any], str]
    """(id, project, what belongs to it) → what to do."""


def _rows(a: str, b: str, belongs: str, parts: str, tables: str) -> TextClause:
    return text(f"""
select {a}, {b}, p.name, {belongs}, {parts} from {tables}
where ({a}, {b}) > (:a, :b) order by 1, 2 limit :limit""")


def _joined(*columns: str) -> str:
    return " || char(10) || ".join(f"coalesce({column}, '')" for column in columns)


def _rests(_id: str, _project: str, _belongs: Any) -> str:
    return RESTS_ON


def _erase_event(id_: str, project: str, _belongs: Any) -> str:
    return f"everkept erase --event {id_} --project {project}"


def _erase_page(_id: str, project: str, stream: Any) -> str:
    if stream is None:
        return "write the page without it; its earlier versions go with the project alone"
    return f"everkept erase --session {row_id('ses', stream)} --project {project}"


_SOURCES: Final = (
    _Source(
        kind="message", name=event_id, erase=_erase_event,
        rows=_rows("e.stream_id", "e.seq", "null", _joined("e.content", "e.name", "e.metadata"),
                     "events e join projects p on p.id = e.project_id and e.erased_at is null"),
    ),
    _Source(
        kind="page", name=lambda page, version: f"{row_id('pag', page)}@{version}", erase=_erase_page,
        rows=_rows("v.page_id", "v.version", "g.stream_id", _joined("v.title", "v.body", "v.reason"),
                     "page_versions v join pages g on g.id = v.page_id join projects p on p.id = g.project_id"),
    ),
    _Source(
        kind="fact", name=lambda fact, _: row_id("fct", fact), erase=_rests,
        rows=_rows("f.id", "0", "null", _joined("f.text", "f.quote", "f.object"),
                     "facts f join projects p on p.id = f.project_id"),
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
        rows=_rows("h.id", "0", "null", _joined("h.title", "h.body", "h.open_ends"),
                     "handoffs h join projects p on p.id = h.project_id"),
    ),
    _Source(
        kind="offer", name=lambda offer, _: row_id("off", offer), erase=_rests,
        rows=_rows("o.id", "0", "null", _joined("o.body"),
                     "offers o join projects p on p.id = o.project_id"),
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
        a = b = -1
        while rows := conn.rows(source.rows, {"a": a, "b": b, "limit": ROWS_AT_ONCE}):
            for a, b, project, belongs, words in rows:
                id_, named = source.name(a, b), str(shown_name(project))
                yield KeptText(project=named, kind=source.kind, id=id_, text=words,
                               erase=source.erase(id_, named, belongs))  # fmt: skip
