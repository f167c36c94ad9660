"""Reviews: one for each generation of a session, opened by one conditional insert, completed with all that it made.

The insert schedules the review's job in its own transaction, and the job has the only lease: a crash resumes it and
forfeits nothing (G12, I06).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import text

from everkept.config import Settings
from everkept.domain.ids import row_id
from everkept.domain.jobs import Lease
from everkept.domain.review.values import Observation, Refusal, Reviewed
from everkept.errors import SubjectMoved
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.generations import (
    add_generation,
    newest_generation,
    pass_generation,
    reopen_generation,
    take_generation,
)
from everkept.store.journal import subject_epoch
from everkept.store.leases import require_lease
from everkept.store.proposals import stage_drafts
from everkept.store.review_jobs import enqueue_review, wake_scheduler
from everkept.store.sessions import SessionRow

__all__ = ["ReviewRow", "claim_review", "complete_review", "keep_by_rule", "note_generation", "open_review",
           "pass_generation", "reopen_imported"]  # fmt: skip

AskedBy = Literal["scheduler", "hand"]
RETRYABLE: Final = frozenset({"dead", "skipped", "imported"})
"""What went by without being looked at, and may be looked at after all."""
RULES: Final = "rules"
"""The reviewer that needs no model."""
OBSERVATIONS_MAX: Final = 500
"""Of one session: what is counted across sessions, and not a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRow:
    id: int
    project: int
    stream: int
    generation: int
    asked_by: AskedBy
    created_at: int
    completed_at: int | None


# ---- a digest was written

_LIVED = text("select 1 from natural_keys where stream_id = :stream and heard & :lived <> 0 limit 1")
_HOOK_OR_LAUNCH: Final = 1 | 4


def note_generation(conn: Connection, session: SessionRow, seq: int, digest_hash: str) -> None:
    """In the digest's commit: its stretch is number `seq`, and the project's scheduler looks at it in time.

    What was imported passes as such, by where it came from and not by when; once a hook tells of it, it is lived.
    """
    imported = session.origin == "import" and not _is_lived(conn, session.stream)
    add_generation(
        conn, project=session.project, seq=seq, stream=session.stream, digest_hash=digest_hash,
        ended_at=session.last_event_at, imported=imported,
    )  # fmt: skip
    if not imported:
        wake_scheduler(conn, session.project)


def _is_lived(conn: Connection, stream: int) -> bool:
    return conn.first(_LIVED, {"stream": stream, "lived": _HOOK_OR_LAUNCH}) is not None


# ---- opening

_OPEN = text("""
insert into reviews(workspace_id, project_id, stream_id, generation, asked_by, created_at)
select p.workspace_id, g.project_id, g.stream_id, g.seq, :asked_by, :now
from generations g join projects p on p.id = g.project_id and p.erased_at is null
where g.project_id = :project and g.stream_id = :stream and g.state = 'waiting' and g.passed_at is null
order by g.seq desc limit 1
on conflict(workspace_id, project_id, stream_id, generation) do update set asked_by = excluded.asked_by,
  completed_at = null, note = null, refused = '[]'
returning id, generation""")


def open_review(conn: Connection, project: int, stream: int, asked_by: AskedBy) -> ReviewRow | None:
    """Claim the session's newest waiting generation and enqueue its review; None where none waits. Never waits itself.

    Of any number of callers one gets it: whoever comes second finds the generation under review.
    """
    now = conn.now()
    row = conn.first(_OPEN, {"project": project, "stream": stream, "asked_by": asked_by, "now": now})
    if row is None:
        return None
    review, seq = row
    took = take_generation(conn, project, seq)
    assert took, "the insert saw it waiting, in this transaction"
    enqueue_review(conn, project, seq)
    return ReviewRow(
        id=review, project=project, stream=stream, generation=seq, asked_by=asked_by, created_at=now, completed_at=None
    )


def claim_review(conn: Connection, project: int, stream: int) -> ReviewRow | None:
    """By hand: also of a generation that went by unreviewed. None where its newest is under review, or was reviewed."""
    newest = newest_generation(conn, project, stream)
    if newest is not None and newest[1] in RETRYABLE:
        reopen_generation(conn, project, newest[0], "waiting")
    return open_review(conn, project, stream, "hand")


_IMPORTED = text("""
select g.seq from generations g where g.project_id = :project and g.state = 'imported' and g.seq > :after
  and (:since is null or g.ended_at >= :since)
  and not exists (select 1 from generations o where o.stream_id = g.stream_id and o.seq > g.seq)
order by g.seq limit :limit""")


def reopen_imported(conn: Connection, project: int, since_us: int | None, after: int, limit: int) -> list[int]:
    """One chunk of old history to be reviewed after all: the newest stretch of each imported session that ended since
    then (None: ever). Their numbers, in order; an empty list is the end."""
    given = {"project": project, "since": since_us, "after": after, "limit": limit}
    numbers = [r[0] for r in conn.rows(_IMPORTED, given)]
    for seq in numbers:
        reopen_generation(conn, project, seq, "waiting")
    if numbers:
        wake_scheduler(conn, project)
    return numbers


