"""Where a proposal comes from: the words of sessions that it rests on, the review that made it, and its decisions."""

from __future__ import annotations

from typing import Any

from everkept.api import views as v
from everkept.api.present import message_view, when
from everkept.domain.ids import event_id, parse_row_id, row_id
from everkept.store.connection import Connection
from everkept.store.generations import review_work
from everkept.store.pages import page_by_id
from everkept.store.proposals import ProposalRow, evidence_of, get_proposal
from everkept.store.review_list import find_review
from everkept.store.reviews import RULES
from everkept.store.streams import events_at
from everkept.store.trace import trace_work


def why_proposal(conn: Connection, project: int, id_: str) -> v.Why:
    """The events that it quotes, the review that made it with the questions it paid for, and what became of it."""
    row = get_proposal(conn, project, parse_row_id("prp", id_))
    quotes = evidence_of(conn, row.id)
    events = [message_view(e) for e in events_at(conn, project, [(quote.stream, quote.seq) for quote in quotes])]
    quoted = [
        {"step": "quote", "event": event_id(quote.stream, quote.seq), "session": row_id("ses", quote.stream),
         "quote": quote.text} for quote in quotes
    ]  # fmt: skip
    made = {
        "step": "proposal", "action": row.action, "page": row.slug, "base": row.base, "reviewer": row.reviewer,
        "confidence": row.confidence, "why": row.why, "at": _at(row.created_at),
    }  # fmt: skip
    steps = [*quoted, *_review_steps(conn, row), made, *_decision_steps(conn, row)]
    return v.Why(id=id_, kind="proposal", text=row.title, events=events, steps=steps)


def _review_steps(conn: Connection, row: ProposalRow) -> list[dict[str, Any]]:
    """None where it was made by hand, by a count of outcomes, or by a look at a checkout."""
    review = None if row.review is None else find_review(conn, row.project, row.review)
    if review is None:
        return []
    paid = [] if row.reviewer == RULES else trace_work(conn, row.project, review_work(row.review or 0))
    return [
        {"step": "review", "id": row_id("rev", row.review or 0), "session": row_id("ses", review.stream),
         "generation": review.generation, "asked_by": review.asked_by, "state": review.state}, *paid
    ]  # fmt: skip


def _decision_steps(conn: Connection, row: ProposalRow) -> list[dict[str, Any]]:
    state = {
        "step": "state", "state": row.state, "by": row.decided_by, "reason": row.state_reason,
        "at": _at(row.decided_at),
    }  # fmt: skip
    page = None if row.page is None else page_by_id(conn, row.project, row.page)
    if page is None:
        return [state]
    written = {
        "step": "page", "id": row_id("pag", page.id), "slug": page.slug, "before": row.previous, "version": row.version,
        "undone_by": row.undone_by,
    }  # fmt: skip
    return [state, written]


def _at(us: int | None) -> str | None:
    moment = when(us)
    return None if moment is None else moment.isoformat()
