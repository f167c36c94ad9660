"""What an erase destroys of workstreams: ledger rows, links and cursors of a session, and the text of packets (G10).

A packet tells what many sessions said, by words and not by lineage, so that all packets of the project lose their text:
none is given out from the erase's first commit on (`packets.is_gone`), and a successor is made of what remains.
"""

from __future__ import annotations

import json
from typing import Any, Final

from sqlalchemy import text

from everkept.store.connection import Connection

ROWS_PER_CHUNK: Final = 200

_PACKETS = text("""
update launches set packet = null where id in (
  select id from launches where project_id = :project and packet <> '' order by id limit :limit)""")
_STREAMS = {
    "stream": text("select :stream"),
    "subject": text("""
select distinct l.stream_id from launch_sessions l join streams s on s.id = l.stream_id
where l.project_id = :project and s.subject_id = :subject
union select distinct w.stream_id from workstream_ledger w join streams s on s.id = w.stream_id
where s.project_id = :project and s.subject_id = :subject limit 20"""),
}
_LEDGER = text("""
delete from workstream_ledger where (workstream_id, seq) in (
  select workstream_id, seq from workstream_ledger where stream_id in (select value from json_each(:streams))
  limit :limit)""")
_CURSORS = text("""
delete from workstream_cursors where (workstream_id, agent, native_id) in (
  select l.workstream_id, l.agent, l.native_id from launch_sessions l
  where l.stream_id in (select value from json_each(:streams)))""")
_RECEIVERS = (
    text("""
update launches set native_id = null where exists (select 1 from launch_sessions l
  where l.stream_id in (select value from json_each(:streams)) and l.workstream_id = launches.workstream_id
    and l.agent = launches.agent and l.native_id = launches.native_id)"""),
    text("""
update launches set resumes = null, source_cursor = null where exists (select 1 from launch_sessions l
  where l.stream_id in (select value from json_each(:streams)) and l.workstream_id = launches.workstream_id
    and l.agent = launches.agent and l.native_id = launches.resumes)"""),
)
_LINKS = text("delete from launch_sessions where stream_id in (select value from json_each(:streams))")


def destroy_launch_work(conn: Connection, kind: str, params: dict[str, Any]) -> dict[str, int] | None:
    """The next bit of what rests on an event, session or subject; None where nothing is left.

    Of an event only packets tell: its ledger row names a stretch, and shows it no more.
    """
    packets = conn.run(_PACKETS, {"project": params["project"], "limit": ROWS_PER_CHUNK})
    if packets:
        return {"packets": packets}
    if kind == "event":
        return None
    streams = [r[0] for r in conn.rows(_STREAMS["stream" if kind == "stream" else "subject"], params)]
    asked = {"streams": json.dumps(streams), "limit": ROWS_PER_CHUNK}
    rows = conn.run(_LEDGER, asked)
    if rows:
        return {"ledger": rows}
    conn.run(_CURSORS, asked)
    for statement in _RECEIVERS:
        conn.run(statement, asked)
    links = conn.run(_LINKS, asked)
    return {"links": links} if links else None


# ---- the last of a project

_REST: Final = (
    "workstream_ledger where workstream_id in (select id from workstreams where project_id = :project)",
    "workstream_cursors where workstream_id in (select id from workstreams where project_id = :project)",
    "launch_sessions where project_id = :project",
    "launch_events where launch_id in (select id from launches where project_id = :project)",
    "launch_deliveries where launch_id in (select id from launches where project_id = :project)",
    "launches where project_id = :project",
    "workstream_selections where project_id = :project",
    "workstreams where project_id = :project",
)
_KEYS: Final = {
    "workstream_ledger": "workstream_id, seq", "workstream_cursors": "workstream_id, agent, native_id",
    "launch_sessions": "launch_id, agent, native_id", "launch_events": "launch_id, number",
    "launch_deliveries": "launch_id, key_hash", "launches": "id", "workstream_selections": "project_id, place",
    "workstreams": "id",
}  # fmt: skip


def _some(of: str) -> Any:
    table = of.partition(" ")[0]
    return text(f"delete from {table} where ({_KEYS[table]}) in (select {_KEYS[table]} from {of} limit :limit)")


_DELETE_REST: Final = tuple(_some(of) for of in _REST)


def destroy_project_workstreams(conn: Connection, project: int) -> int:
    """Workstreams with all that belongs to them; how many rows, 0 at the end."""
    asked = {"project": project, "limit": ROWS_PER_CHUNK}
    return next((gone for gone in (conn.run(statement, asked) for statement in _DELETE_REST) if gone), 0)
