"""Finished stretches of sessions as people see them: which were looked at, what came of it, and which still wait."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from everkept.domain.review.values import GenerationState, Refusal
from everkept.store.connection import Connection
from everkept.store.reviews import AskedBy


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedReview:
    """A stretch, with its review where it has one."""

    generation: int
    stream: int
    state: GenerationState
    reason: str | None
    ended_at: int | None
    finished_at: int
    passed_at: int | None
    review: int | None
    asked_by: AskedBy | None
    staged: int
    refused: tuple[Refusal, ...]
    note: str | None


_COLUMNS = """
select g.seq, g.stream_id, g.state, g.reason, g.ended_at, g.finished_at, g.passed_at, r.id, r.asked_by,
  coalesce(r.staged, 0), coalesce(r.refused, '[]'), r.note
from generations g left join reviews r
  on r.project_id = g.project_id and r.stream_id = g.stream_id and r.generation = g.seq
where g.project_id = :project and g.stream_id is not null and not exists (
  select 1 from erasures x where x.done_at is null
  and x.project_id = g.project_id and (x.kind in ('project', 'subject') or x.stream_id = g.stream_id))
"""
_CHOSEN = """and g.seq < :before and (:state is null or g.state = :state)
  and (:stream is null or g.stream_id = :stream) order by g.seq desc limit :limit"""
_LIST = text(_COLUMNS + _CHOSEN)
_BY_ID = text(_COLUMNS + "and r.id = :id")
_COUNT = text("select count(*) from generations where project_id = :project and state = :state and passed_at is null")
_NEWEST = 2**63 - 1


def list_reviews(
    conn: Connection, project: int, *, state: str | None = None, stream: int | None = None, before: int | None = None,
    limit: int = 50,
) -> list[ListedReview]:  # fmt: skip
    """The last finished first."""
    given = {"project": project, "state": state, "stream": stream, "limit": limit,
             "before": _NEWEST if before is None else before}  # fmt: skip
    return [_row(r) for r in conn.rows(_LIST, given)]


def find_review(conn: Connection, project: int, review: int) -> ListedReview | None:
    row = conn.first(_BY_ID, {"project": project, "id": review})
    return None if row is None else _row(row)


def _row(r: tuple[Any, ...]) -> ListedReview:
    return ListedReview(
        generation=r[0], stream=r[1], state=r[2], reason=r[3], ended_at=r[4], finished_at=r[5], passed_at=r[6],
        review=r[7], asked_by=r[8], staged=r[9], refused=tuple(Refusal(**refused) for refused in json.loads(r[10])),
        note=r[11],
    )  # fmt: skip


def count_generations(conn: Connection, project: int, state: GenerationState) -> int:
    """Of those that have not passed: `waiting` or `reviewing`."""
    return int(conn.scalar(_COUNT, {"project": project, "state": state}))
