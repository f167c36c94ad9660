"""Which finished sessions of a project are reviewed next: what its scheduler decides each time it looks.

Its cadence is a row (`rests_until`), and every decision is one transaction: a restart or a second scheduler finds what
the first has written, and changes nothing (I06).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import text

from everkept.config import Settings
from everkept.domain.jobs import Done, Outcome, Snooze
from everkept.store.connection import Connection
from everkept.store.effective import effective
from everkept.store.generations import SCHEDULER, anything_waits, ensure_state, pass_generation
from everkept.store.review_jobs import enqueue_review, wake_scheduler
from everkept.store.reviews import open_review

PASSED_BY_MAX: Final = 50
"""Sessions that one look lets pass without a review, as it must not be long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What came of one look. `next_us`: when there is something to do again; None: nothing waits."""

    opened: int
    passed_by: int
    next_us: int | None


_PROJECT = text("select settings from projects where id = :project and erased_at is null")
_UNDER_REVIEW = text("""
select count(*) from generations where project_id = :project and state = 'reviewing' and passed_at is null""")
# One that was digested later than now was so before the clock was set back: it is old enough.
_RIPE = text("""
select g.seq, g.stream_id, g.ended_at - x.started_at from generations g join sessions x on x.stream_id = g.stream_id
where g.project_id = :project and g.state = 'waiting' and g.passed_at is null
  and (g.finished_at <= :before or g.finished_at > :now) order by g.seq limit :limit""")
_EARLIEST = text("""
select min(finished_at) from generations where project_id = :project and state = 'waiting' and passed_at is null
  and finished_at > :before and finished_at <= :now""")
_LOOKED = text("update review_states set woke_at = :now, rests_until = :until where project_id = :project")


def look_for_sessions(conn: Connection, project: int, base: Settings) -> Outcome:
    """The scheduler's own look: reviews are opened, and it comes back when its rest is over, if anything waits."""
    found = conn.scalar(_PROJECT, {"project": project})
    if found is None or not effective(base, found).review.scheduler.enabled:
        return Done()
    next_us = look(conn, project, base).next_us
    return Done() if next_us is None else Snooze(next_us)


def look(conn: Connection, project: int, base: Settings, *, by_hand: bool = False) -> Look:
    """Open the review of each waiting session that is old enough, oldest first, as many as may be under review at once.

    A session that was too short passes, visibly: it is reviewed if it goes on, or a hand asks for it (I08). `by_hand`:
    however fresh and short it is.
    """
    ensure_state(conn, project)
    rules = effective(base, conn.scalar(_PROJECT, {"project": project}) or "{}").review.scheduler
    now = conn.now()
    before = now if by_hand else now - int(rules.age_min_s * 1e6)
    room = rules.sessions_max - int(conn.scalar(_UNDER_REVIEW, {"project": project}))
    given = {"project": project, "now": now, "before": before, "limit": PASSED_BY_MAX + max(room, 0) + 1}
    opened = passed_by = 0
    left = False
    for seq, stream, took_us in conn.rows(_RIPE, given):
        if opened >= room or passed_by == PASSED_BY_MAX:
            left = True
            break
        if not by_hand and took_us is not None and took_us < rules.duration_min_s * 1e6:
            pass_generation(conn, project, seq, "skipped", _too_short(took_us, rules.duration_min_s))
            passed_by += 1
        else:
            opened += open_review(conn, project, stream, "hand" if by_hand else "scheduler") is not None
    rests_until = now + int(rules.interval_seconds * 1e6)
    conn.run(_LOOKED, {"project": project, "now": now, "until": rests_until})
    return Look(opened=opened, passed_by=passed_by, next_us=_next(conn, given, rests_until, rules.age_min_s, left=left))


def _too_short(took_us: int, least_s: float) -> str:
    return f"it took {max(took_us, 0) / 1e6:.0f} s, and review.scheduler.duration_min_s is {least_s:.0f} s"


def _next(conn: Connection, given: dict[str, Any], rests_until: int, age_min_s: float, *, left: bool) -> int | None:
    """After its rest: at once where something is left, else when the first that waits is old enough."""
    if left:
        return rests_until
    earliest = conn.scalar(_EARLIEST, given)
    return None if earliest is None else max(rests_until, earliest + int(age_min_s * 1e6))


# ---- the backstop

_NEXT_PROJECT = text("""
select g.project_id, p.settings from generations g join projects p on p.id = g.project_id and p.erased_at is null
where g.passed_at is null and g.project_id > :after order by g.project_id limit 1""")
_JOB = text("select state, due_at from jobs where kind = :kind and key = :key")
_LOST = text("""
select g.seq from generations g where g.project_id = :project and g.state = 'reviewing' and g.passed_at is null
  and not exists (select 1 from jobs j where j.kind = 'review_session'
    and j.key = cast(g.project_id as text) || '.' || cast(g.seq as text) and j.state in ('waiting', 'ready', 'leased'))
limit :limit""")


def sweep_reviews(conn: Connection, base: Settings, after: int, limit: int) -> tuple[int, int]:
    """Wake the schedulers and enqueue the reviews that nothing would wake; (how many, the project to go on after).

    The commits that leave something waiting wake them: whatever is found here was lost, and is warned of.
    """
    repaired = 0
    for _ in range(limit):
        row = conn.first(_NEXT_PROJECT, {"after": after})
        if row is None:
            return repaired, 0
        after, settings = row
        repaired += _mend_scheduler(conn, after, effective(base, settings))
        lost = [r[0] for r in conn.rows(_LOST, {"project": after, "limit": limit})]
        for seq in lost:
            enqueue_review(conn, after, seq)
        repaired += len(lost)
        if repaired >= limit:
            break
    return repaired, after


def _mend_scheduler(conn: Connection, project: int, settings: Settings) -> int:
    """1 where something waits, and its scheduler is to look at no time that its own rules could have given it."""
    rules = settings.review.scheduler
    if not rules.enabled or not anything_waits(conn, project):
        return 0
    state, due_at = conn.first(_JOB, {"kind": SCHEDULER, "key": str(project)}) or ("missing", 0)
    latest = conn.now() + int((rules.interval_seconds + rules.age_min_s) * 1e6)
    if state == "leased" or (state in ("waiting", "ready") and due_at <= latest):
        return 0
    wake_scheduler(conn, project)
    return 1
