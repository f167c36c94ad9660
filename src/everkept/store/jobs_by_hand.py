"""What a hand, an erase or a merge does to a job: retry, discard, release, put back.

A lease that is ended so cannot be finished: its fence grows.
"""

from __future__ import annotations

from sqlalchemy import text

from everkept.store.connection import Connection
from everkept.store.generations import follow_job
from everkept.store.jobs import IS_HELD, add_history, postpone
from everkept.store.lanes import leave_lane, uncount_ready

# Whoever looks for work has no lock of the project: without the row's own, what is read as ready is leased by the time
# that it is written, and its lane counts it for ever.
_LOAD = text("""
select id, state, lane_id, uses, history, charged_s, kind, key from jobs where id = :id and project_id = :project
for no key update""")
_HAND_RETRY = text("""
update jobs set state = 'waiting', due_at = :now, first_due_at = :now, budget = budget + 1, attempts = 0, crashes = 0,
  finished_at = null, generation = generation + 1, history = :history where id = :id""")
_HAND_DISCARD = text(f"""
update jobs set state = 'discarded', uses = case when {IS_HELD} then substr(uses, 6) else uses end, owner = null,
  lease_until = null, error = :why, finished_at = :now,
  history = :history, fence = fence + 1 where id = :id""")
_HAND_RELEASE = text("""
update jobs set state = 'waiting', owner = null, lease_until = null, due_at = :now, fence = fence + 1,
  crashes = case when crashes > 0 then crashes - 1 else 0 end, history = :history where id = :id""")
_DEAD = text("""
select id from jobs where state = 'dead' and project_id = :project and (:kind is null or kind = :kind)
  and (:cause is null or error_class = :cause) and id > :after order by id limit :limit""")


def retry_by_hand(conn: Connection, project: int, job: int) -> bool:
    """A dead job gets a new budget and keeps its history. Of concurrent retries only the first finds it dead."""
    row = conn.first(_LOAD, {"id": job, "project": project})
    if row is None or row[1] != "dead":
        return False
    now = conn.now()
    conn.run(_HAND_RETRY, {"id": job, "now": now, "history": add_history(row[4], now, "by_hand", "retried by hand")})
    follow_job(conn, project, row[6], row[7], "waiting", None)
    conn.hint(now)
    return True


def retry_dead(
    conn: Connection, project: int, kind: str | None, cause: str | None, after: int, limit: int
) -> list[int]:
    """One chunk of `retry all`: the ids retried, in order; an empty list is the end."""
    ids = [r[0] for r in conn.rows(
        _DEAD, {"project": project, "kind": kind, "cause": cause, "after": after, "limit": limit})]  # fmt: skip
    for job in ids:
        retry_by_hand(conn, project, job)
    return ids


def discard_by_hand(conn: Connection, project: int, job: int, why: str) -> bool:
    row = conn.first(_LOAD, {"id": job, "project": project})
    if row is None or row[1] in ("done", "discarded"):
        return False
    _, state, lane, use, history, charged, kind, key = row
    now = conn.now()
    if state == "ready":
        uncount_ready(conn, lane, use)
    if state == "leased":
        leave_lane(conn, lane, charged, charged)
    conn.run(
        _HAND_DISCARD,
        {"id": job, "now": now, "why": why, "history": add_history(history, now, "by_hand", f"discarded: {why}")},
    )
    follow_job(conn, project, kind, key, "discarded", why)
    return True


def release_by_hand(conn: Connection, project: int, job: int) -> bool:
    """End a lease now: the fence grows, so the old holder's finish is refused."""
    row = conn.first(_LOAD, {"id": job, "project": project})
    if row is None or row[1] != "leased":
        return False
    _, _, lane, _, history, charged, _, _ = row
    now = conn.now()
    leave_lane(conn, lane, charged, charged)
    conn.run(
        _HAND_RELEASE, {"id": job, "now": now, "history": add_history(history, now, "by_hand", "released by hand")}
    )
    conn.hint(now)
    return True


def put_back(conn: Connection, project: int, job: int) -> bool:
    """A job that may be claimed waits again, in no lane's count; the next tick makes it claimable where it then is."""
    row = conn.first(_LOAD, {"id": job, "project": project})
    if row is None or row[1] != "ready":
        return False
    postpone(conn, job)
    uncount_ready(conn, row[2], row[3])
    return True
