"""Deriving again: which windows, what it would cost, and scheduling their jobs a chunk at a time (G16)."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from everkept.store.connection import Connection
from everkept.store.jobs import schedule
from everkept.store.windows import EXTRACT, SUMMARISE, WindowRow, get_window, jobs_of, list_windows

CHUNK = 50
PROMPT_TOKENS = 900
REPLY_TOKENS = {SUMMARISE: 250, EXTRACT: 600}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    project: int
    stream: int | None
    subject: int | None
    since: int | None
    until: int | None
    include_skipped: bool
    fresh: bool
    model: str | None
    """The model of today: replies of another one are no answer to its questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    windows: int
    questions: int
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    scheduled: int
    last: int
    done: bool


_TOKENS = text("select coalesce(sum(tokens), 0) from events where stream_id = :stream and seq between :start and :end")
_ASKS = text("""
select step, coalesce(max(ask), 0) from replies
where project_id = :project and work = :work and step in ('summary', 'facts') group by step""")
_KEPT = text("""
select count(distinct step) from replies where project_id = :project and work = :work and model = :model
  and step in ('summary', 'facts') and text is not null and rejected_because is null""")
_UNSKIP = text("update windows set skipped_because = null where id = :id")
_EVIDENCE = text("""
update events set evidence = 1 where stream_id = :stream and seq between :start and :end and evidence = 2""")


def plan_reprocess(conn: Connection, selection: Selection) -> Plan:
    """How many windows, and how many questions a model would have to be paid for."""
    windows = questions = tokens = 0
    before = None
    while rows := _rows(conn, selection, before, 500):
        for w in rows:
            if w.skipped_because is not None and not selection.include_skipped:
                continue
            windows += 1
            asked = _to_be_asked(conn, selection, w)
            questions += asked
            if asked:
                tokens += conn.scalar(_TOKENS, {"stream": w.stream, "start": w.start_seq, "end": w.end_seq})
        before = rows[-1].id
    tokens_in = 2 * tokens + questions * PROMPT_TOKENS
    return Plan(
        windows=windows,
        questions=questions,
        tokens_in=tokens_in,
        tokens_out=questions // 2 * sum(REPLY_TOKENS.values()),
    )


def _to_be_asked(conn: Connection, s: Selection, w: WindowRow) -> int:
    """Questions about a window that no journaled reply answers: all of them where they are asked afresh."""
    if s.fresh or s.model is None:
        return 2 * w.slices
    kept = sum(
        conn.scalar(_KEPT, {"project": w.project, "work": f"window:{w.id}.{part}", "model": s.model})
        for part in range(w.slices)
    )
    return 2 * w.slices - int(kept)


def _rows(conn: Connection, s: Selection, before: int | None, limit: int) -> list[WindowRow]:
    return list_windows(
        conn, s.project, stream=s.stream, subject=s.subject, before=before, since=s.since, until=s.until, limit=limit
    )


def reprocess_chunk(conn: Connection, selection: Selection, before: int | None) -> Chunk | None:
    """Schedule the jobs of the next windows; None where there are none. Repeating it schedules the same jobs again."""
    rows = _rows(conn, selection, before, CHUNK)
    if not rows:
        return None
    scheduled = 0
    for w in rows:
        if w.skipped_because is not None:
            if not selection.include_skipped:
                continue
            conn.run(_UNSKIP, {"id": w.id})
            conn.run(_EVIDENCE, {"stream": w.stream, "start": w.start_seq, "end": w.end_seq})
            w = get_window(conn, w.id)
        for part in range(w.slices):
            asks: dict[str, int] = (
                dict(conn.rows(_ASKS, {"project": w.project, "work": f"window:{w.id}.{part}"}))
                if selection.fresh
                else {}
            )
            for kind, step in ((SUMMARISE, "summary"), (EXTRACT, "facts")):
                wishes = jobs_of(w, kinds=[kind], args={"fresh": asks.get(step, 0), "by_hand": True})
                schedule(conn, [wishes[part]])
                scheduled += 1
    return Chunk(scheduled=scheduled, last=rows[-1].id, done=len(rows) < CHUNK)
