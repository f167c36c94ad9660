"""What is still to be done in a project before every receipt is final."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlalchemy import text

from everkept.config import Settings
from everkept.store.connection import Connection
from everkept.store.effective import effective
from everkept.store.jobs import schedule
from everkept.store.streams import get_stream, timer, timer_wish

CHUNK = 200
# A project with a plus is compared, not looked up: the index of what no window covers gives the order too.
_PENDING = text("""
select s.id, s.settings, p.settings, s.last_seq - s.covered_seq, s.end_through < s.last_seq
from streams s join projects p on p.id = s.project_id
where +s.project_id = :project and s.covered_seq < s.last_seq and s.id > :after order by s.id limit :limit""")
_END = text("update streams set end_through = last_seq where id = :id")
# A timer is no work: `open_window` is counted in its messages, and any other job that nothing went wrong with and that
# is due later by its nature (a look for sessions to review, a session's rest before it is asked about again).
_UNSETTLED = """ from jobs
where project_id = :project and state in ('waiting', 'ready', 'leased') and kind <> 'open_window'
  and not (state = 'waiting' and error_class is null and due_at > :soon)"""
_JOBS = text("select count(*)" + _UNSETTLED)
_A_JOB = text("select 1" + _UNSETTLED + " limit 1")
SOON_US = 10_000_000
"""What is due by then is waited for, so that nothing that is made one second later is missed."""


def end_chunk(conn: Connection, project: int, base: Settings, after: int) -> int:
    """Ask for the windows of some streams; where to go on, 0 = that was the last."""
    rows = conn.rows(_PENDING, {"project": project, "after": after, "limit": CHUNK})
    for stream_id, settings, project_settings, *_ in rows:
        if effective(base, project_settings, settings).memory.enabled:
            conn.run(_END, {"id": stream_id})
            schedule(conn, [timer(get_stream(conn, stream_id), conn.now(), None)])
    return int(rows[-1][0]) if len(rows) == CHUNK else 0


def arm_chunk(conn: Connection, project: int, base: Settings, after: int) -> int:
    """Arm the timers that the project's settings now call for, of some streams; where to go on, 0 = these were all."""
    rows = conn.rows(_PENDING, {"project": project, "after": after, "limit": CHUNK})
    for stream_id, *_ in rows:
        wish = timer_wish(get_stream(conn, stream_id), base, conn.now())
        schedule(
            conn, [] if wish is None else [replace(wish, debounce_max_us=None)]
        )  # nothing was said: it only comes sooner
    return int(rows[-1][0]) if len(rows) == CHUNK else 0


def unsettled_work(conn: Connection, project: int, base: Settings) -> int:
    """Messages that await their window (memory off ones do not) and jobs that are neither done nor given up.

    A retry is waited for however late it is; a job that is only due later is not.
    """
    return sum(messages for messages, _ in _awaiting(conn, project, base)) + int(
        conn.scalar(_JOBS, _jobs_of(conn, project)) or 0
    )


def is_settled(conn: Connection, project: int, base: Settings) -> bool:
    """Whether there is no unsettled work; stops at the first that is found."""
    if conn.scalar(_A_JOB, _jobs_of(conn, project)) is not None:
        return False
    return next(_awaiting(conn, project, base), None) is None


def came_meanwhile(conn: Connection, project: int, base: Settings) -> bool:
    """Whether all work is done and messages are left whose window nobody asked for: said, or moved here, since then."""
    if conn.scalar(_A_JOB, _jobs_of(conn, project)) is not None:
        return False
    return any(is_unasked for _, is_unasked in _awaiting(conn, project, base))


def _jobs_of(conn: Connection, project: int) -> dict[str, int]:
    return {"project": project, "soon": conn.now() + SOON_US}


def _awaiting(conn: Connection, project: int, base: Settings) -> Iterator[tuple[int, bool]]:
    """(messages that await their window, whether it was not asked for all of them), of one stream after the other."""
    enabled: dict[tuple[str, str], bool] = {}
    after = 0
    while rows := conn.rows(_PENDING, {"project": project, "after": after, "limit": CHUNK}):
        for _, own, of_project, messages, is_unasked in rows:
            if (own, of_project) not in enabled:
                enabled[own, of_project] = effective(base, of_project, own).memory.enabled
            if enabled[own, of_project]:
                yield messages, bool(is_unasked)
        after = rows[-1][0]
