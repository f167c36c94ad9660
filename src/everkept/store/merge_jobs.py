"""The jobs of what a merge moves: they wait in the target's lanes, and whoever works one of them has lost it.

A lease is ended, because its holder has read rows of the source; what it paid for is in the journal, where the next
holder finds it (G8).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import text

from everkept.store.connection import Connection, Row
from everkept.store.jobs_by_hand import discard_by_hand, put_back, release_by_hand
from everkept.store.lanes import ensure_lane
from everkept.store.merge_part import Part

_NAMED = text("""
select j.id, j.state, j.serial_key, coalesce(u.merged_into, l.subject_id) from word_pairs(:keys) h
join jobs j on j.kind = h.one and j.key = h.two join lanes l on l.id = j.lane_id
left join subjects u on u.id = l.subject_id
where j.project_id = :source""")
_LEFT = text("""
select j.id, j.state, j.serial_key, coalesce(u.merged_into, l.subject_id) from jobs j join lanes l on l.id = j.lane_id
left join subjects u on u.id = l.subject_id
where j.project_id = :source and j.id > :after order by j.id limit :limit""")
_MOVE = text("update jobs set project_id = :target, lane_id = :lane, serial_key = :serial where id = :id")
_RENAME = text("update jobs set key = :new, args = :args where kind = :kind and key = :old")
_DROP = text("""
select id from jobs where kind = :kind and key = :key and project_id = :source""")
_DELETE = text("delete from jobs where id = :id")


def move_jobs(conn: Connection, part: Part, keys: Sequence[tuple[str, str]]) -> int:
    """The source's jobs among these (kind, key); how many."""
    rows = conn.rows(_NAMED, {"keys": json.dumps(keys), "source": part.source})
    for row in rows:
        _move(conn, part, row)
    return len(rows)


def move_jobs_left(conn: Connection, part: Part, after: int, limit: int) -> list[int]:
    """The next jobs of the source, whatever they are; their ids in order."""
    rows = conn.rows(_LEFT, {"source": part.source, "after": after, "limit": limit})
    for row in rows:
        _move(conn, part, row)
    return [r[0] for r in rows]


def _move(conn: Connection, part: Part, row: Row) -> None:
    job, state, serial, subject = row
    if state == "leased":
        release_by_hand(conn, part.source, job)
    elif state == "ready":
        put_back(conn, part.source, job)
    lane = ensure_lane(conn, part.target, subject)
    conn.run(_MOVE, {"id": job, "target": part.target, "lane": lane, "serial": _serial_key(part, serial)})
    conn.hint(conn.now())


def _serial_key(part: Part, serial: str | None) -> str | None:
    """Some name the project: `review:7`."""
    kind, _, rest = (serial or "").partition(":")
    if kind in ("review", "distil") and rest == str(part.source):
        return f"{kind}:{part.target}"
    return serial


def rename_job(conn: Connection, kind: str, old: str, new: str, args: str) -> None:
    conn.run(_RENAME, {"kind": kind, "old": old, "new": new, "args": args})


def drop_job(conn: Connection, part: Part, kind: str, key: str) -> None:
    """A job that the source has no more work for; its holder's finish is refused."""
    job = conn.scalar(_DROP, {"kind": kind, "key": key, "source": part.source})
    if job is not None:
        discard_by_hand(conn, part.source, job, "its project was merged into another one")
        conn.run(_DELETE, {"id": job})
