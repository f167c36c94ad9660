"""What waits, waits for time to pass and not for a date: where the wall clock was set back, it is moved along (B09)."""

from __future__ import annotations

from sqlalchemy import text

from everkept.store.connection import Connection

SLACK_US = 2_000_000
"""A difference that two processes of one machine may see between their clocks."""

_LAST = text("select max(last_start_at) from periodic")
_MOVED = (
    text("update jobs set due_at = due_at - :back, first_due_at = first_due_at - :back where state = 'waiting'"),
    text("update jobs set lease_until = lease_until - :back where state = 'leased'"),
    text("update workers set seen_at = seen_at - :back where seen_at > :now"),
    text("update providers set not_before = not_before - :back where not_before > :now"),
    text("""
update streams set last_recorded_at = last_recorded_at - :back, pulled_due_at = pulled_due_at - :back
where covered_seq < last_seq and last_recorded_at > :now"""),
    text("update review_states set rests_until = rests_until - :back where rests_until > :now"),
    text("update generations set finished_at = finished_at - :back where passed_at is null and finished_at > :now"),
    text("update periodic set last_start_at = last_start_at - :back where last_start_at > :now"),
)


def follow_clock(conn: Connection) -> float:
    """Move timers, retries, leases and circuits back with the clock; by how many seconds it was set back, or 0.

    How far is told by periodic work, which starts every few seconds and writes down when. It is moved as well, so that
    of several workers that notice the step one moves everything, once. The events keep the time that was written.
    """
    now = conn.now()
    last = conn.scalar(_LAST)
    if last is None or last - now <= SLACK_US:
        return 0.0
    for statement in _MOVED:
        conn.run(statement, {"back": last - now, "now": now})
    conn.hint(now)
    return float(last - now) / 1e6
