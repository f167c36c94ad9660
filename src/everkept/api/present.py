"""Rows of the store as the views that every door shows."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from everkept.api import views as v
from everkept.capture.messages import check_time
from everkept.config import Settings
from everkept.domain.ids import event_id, row_id
from everkept.errors import InvalidInput
from everkept.store.facts import FactRow
from everkept.store.joblist import JobRow
from everkept.store.pauses import PauseRow, why_job_waits
from everkept.store.projects import ProjectRow, is_erased
from everkept.store.receipts import ReceiptRow
from everkept.store.streams import EVIDENCE_NEVER, EventRow, StreamRow
from everkept.store.windows import StageRow, WindowRow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)  # more than any zone is away from UTC
_FIRST_US = (datetime.min.replace(tzinfo=UTC) + _DAY - _EPOCH) // timedelta(microseconds=1)
_LAST_US = (datetime.max.replace(tzinfo=UTC) - _DAY - _EPOCH) // timedelta(microseconds=1)
ROW_MAX = 2**63 - 1
"""The largest number that the store holds."""
_CURSOR = re.compile(rb"\d{1,18}")


def kept(name: str | None) -> str | None:
    """None where the name's owner was erased."""
    return None if is_erased(name) else name


def when(us: int | None, zone_min: int | None = None) -> datetime | None:
    return None if us is None else moment(us, zone_min)


def moment(us: int, zone_min: int | None = None) -> datetime:
    """Microseconds since 1970 as an aware time, in the sender's zone where it is known.

    What lies outside of all years that a time can have is shown as the first or the last of them.
    """
    at = _EPOCH + timedelta(microseconds=min(max(us, _FIRST_US), _LAST_US))
    return at if zone_min is None else at.astimezone(timezone(timedelta(minutes=zone_min)))


def microseconds(at: datetime | None, field: str) -> int | None:
    """An aware time as the store keeps it. Raises InvalidInput for one without a zone or out of range."""
    return None if at is None else check_time(at, field)


def bounded(value: int, field: str, least: int, most: int) -> int:
    if not least <= value <= most:
        raise InvalidInput(f"{field} is {value}; {least} to {most:,} are allowed", field=field, limit=most)
    return value


def cursor_of(last: int) -> str:
    return base64.urlsafe_b64encode(str(last).encode()).decode().rstrip("=")


def read_cursor(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    try:
        number = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except (binascii.Error, ValueError):
        number = b""
    if not _CURSOR.fullmatch(number):
        raise InvalidInput("cursor is not one that a list gave out", field="cursor")
    return int(number)


def page(items: list[Any], rows: list[Any], limit: int) -> v.Page[Any]:
    """A page of a list; `rows` has one more than `limit` where there is a next page, and each row an `id`."""
    more = len(rows) > limit
    return v.Page(items=items[:limit], next_cursor=cursor_of(rows[limit - 1].id) if more else None)


def message_view(e: EventRow) -> v.Message:
    return v.Message(
        event_id=event_id(e.stream, e.seq),
        seq=e.seq,
        role=e.role,
        name=e.name,
        content=e.content,
        occurred_at=moment(e.occurred_at, e.zone_min),
        recorded_at=moment(e.recorded_at),
        metadata=json.loads(e.metadata or "{}"),
        tokens=e.tokens,
        model=e.model,
        evidence=e.evidence != EVIDENCE_NEVER,
    )


def thread_view(s: StreamRow, due_at: int | None) -> v.Thread:
    return v.Thread(
        id=s.name,
        subject=s.subject_name,
        created_at=moment(s.created_at),
        last_message_at=when(s.last_recorded_at),
        messages=s.last_seq,
        captured=s.covered_seq,
        summary=s.summary,
        window_due_at=when(due_at),
        settings=json.loads(s.settings),
    )


def receipt_view(r: ReceiptRow, outcome: Any = None) -> v.Receipt:
    return v.Receipt(
        event_id=event_id(r.stream, r.seq),
        thread=r.thread,
        seq=r.seq,
        state=r.state,
        reason=r.reason,
        next_try_at=when(r.next_try_at),
        episode_id=None if r.episode is None else row_id("epi", r.episode),
        summary=r.summary,
        facts=r.facts,
        recorded_at=moment(r.recorded_at),
        outcome=outcome,
    )


def stage_view(s: StageRow) -> v.Stage:
    return v.Stage(
        state=s.state, attempts=s.attempts, error=s.error, next_try_at=when(s.next_try_at), reason=s.reason,
        job_id=None if s.job is None else row_id("job", s.job), completed_at=when(s.completed_at),
    )  # fmt: skip


def episode_view(w: WindowRow, stages: dict[str, StageRow]) -> v.Episode:
    return v.Episode(
        id=row_id("epi", w.id), thread=w.thread, subject=w.subject_name, start_seq=w.start_seq, end_seq=w.end_seq,
        opened_at=moment(w.opened_at), opened_because=w.opened_because, archived=w.archived, summary=w.summary,
        learnings=json.loads(w.learnings or "[]"), stages={name: stage_view(s) for name, s in stages.items()},
    )  # fmt: skip


def fact_view(f: FactRow, events: list[tuple[int, int]], *, live: bool) -> v.Fact:
    return v.Fact(
        id=row_id("fct", f.id),
        subject=f.subject_name,
        entity=f.entity,
        predicate=f.predicate,
        object=f.object,
        text=f.text,
        quote=f.quote,
        confidence=f.confidence,
        valid_from=when(f.valid_from, f.zone_min),
        valid_until=when(f.closed_at if f.closed_at is not None else f.valid_until, f.zone_min),
        said_at=moment(f.said_at, f.zone_min),
        recorded_at=moment(f.recorded_at),
        retired_at=when(f.retired_at),
        retired_because=f.retired_because,
        superseded_by=None if f.superseded_by is None else row_id("fct", f.superseded_by),
        pinned=f.pinned,
        unsettled=f.unsettled,
        duplicate_of=None if f.duplicate_of is None else row_id("fct", f.duplicate_of),
        live=live,
        source="hand" if f.window is None else "window",
        stated_by=f.stated_by,
        corrects=None if f.corrects is None else row_id("fct", f.corrects),
        episode_id=None if f.window is None else row_id("epi", f.window),
        event_ids=[event_id(*e) for e in events],
    )


def pause_view(row: PauseRow) -> v.Pause:
    return v.Pause(what=row.what, name=row.name, why=row.why, by=row.by, since=moment(row.since))


def job_view(j: JobRow, pauses: Sequence[PauseRow], settings: Settings) -> v.Job:
    stopped = why_job_waits(pauses, j.kind, j.uses, settings) if j.state in ("waiting", "ready") else None
    return v.Job(
        paused=stopped,
        id=row_id("job", j.id),
        kind=j.kind,
        key=j.key,
        project=j.project,
        subject=j.subject,
        state=j.state,
        due_at=when(j.due_at),
        attempts=j.attempts,
        crashes=j.crashes,
        error=j.error,
        error_class=j.error_class,
        input=j.input,
        lease_owner=j.lease_owner,
        lease_until=when(j.lease_until),
        fence=j.fence,
        created_at=moment(j.created_at),
        finished_at=when(j.finished_at),
        history=[{**h, "at": moment(h["at"]).isoformat()} for h in j.history],
    )


def project_view(row: ProjectRow, messages: int, facts: int) -> v.Project:
    return v.Project(
        id=row_id("prj", row.id), name=row.name, created_at=moment(row.created_at), settings=json.loads(row.settings),
        messages=messages, facts=facts,
    )  # fmt: skip
