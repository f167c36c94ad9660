"""What an erase destroys of coding agents' work: pages, handoffs and offers that rest on what is erased (G10)."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import text

from everkept.store.aliases import drop_aliases
from everkept.store.connection import Connection
from everkept.store.pages import erase_pages

PAGES_PER_CHUNK = 1
ROWS_PER_CHUNK = 200
STREAMS_PER_CHUNK = 5

_PAGES = {
    "stream": text("select id, slug from pages where stream_id = :stream and version > 0 order by id limit :limit"),
    "subject": text("select id, slug from pages where subject_id = :subject and version > 0 order by id limit :limit"),
}
_TOMBS = {
    "stream": text("delete from pages where stream_id = :stream and version = 0"),
    "subject": text("delete from pages where subject_id = :subject and version = 0"),
}
_HANDOFFS = {
    "stream": text("select id from handoffs where stream_id = :stream order by id limit :limit"),
    "subject": text("""
select h.id from handoffs h join streams s on s.id = h.stream_id where s.subject_id = :subject order by h.id
limit :limit"""),
}
_REPLACED = text("""
update handoffs set replaced_by = null where replaced_by in (select value from json_each(:ids))""")
_DELETE_HANDOFFS = text("delete from handoffs where id in (select value from json_each(:ids))")
_OFFERS = text("select id from offers where project_id = :project or :everywhere order by id limit :limit")
_EVERYWHERE = text("select name = 'default' from projects where id = :project")
_DELETE_OFFERS = text("delete from offers where id in (select value from json_each(:ids))")
_FORGET_PAYLOAD = {
    "event": text("""
update natural_keys set payload_hash = '', rank = 1 << 30
where project_id = :project and stream_id = :stream and seq = :seq"""),
    "stream": text("""
update natural_keys set payload_hash = '', rank = 1 << 30, prompt_at = null
where project_id = :project and stream_id = :stream and payload_hash <> ''"""),
}
_KEYS_OF_PROJECT = text("delete from natural_keys where project_id = :project")
_SESSION = text("delete from sessions where stream_id = :stream")
_SESSIONS = text("""
delete from sessions where stream_id in (select id from streams where subject_id = :subject)""")
_STREAMS = text("""
select id from streams where subject_id = :subject and kind = 'session' and exists (
  select 1 from natural_keys k where k.project_id = :project and k.stream_id = streams.id and k.payload_hash <> '')
