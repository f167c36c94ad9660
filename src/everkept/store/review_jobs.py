"""The two jobs of reviews: a project's scheduler, and the review of one generation."""

from __future__ import annotations

import json

from sqlalchemy import text

from everkept.domain.jobs import Schedule
from everkept.store.connection import Connection
from everkept.store.generations import REVIEW, SCHEDULER, review_key
from everkept.store.jobs import schedule
from everkept.store.jobs_by_hand import retry_by_hand
from everkept.store.lanes import ensure_lane

_RESTS = text("select rests_until from review_states where project_id = :project")
_DEAD = text("select id from jobs where kind = :kind and key = :key and state = 'dead'")


def wake_scheduler(conn: Connection, project: int) -> None:
    """It looks now, or when its rest is over: a row, so that neither a digest nor a restart changes its cadence."""
    now = conn.now()
    rests_until = conn.scalar(_RESTS, {"project": project}) or now
    schedule(conn, [Schedule(
        kind=SCHEDULER, key=str(project), project=project, lane=ensure_lane(conn, project, 0),
        due_at_us=max(now, rests_until), rearm_dead=True,
    )])  # fmt: skip


def enqueue_review(conn: Connection, project: int, seq: int) -> None:
    """The review of one generation, now, in the project's own lane: a slow review holds up no digest.

    One at a time, so that each sees what the one before it proposed. One that died before gets a new budget.
    """
    key = review_key(project, seq)
    schedule(conn, [Schedule(
        kind=REVIEW, key=key, project=project, lane=ensure_lane(conn, project, 0), due_at_us=conn.now(), uses="model",
        serial_key=f"review:{project}", args=json.dumps({"generation": seq}),
    )])  # fmt: skip
    dead = conn.scalar(_DEAD, {"kind": REVIEW, "key": key})
    if dead is not None:
        retry_by_hand(conn, project, dead)