# ---- completing

_IS_OPEN = text("""
select s.subject_id from reviews r join generations g on g.project_id = r.project_id and g.seq = r.generation
  join streams s on s.id = r.stream_id and s.erased_at is null
where r.id = :review and r.completed_at is null and g.state = 'reviewing'""")
_TELL = text("""
update reviews set staged = staged + :staged, refused = :refused, note = :note where id = :review""")
_COMPLETE = text("update reviews set completed_at = :now where id = :review returning staged")
_FORGET = text("delete from observations where stream_id = :stream")
_OBSERVE = text("""
insert into observations(project_id, signature, stream_id, seq, kind, shape, quote, detail, at)
values(:project, :signature, :stream, :seq, :kind, :shape, :quote, :detail, :at) on conflict do nothing""")


def complete_review(
    conn: Connection, review: ReviewRow, reviewed: Reviewed, reviewer: str = RULES, *, epoch: int, settings: Settings,
    by_rule: int = 0, state: Literal["reviewed", "skipped"] = "reviewed",
) -> None:  # fmt: skip
    """In one commit: what was observed, each draft that can be staged, why others were not, the review and its
    generation, and the watermark. One bad draft costs no sibling (I07).

    `reviewer`: whose drafts they are, but for the first `by_rule`, which are the rules' own; `epoch`: of the subject
    when the session was read; `settings`: the process's own. Raises SubjectMoved where something was erased since, or
    the review is not open any more: nothing is written, and the job runs again on its kept reply.
    """
    subject = _require_open(conn, review, epoch)
    _keep(conn, review, reviewed, reviewer, by_rule, settings)
    staged = int(conn.scalar(_COMPLETE, {"review": review.id, "now": conn.now()}))
    pass_generation(conn, review.project, review.generation, state, reviewed.note or None)
    record_changes(conn, review.project, [NewChange(
        kind="session.reviewed", ref=row_id("ses", review.stream), subject=subject, stream=review.stream,
        data={"finished_seq": review.generation, "state": state, "staged": staged},
    )])  # fmt: skip


def keep_by_rule(
    conn: Connection, lease: Lease, review: ReviewRow, reviewed: Reviewed, *, epoch: int, settings: Settings
) -> None:
    """What the rules found is counted and staged, whatever becomes of the question to the model: the review stays open.

    Repeated, or followed by `complete_review`, it counts and stages nothing twice. Raises LeaseLost, SubjectMoved.
    """
    require_lease(conn, lease)
    _require_open(conn, review, epoch)
    _keep(conn, review, reviewed, RULES, 0, settings)


def _require_open(conn: Connection, review: ReviewRow, epoch: int) -> int:
    """Its subject."""
    subject = conn.scalar(_IS_OPEN, {"review": review.id})
    if subject is None or subject_epoch(conn, subject) != epoch:
        raise SubjectMoved("something was erased while the session was reviewed; the job runs again on what remains")
    return int(subject)


def _keep(
    conn: Connection, review: ReviewRow, reviewed: Reviewed, reviewer: str, by_rule: int, settings: Settings
) -> None:
    _store_observations(conn, review, reviewed.observations)
    staged, refused = 0, list(reviewed.refused)
    for author, drafts in ((RULES, reviewed.drafts[:by_rule]), (reviewer, reviewed.drafts[by_rule:])):
        more, others = stage_drafts(
            conn, project=review.project, review=review.id, stream=review.stream, drafts=drafts, reviewer=author,
            settings=settings,
        )  # fmt: skip
        staged, refused = staged + more, [*refused, *others]
    conn.run(_TELL, {
        "review": review.id, "staged": staged, "note": reviewed.note or None, "refused": _as_json(refused),
    })  # fmt: skip


def _store_observations(conn: Connection, review: ReviewRow, observations: Sequence[Observation]) -> None:
    """Those of the session as it is now stand for those of its earlier reviews."""
    conn.run(_FORGET, {"stream": review.stream})
    conn.many(_OBSERVE, [_observation_row(review, o, conn.now()) for o in observations[:OBSERVATIONS_MAX]])


def _observation_row(review: ReviewRow, seen: Observation, now: int) -> dict[str, Any]:
    assert seen.quote.stream == review.stream, "a review observes its own session"
    return {
        "project": review.project, "signature": seen.signature, "stream": review.stream, "seq": seen.quote.seq,
        "kind": seen.kind, "shape": seen.shape, "quote": seen.quote.text, "detail": seen.detail,
        "at": now if seen.at_us is None else seen.at_us,
    }  # fmt: skip


def _as_json(refused: Sequence[Refusal]) -> str:
    return json.dumps([{"what": r.what, "reason": r.reason} for r in refused])