order by id limit :limit""")
_UNDIGEST = text("update sessions set digest_hash = null, title = null where stream_id = :stream")


def destroy_agent_work(conn: Connection, kind: str, params: dict[str, Any]) -> dict[str, int] | None:
    """The next bit of what rests on a session, subject or project; None where nothing is left.

    `params`: project, subject, stream and seq as the erase has them. An event takes its session's pages and handoffs
    with it: they were made with it in view, and are made again from what remains.
    """
    scope = "subject" if kind in ("subject", "project") else "stream"
    offers = _offers(conn, kind, params)
    if offers:
        return {"offers": offers}
    pages = conn.rows(_PAGES[scope], {**params, "limit": PAGES_PER_CHUNK})
    if pages:
        return _pages(conn, params["project"], [r[0] for r in pages], keep_deleted=kind == "event")
    handoffs = [r[0] for r in conn.rows(_HANDOFFS[scope], {**params, "limit": ROWS_PER_CHUNK})]
    if handoffs:
        _delete_handoffs(conn, handoffs)
        return {"handoffs": len(handoffs)}
    return _rest(conn, kind, params)


def _rest(conn: Connection, kind: str, params: dict[str, Any]) -> dict[str, int] | None:
    """Small things, in one go where they belong to one session, in pieces where to all of a subject."""
    if kind == "event":
        conn.run(_UNDIGEST, params)
        return None
    if kind == "stream":
        for statement in (_TOMBS["stream"], _FORGET_PAYLOAD["stream"], _SESSION):
            conn.run(statement, params)
        return None
    streams = [r[0] for r in conn.rows(_STREAMS, {**params, "limit": STREAMS_PER_CHUNK})]
    for stream in streams:
        conn.run(_FORGET_PAYLOAD["stream"], {**params, "stream": stream})
    if streams:
        return {}
    conn.run(_TOMBS["subject"], params)
    conn.run(_SESSIONS, params)
    return None


def _offers(conn: Connection, kind: str, params: dict[str, Any]) -> int:
    """Offers hold what many things said, by words and not by lineage, and nobody misses them: all of the project go.

    What the project `default` says in its rules is offered in every project.
    """
    everywhere = kind == "project" or bool(conn.scalar(_EVERYWHERE, params))
    rows = conn.rows(_OFFERS, {**params, "everywhere": everywhere, "limit": ROWS_PER_CHUNK})
    return conn.run(_DELETE_OFFERS, {"ids": json.dumps([r[0] for r in rows])}) if rows else 0


def _pages(conn: Connection, project: int, pages: list[int], *, keep_deleted: bool) -> dict[str, int]:
    """A page that a person had deleted leaves its mark where its session stays: it is not made again (E03)."""
    return {"pages": len(pages), "passages": erase_pages(conn, pages, project=project, keep_deleted=keep_deleted)}


def _delete_handoffs(conn: Connection, handoffs: list[int]) -> None:
    for statement in (_REPLACED, _DELETE_HANDOFFS):
        conn.run(statement, {"ids": json.dumps(handoffs)})


def forget_tellings(conn: Connection, project: int, stream: int, seqs: list[int]) -> None:
    """Of erased events only the keys stay, and no telling of them is richer: they stay out."""
    conn.many(_FORGET_PAYLOAD["event"], [{"project": project, "stream": stream, "seq": seq} for seq in seqs])


_PARENT = text("""
select p.stream_id from sessions x join sessions p
  on p.project_id = x.project_id and p.agent = x.agent and p.native_id = x.parent
where x.project_id = :project and x.stream_id = :stream and p.stream_id <> x.stream_id""")
_PAGES_OF = text("select id from pages where stream_id = :stream and version > 0")
_HANDOFFS_OF = text("select id from handoffs where stream_id = :stream")


def parents_of(conn: Connection, project: int, stream: int) -> list[int]:
    """The session that started this one as its sub-agent, and whoever started that."""
    found: list[int] = []
    ahead = [stream]
    while ahead:
        for (parent,) in conn.rows(_PARENT, {"project": project, "stream": ahead.pop()}):
            if parent not in (stream, *found):
                found.append(parent)
                ahead.append(parent)
    return found


def forget_digest(conn: Connection, project: int, stream: int) -> None:
    """Destroy what was made of a session, page and handoff, so that it is made again."""
    pages = [r[0] for r in conn.rows(_PAGES_OF, {"stream": stream})]
    if pages:
        _pages(conn, project, pages, keep_deleted=True)
    handoffs = [r[0] for r in conn.rows(_HANDOFFS_OF, {"stream": stream})]
    if handoffs:
        _delete_handoffs(conn, handoffs)
    conn.run(_UNDIGEST, {"stream": stream})


_CARRYING = text("""
select distinct h.stream_id from handoffs h join json_each(h.open_ends) e
where h.project_id = :project and h.stream_id <> :stream and e.value->>'carried' > 0""")


def carriers_of(conn: Connection, project: int, stream: int) -> list[int]:
    """Sessions whose handoff carries on what earlier ones left open: it may be what is erased."""
    return [r[0] for r in conn.rows(_CARRYING, {"project": project, "stream": stream})]


def destroy_identity(conn: Connection, project: int) -> int:
    """The last of a project: what named it, and the keys of what was told of it."""
    conn.run(_KEYS_OF_PROJECT, {"project": project})
    return drop_aliases(conn, project)
