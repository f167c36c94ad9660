"""Leases: renewed while their worker lives, finished with their fence (G6, G7), taken back once it is gone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from everkept.domain.jobs import Discard, Done, GiveUp, Lease, Outcome, Retry, Snooze
from everkept.errors import LeaseLost
from everkept.store.connection import Connection, Row
from everkept.store.counters import count
from everkept.store.generations import follow_job
from everkept.store.jobs import add_history
from everkept.store.lanes import leave_lane

# ---- finish

_HELD = text("""
select generation, history, due_at, first_due_at from jobs
where id = :id and fence = :fence and state = 'leased' and lease_until > :now""")
_FINISH = text("""
update jobs set state = :state, owner = null, lease_until = null,
  crashes = case when :clean = 1 or crashes = 0 then 0 else crashes - 1 end,
  attempts = :attempts, due_at = :due, first_due_at = :first_due, error = :error, error_class = :error_class,
  history = :history, finished_at = :finished
where id = :id""")


def require_lease(conn: Connection, lease: Lease) -> None:
    """Raise LeaseLost unless the lease is held now, by the database's clock and with this fence."""
    if conn.first(_HELD, {"id": lease.job, "fence": lease.fence, "now": conn.now()}) is None:
        raise LeaseLost("the lease of this job ended or was taken over; nothing was written", job=lease.job)


def finish(conn: Connection, lease: Lease, outcome: Outcome, ran_s: float) -> str:
    """Book the outcome in the transaction of its effect. Raises LeaseLost, and then nothing of it counts.

    A run that came to its own end (done, or snoozed with more to do) gives the job its budgets back.
    """
    now = conn.now()
    held = conn.first(_HELD, {"id": lease.job, "fence": lease.fence, "now": now})
    if held is None:
        raise LeaseLost("the lease of this job ended or was taken over; nothing was written", job=lease.job)
    generation, history, due_at, first_due = held
    again = generation != lease.generation
    row: dict[str, Any] = {
        "id": lease.job, "state": "waiting", "attempts": lease.attempts, "due": due_at, "first_due": first_due,
        "error": None, "error_class": None, "history": history, "finished": None, "clean": 0,
    }  # fmt: skip
    match outcome:
        case Done() if again:
            row.update(attempts=0, clean=1)
        case Done():
            row.update(state="done", attempts=lease.attempts, first_due=None, finished=now)
        case Snooze(until_us=until, why=why):
            row.update(due=min(due_at, until) if again else until, attempts=0, clean=1,
                       error=why, error_class=None if why is None else "snoozed")  # fmt: skip
        case Discard(why=why):
            row.update(state="waiting" if again else "discarded", error=why, finished=None if again else now)
        case Retry(at_us=at, error_class=error_class, error=error, spend=spend):
            row.update(due=at, attempts=lease.attempts + int(spend), error=error[:2000], error_class=error_class,
                       history=add_history(history, now, error_class, error))  # fmt: skip
        case GiveUp(error_class=error_class, error=error):
            row.update(
                state="dead",
                attempts=lease.attempts + 1,
                error=error[:2000],
                error_class=error_class,
                finished=now,
                history=add_history(history, now, error_class, error),
            )
    with conn.at_once():
        conn.put(_FINISH, row)
        leave_lane(conn, lease.lane, lease.charged_s, ran_s)
    if row["state"] in ("dead", "discarded"):
        follow_job(conn, lease.project, lease.kind, lease.key, row["state"], row["error"])
    if row["state"] == "waiting":
        conn.hint(row["due"])
    return str(row["state"])


def refuse_finish(conn: Connection) -> None:
    """A holder came back too late; it wrote nothing, and is counted."""
    count(conn, "refused_finishes")


# ---- take back

_EXPIRED = text("""
select id, lane_id, crashes, history, owner, charged_s, project_id, kind, key from jobs
where state = 'leased' and (lease_until <= :now or exists (
  select 1 from workers w where w.id = jobs.owner and w.seen_at <= :dead)) order by lease_until limit :limit""")
