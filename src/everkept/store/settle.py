"""What is still to be done in a project before every receipt is final."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import text

from everkept.config import Settings
from everkept.store.connection import Connection
from everkept.store.effective import effective
from everkept.store.jobs import schedule
from everkept.store.streams import get_stream, timer, timer_wish

CHUNK = 200
_PENDING = text("""
select s.id, s.settings, p.settings, s.last_seq - s.covered_seq from streams s join projects p on p.id = s.project_id
where s.project_id = :project and s.covered_seq < s.last_seq and s.id > :after order by s.id limit :limit""")
_END = text("update streams set end_through = last_seq where id = :id")
_JOBS = text("""
select count(*) from jobs where project_id = :project and state in ('waiting', 'ready', 'leased')
  and kind <> 'open_window'""")


def end_chunk(conn: Connection, project: int, base: Settings, after: int) -> int:
    """Ask for the windows of some streams; where to go on, 0 = that was the last."""
    rows = conn.rows(_PENDING, {"project": project, "after": after, "limit": CHUNK})
    for stream_id, settings, project_settings, _ in rows:
        if effective(base, project_settings, settings).memory.enabled:
            conn.run(_END, {"id": stream_id})
            schedule(conn, [timer(get_stream(conn, stream_id), conn.now(), None)])
    return int(rows[-1][0]) if len(rows) == CHUNK else 0


def arm_chunk(conn: Connection, project: int, base: Settings, after: int) -> int:
    """Arm the timers that the project's settings now call for, of some streams; where to go on, 0 = these were all."""
    rows = conn.rows(_PENDING, {"project": project, "after": after, "limit": CHUNK})
    for stream_id, _, _, _ in rows:
        wish = timer_wish(get_stream(conn, stream_id), base, conn.now())
        schedule(
            conn, [] if wish is None else [replace(wish, debounce_max_us=None)]
        )  # nothing was said: it only comes sooner
    return int(rows[-1][0]) if len(rows) == CHUNK else 0


def unsettled_work(conn: Connection, project: int, base: Settings) -> int:
    """Messages that await their window (memory off ones do not) and jobs that are neither done nor given up."""
    waiting = 0
    after = 0
    while rows := conn.rows(_PENDING, {"project": project, "after": after, "limit": CHUNK}):
        waiting += sum(n for _, own, of_project, n in rows if effective(base, of_project, own).memory.enabled)
        after = rows[-1][0]
    return waiting + int(conn.scalar(_JOBS, {"project": project}) or 0)
