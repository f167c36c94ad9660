"""Receipts: where a message is, computed from event, passage, window and jobs, and never stored (G3)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from sqlalchemy import text

from everkept.config import Settings
from everkept.domain.ids import event_id, row_id
from everkept.errors import NotFound
from everkept.store.connection import Connection, Row
from everkept.store.effective import effective
from everkept.store.pauses import list_pauses, why_kind_waits
from everkept.store.streams import EVIDENCE_NEVER, EVIDENCE_WHILE_OFF, TIMER
from everkept.store.windows import StageRow, WindowRow, stages_of

ReceiptState = Literal["accepted", "searchable", "embedded", "remembered", "skipped", "failed", "erased"]
Place = tuple[int, int]
"""(stream, seq)."""
NO_EVIDENCE = "marked as no evidence: kept and found, never remembered from"
SAID_WHILE_OFF = "memory.enabled was false when it was said"
MEMORY_OFF = "memory.enabled is false"
NO_TIMER = "window.idle_s is null: no timer; end the thread to capture it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptRow:
    """Where one message is. Times in microseconds since 1970."""

    stream: int
    seq: int
    thread: str
    state: ReceiptState
    reason: str | None = None
    next_try_at: int | None = None
    episode: int | None = None
    summary: str | None = None
    facts: str | None = None
    recorded_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    stream: int
    seq: int
    thread: str
    recorded_at: int
    erased: bool
    evidence: int
    window: int | None
    reached: ReceiptState
    """How far it came without its episode: accepted, searchable or embedded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """A stream whose last events lie in no window yet, with its timer's job where there is one."""

    settings: Settings
    last_recorded_at: int
    ends: bool
    """An explicit end asks for its windows, or one is full: it opens without an idle time."""
    timer: int | None
    state: str | None
    due_at: int | None
    attempts: int
    error: str | None


# The window is the first one that ends at or after the event: windows tile the stream, so no other can hold it.
_EVENTS = text("""
select e.stream_id, e.seq, s.name, e.recorded_at, e.erased_at, e.evidence,
  (select w.id from windows w where w.stream_id = e.stream_id and w.end_seq >= e.seq order by w.end_seq limit 1),
  p.hidden, p.embedded
from events e join streams s on s.id = e.stream_id
  left join passages p on p.kind = 'turn' and p.stream_id = e.stream_id and p.seq = e.seq
where e.project_id = :project and (e.stream_id, e.seq) in (select one, two from number_pairs(:places))""")
_WINDOWS = text("""
select w.id, w.project_id, w.subject_id, u.name, w.stream_id, s.name, s.lane_id, w.start_seq, w.end_seq, w.opened_at,
  w.opened_because, w.slices, w.skipped_because, w.archived, w.summary_at, w.facts_at, s.kind
from windows w join streams s on s.id = w.stream_id join subjects u on u.id = w.subject_id
where w.id in (select value from numbers(:windows))""")
_OPEN = text("""
select s.id, o.settings, s.settings, s.last_recorded_at, s.last_seq - s.covered_seq, s.pending_tokens,
  s.end_through > s.covered_seq, j.id, j.state, j.due_at, j.attempts, j.error
from streams s join projects o on o.id = s.project_id
  left join jobs j on j.kind = 'open_window' and j.key = cast(s.id as text)
where s.id in (select value from numbers(:streams))""")


def receipts_of(conn: Connection, project: int, places: Sequence[Place], base: Settings) -> list[ReceiptRow]:
    """The receipts of the events at these places, in that order, in four statements for any number of them.

    Raises NotFound where a place does not exist in the project.
    """
    events = _find_events(conn, project, places)
    windows = _find_windows(conn, {e.window for e in events.values() if e.window is not None})
    stages = stages_of(conn, list(windows.values()))
    paused = why_kind_waits(list_pauses(conn), TIMER)
    streams = _find_open(conn, {e.stream for e in events.values() if e.window is None}, base)
    found = {}
    for place, event in events.items():
        if event.window is None:
            found[place] = _uncovered(event, streams[event.stream], conn.now(), paused)
        else:
            found[place] = _covered(event, windows[event.window], stages[event.window])
    return [found[place] for place in places]


# ---- reading


def _find_events(conn: Connection, project: int, places: Sequence[Place]) -> dict[Place, _Event]:
    rows = conn.rows(_EVENTS, {"project": project, "places": json.dumps(list(dict.fromkeys(places)))})
    found = {(r[0], r[1]): _event(r) for r in rows}
    for stream, seq in places:
        if (stream, seq) not in found:
            raise NotFound(f"there is no message {event_id(stream, seq)} in this project", id=event_id(stream, seq))
    return found


def _event(r: Row) -> _Event:
    hidden, embedded = r[7], r[8]
    reached: ReceiptState = "accepted" if hidden is None or hidden else "searchable" if embedded is None else "embedded"
    return _Event(
        stream=r[0], seq=r[1], thread=r[2], recorded_at=r[3], erased=r[4] is not None, evidence=r[5], window=r[6],
        reached=reached,
    )  # fmt: skip


def _find_windows(conn: Connection, ids: set[int]) -> dict[int, WindowRow]:
    """Without their texts, which no receipt shows."""
    if not ids:
        return {}
    rows = conn.rows(_WINDOWS, {"windows": json.dumps(sorted(ids))})
    return {
        r[0]: WindowRow(
            id=r[0], project=r[1], subject=r[2], subject_name=r[3], stream=r[4], thread=r[5], lane=r[6], start_seq=r[7],
            end_seq=r[8], opened_at=r[9], opened_because=r[10], slices=r[11], skipped_because=r[12],
            archived=bool(r[13]), summary=None, learnings=None, summary_at=r[14], facts_at=r[15], kind=r[16],
        )
        for r in rows
    }  # fmt: skip


