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
    # Its sessions that were only to be resumed, or that only accepted a packet, were never linked.
    "subject": text("""
select distinct l.stream_id from launch_sessions l join streams s on s.id = l.stream_id
where l.project_id = :project and s.subject_id = :subject
union select distinct w.stream_id from workstream_ledger w join streams s on s.id = w.stream_id
where s.project_id = :project and s.subject_id = :subject
union select x.stream_id from launches l
  join sessions x on x.agent = l.agent and x.native_id in (l.native_id, l.resumes) and x.project_id = l.project_id
  join streams s on s.id = x.stream_id where l.project_id = :project and s.subject_id = :subject
union select x.stream_id from workstreams w join workstream_cursors c on c.workstream_id = w.id
  join sessions x on x.agent = c.agent and x.native_id = c.native_id and x.project_id = w.project_id
  join streams s on s.id = x.stream_id where w.project_id = :project and s.subject_id = :subject
limit 20"""),
}
_LEDGER = text("""
delete from workstream_ledger where (workstream_id, seq) in (
  select workstream_id, seq from workstream_ledger where stream_id in (select value from numbers(:streams))
  limit :limit)""")
_LINKED = "select {} from launch_sessions where stream_id in (select value from numbers(:streams))"
_NATIVES = f"""(
  select agent, native_id from sessions where stream_id in (select value from numbers(:streams))
  union {_LINKED.format("agent, native_id")})"""
"""What their agents call the sessions. Their rows go later (`destroy_agents`)."""
_NAMINGS = tuple(text(statement) for statement in (
    f"""
delete from workstream_cursors where workstream_id in (select id from workstreams where project_id = :project)
  and (agent, native_id) in {_NATIVES}""",
    f"""
update launches set source_cursor = null where project_id = :project and source_cursor is not null and (
  (agent, native_id) in {_NATIVES} or (agent, resumes) in {_NATIVES} or id in ({_LINKED.format("launch_id")}))""",
    f"update launches set native_id = null where project_id = :project and (agent, native_id) in {_NATIVES}",
    f"update launches set resumes = null where project_id = :project and (agent, resumes) in {_NATIVES}",
))  # fmt: skip
"""What names a session of them: how far it was told, how far its transcript was read, who was to have a packet."""
_LINKS = text("delete from launch_sessions where stream_id in (select value from numbers(:streams))")


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
    asked = {"project": params["project"], "streams": json.dumps(streams), "limit": ROWS_PER_CHUNK}
    rows = conn.run(_LEDGER, asked)
    if rows:
        return {"ledger": rows}
    namings = sum(conn.run(statement, asked) for statement in _NAMINGS)
    links = conn.run(_LINKS, asked)
    return {"links": links} if links or namings else None


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