_LEFT = text("""
select id, lane_id, crashes, history, owner, charged_s, project_id, kind, key from jobs
where state = 'leased' and owner = :owner order by lease_until""")
_EXPIRE = text("""
update jobs set state = :state, owner = null, lease_until = null, due_at = :now, error = :error,
  error_class = 'crashed', history = :history, finished_at = :finished where id = :id""")


@dataclass(frozen=True, slots=True)
class Expired:
    job: int
    owner: str
    dead: bool


def expire_leases(conn: Connection, crashes_max: int, limit: int = 100, unseen_s: float | None = None) -> list[Expired]:
    """Take back what a worker no longer renews. The claim was booked as a crash, so the count is already right.

    A worker that was not seen for `unseen_s` is taken for dead before its leases end; should it only have been frozen,
    the next claim's fence refuses what it brings.
    """
    now = conn.now()
    unseen = -1 if unseen_s is None else now - int(unseen_s * 1e6)
    return _take_back(conn, conn.rows(_EXPIRED, {"now": now, "dead": unseen, "limit": limit}), crashes_max)


def expire_worker(conn: Connection, owner: str, crashes_max: int) -> list[Expired]:
    """Take back, before their ends, all leases of a worker whose process is known to be dead, and forget it."""
    gone = _take_back(conn, conn.rows(_LEFT, {"owner": owner}), crashes_max)
    remove_worker(conn, owner)
    return gone


def _take_back(conn: Connection, leased: Sequence[Row], crashes_max: int) -> list[Expired]:
    now = conn.now()
    gone = []
    for job, lane, crashes, history, owner, charged, project, kind, key in leased:
        dead = crashes >= crashes_max
        error = f"the worker {owner} died or froze over it ({crashes} of at most {crashes_max} times)"
        conn.run(_EXPIRE, {
            "id": job, "state": "dead" if dead else "waiting", "now": now, "error": error,
            "finished": now if dead else None, "history": add_history(history, now, "crashed", error),
        })  # fmt: skip
        leave_lane(conn, lane, charged, charged)
        if dead:
            follow_job(conn, project, kind, key, "dead", error)
        gone.append(Expired(job, owner, dead))
    if gone:
        conn.hint(now)
    return gone


# ---- workers, and what they renew

_RENEW = text("""
update jobs set lease_until = :until where owner = :owner and state = 'leased' and lease_until > :now
  and (:jobs is null or +id in (select value from numbers(:jobs))) returning id, fence""")
_SEEN = text("""
insert into workers(id, slots, started_at, seen_at) values(:id, :slots, :now, :now)
on conflict(id) do update set seen_at = excluded.seen_at, slots = excluded.slots""")
_GONE = text("delete from workers where id = :id")
_UNSEEN = text("""
delete from workers where seen_at < :before
  and not exists (select 1 from jobs where state = 'leased' and owner = workers.id)""")
WORKER_KEPT_S = 86_400.0


def renew_leases(
    conn: Connection, owner: str, slots: int, lease_s: float, jobs: Sequence[int] | None = None
) -> dict[int, int]:
    """One statement for the leases of a process, or those of `jobs` among them.

    Those still held now end later, as {job: fence}; ended ones do not.
    """
    now = conn.now()
    conn.run(_SEEN, {"id": owner, "slots": slots, "now": now})
    only = None if jobs is None else json.dumps(list(jobs))
    return dict(conn.rows(_RENEW, {"owner": owner, "now": now, "until": now + int(lease_s * 1e6), "jobs": only}))


def remove_worker(conn: Connection, owner: str) -> bool:
    """Whether it has no lease either: one that is left is taken back from it, or ends with its time."""
    conn.run(_GONE, {"id": owner})
    return conn.first(_LEFT, {"owner": owner}) is None


def prune_workers(conn: Connection) -> int:
    """Forget processes that were killed: not seen for a day, and without a lease."""
    return conn.run(_UNSEEN, {"before": conn.now() - int(WORKER_KEPT_S * 1e6)})


_LIVE_SLOTS = text("select coalesce(sum(slots), 0) from workers where seen_at > :since")


def live_slots(conn: Connection, within_s: float) -> int:
    return int(conn.scalar(_LIVE_SLOTS, {"since": conn.now() - int(within_s * 1e6)}))