def _find_open(conn: Connection, ids: set[int], base: Settings) -> dict[int, _Open]:
    if not ids:
        return {}
    return {r[0]: _open_stream(r, base) for r in conn.rows(_OPEN, {"streams": json.dumps(sorted(ids))})}


def _open_stream(r: Row, base: Settings) -> _Open:
    settings = effective(base, r[1], r[2])
    full = r[4] >= settings.window.events_max or r[5] >= settings.window.tokens_max
    return _Open(
        settings=settings, last_recorded_at=r[3] or 0, ends=bool(r[6]) or full, timer=r[7], state=r[8], due_at=r[9],
        attempts=r[10] or 0, error=r[11],
    )  # fmt: skip


# ---- deciding


def _blank(event: _Event) -> ReceiptRow:
    return ReceiptRow(
        stream=event.stream, seq=event.seq, thread=event.thread, state=event.reached, recorded_at=event.recorded_at,
        episode=event.window,
    )  # fmt: skip


def _never(event: _Event) -> ReceiptRow | None:
    """What holds wherever the event lies: it was erased, or is no evidence."""
    if event.erased:
        return replace(_blank(event), state="erased", reason="erased")
    if event.evidence == EVIDENCE_NEVER:
        return replace(_blank(event), state="skipped", reason=NO_EVIDENCE)
    if event.evidence == EVIDENCE_WHILE_OFF:
        return replace(_blank(event), state="skipped", reason=SAID_WHILE_OFF)
    return None


def _covered(event: _Event, window: WindowRow, stages: Mapping[str, StageRow]) -> ReceiptRow:
    summary, facts = stages["summary"], stages["facts"]
    receipt = replace(_never(event) or _blank(event), summary=summary.state, facts=facts.state)
    if receipt.reason is not None:
        return receipt
    if window.skipped_because is not None:
        return replace(receipt, state="skipped", reason=window.skipped_because)
    if summary.state == facts.state == "completed":
        return replace(receipt, state="remembered")
    dead = [name for name, stage in stages.items() if stage.state == "dead"]
    if dead:
        reason = "; ".join(_given_up(window.id, name, stages[name].error) for name in dead)
        return replace(receipt, state="failed", reason=reason)
    left = [(name, stage) for name, stage in stages.items() if stage.state != "completed"]
    tries = [stage.next_try_at for _, stage in left if stage.next_try_at is not None]
    reason = "; ".join(_waits(name, stage) for name, stage in left)
    return replace(receipt, reason=reason, next_try_at=min(tries, default=None))


def _given_up(window: int, stage: str, error: str | None) -> str:
    return f"{stage}: {error or 'given up'}; retry by hand: everkept jobs retry {row_id('epi', window)} --stage {stage}"


def _waits(name: str, stage: StageRow) -> str:
    if stage.state == "failed":
        how = f"failed {_times(stage.attempts)}" if stage.attempts else "put off"
        if stage.reason is not None:
            return f"{name}: {how} ({stage.error}); {stage.reason}"
        when = "" if stage.next_try_at is None else f", next try {_moment(stage.next_try_at)}"
        return f"{name}: {how} ({stage.error}){when}"
    if stage.state == "processing":
        return f"{name}: being worked on"
    return f"{name}: {stage.reason or 'waits for its turn'}"


def _uncovered(event: _Event, stream: _Open, now: int, paused: str | None) -> ReceiptRow:
    receipt = _never(event) or _blank(event)
    if receipt.reason is not None:
        return receipt
    if not stream.settings.memory.enabled:
        return replace(receipt, state="skipped", reason=MEMORY_OFF)
    if stream.state == "dead":
        reason = f"its episode: {stream.error}; retry by hand: everkept jobs retry {row_id('job', stream.timer or 0)}"
        return replace(receipt, state="failed", reason=reason)
    if stream.settings.window.idle_s is None and not stream.ends:
        return replace(receipt, reason=NO_TIMER)
    reason, at = _opens(stream, now)
    if paused is not None and at is not None and at <= now:
        return replace(receipt, reason=f"its episode: {paused}")
    return replace(receipt, reason=reason, next_try_at=at)


def _opens(stream: _Open, now: int) -> tuple[str, int | None]:
    """Why there is no episode yet, and when that is looked at next."""
    if stream.state == "leased":
        return "its episode is being opened", None
    if stream.state not in ("waiting", "ready") or stream.due_at is None:
        at = stream.last_recorded_at + int(stream.settings.window.abandoned_s * 1e6)
        return f"no timer is armed; the sweep for abandoned threads opens its episode after {_moment(at)}", at
    if stream.error is not None:
        how = f"failed {_times(stream.attempts)}" if stream.attempts else "was put off"
        return f"its episode: {how} ({stream.error}), next try {_moment(stream.due_at)}", stream.due_at
    if stream.due_at <= now:
        return "its episode is due, and waits for a worker", stream.due_at
    return f"waits for its episode, which opens at {_moment(stream.due_at)}", stream.due_at


def _times(attempts: int) -> str:
    return "once" if attempts == 1 else f"{attempts} times"


def _moment(us: int) -> str:
    return datetime.fromtimestamp(us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
