"""What an erase destroys of coding agents' work: pages, handoffs and offers that rest on what is erased (G10)."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import text

from everkept.domain.ids import row_id
from everkept.store.aliases import drop_aliases
from everkept.store.connection import Connection
from everkept.store.pages import erase_pages

PAGES_PER_CHUNK = 1
ROWS_PER_CHUNK = 200

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
_OFFERS_OF = text("""
select distinct o.id from offers o join json_each(o.items) i
where o.project_id = :project and (o.handoff_id in (select value from json_each(:handoffs))
  or substr(i.value, 1, instr(i.value || '@', '@') - 1) in (select value from json_each(:items)))""")
_OFFERS_TO = text("""
select o.id from offers o join sessions x on x.agent = o.agent and x.native_id = o.native_id
where o.project_id = :project and x.stream_id = :stream""")
_OFFERS = text("""
select id from offers where project_id = :project
  and exists (select 1 from streams where subject_id = :subject and kind = 'session') order by id limit :limit""")
_DELETE_OFFERS = text("delete from offers where id in (select value from json_each(:ids))")
_FORGET_PAYLOAD = {
    "event": text("""
update natural_keys set payload_hash = '', rank = 1 << 30, prompt_at = null
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
    pages = conn.rows(_PAGES[scope], {**params, "limit": PAGES_PER_CHUNK})
    if pages:
        return _pages(conn, kind, params["project"], [r[0] for r in pages])
    handoffs = [r[0] for r in conn.rows(_HANDOFFS[scope], {**params, "limit": ROWS_PER_CHUNK})]
    if handoffs:
        offers = _offers_that_show(conn, params["project"], handoffs, [])
        for statement in (_REPLACED, _DELETE_HANDOFFS):
            conn.run(statement, {"ids": json.dumps(handoffs)})
        return {"handoffs": len(handoffs), "offers": offers}
    return _rest(conn, kind, params)


def _rest(conn: Connection, kind: str, params: dict[str, Any]) -> dict[str, int] | None:
    """Small things, in one go where they belong to one session, in pieces where to all of a subject."""
    if kind == "event":
        conn.run(_FORGET_PAYLOAD["event"], params)
        conn.run(_UNDIGEST, params)
        return None
    if kind == "stream":
        offers = _delete_offers(conn, [r[0] for r in conn.rows(_OFFERS_TO, params)])
        for statement in (_TOMBS["stream"], _FORGET_PAYLOAD["stream"], _SESSION):
            conn.run(statement, params)
        return {"offers": offers} if offers else None
    streams = [r[0] for r in conn.rows(_STREAMS, {**params, "limit": ROWS_PER_CHUNK})]
    for stream in streams:
        conn.run(_FORGET_PAYLOAD["stream"], {**params, "stream": stream})
    offers = _delete_offers(conn, [r[0] for r in conn.rows(_OFFERS, {**params, "limit": ROWS_PER_CHUNK})])
    conn.run(_TOMBS["subject"], params)
    conn.run(_SESSIONS, params)
    return {"offers": offers} if offers or streams else None


def _pages(conn: Connection, kind: str, project: int, pages: list[int]) -> dict[str, int]:
    """A page that a person had deleted leaves its mark where its session stays: it is not made again (E03)."""
    offers = _offers_that_show(conn, project, [], [row_id("pag", page) for page in pages])
    passages = erase_pages(conn, pages, project=project, keep_deleted=kind == "event")
    return {"pages": len(pages), "passages": passages, "offers": offers}


def _offers_that_show(conn: Connection, project: int, handoffs: list[int], items: list[str]) -> int:
    named = [*items, *(row_id("hnd", h) for h in handoffs)]
    rows = conn.rows(_OFFERS_OF, {"project": project, "handoffs": json.dumps(handoffs), "items": json.dumps(named)})
    return _delete_offers(conn, [r[0] for r in rows])


def _delete_offers(conn: Connection, offers: list[int]) -> int:
    return conn.run(_DELETE_OFFERS, {"ids": json.dumps(offers)}) if offers else 0


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
        _pages(conn, "event", project, pages)
    handoffs = [r[0] for r in conn.rows(_HANDOFFS_OF, {"stream": stream})]
    if handoffs:
        _offers_that_show(conn, project, handoffs, [])
        for statement in (_REPLACED, _DELETE_HANDOFFS):
            conn.run(statement, {"ids": json.dumps(handoffs)})
    conn.run(_UNDIGEST, {"stream": stream})


def destroy_identity(conn: Connection, project: int) -> int:
    """The last of a project: what named it, and the keys of what was told of it."""
    conn.run(_KEYS_OF_PROJECT, {"project": project})
    return drop_aliases(conn, project)
