"""What an erase destroys of coding agents' work: pages, handoffs and offers that rest on what is erased (G10)."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import text

from everkept.store.aliases import drop_aliases
from everkept.store.connection import Connection
from everkept.store.page_sections import drop_sections, sections_of_page
from everkept.store.pages import erase_pages
from everkept.store.proposals import forget_proposals_about

SECTIONS_PER_CHUNK = 2
"""A full-text row costs 2 to 7 ms to delete (store/destroy.py)."""
ROWS_PER_CHUNK = 200
KEYS_PER_CHUNK = 200
SESSIONS_PER_CHUNK = 20

_PAGES = {
    "stream": text("select id from pages where stream_id = :stream and version > 0 order by id limit 1"),
    "subject": text("select id from pages where subject_id = :subject and version > 0 order by id limit 1"),
}
_TOMBS = {
    "stream": text("update pages set stream_id = null, source = null where stream_id = :stream and version = 0"),
    "subject": text("delete from pages where subject_id = :subject and version = 0"),
}
_HANDOFFS = {
    "stream": text("select id from handoffs where stream_id = :stream order by id limit :limit"),
    "subject": text("""
select h.id from handoffs h join streams s on s.id = h.stream_id where s.subject_id = :subject order by h.id
limit :limit"""),
}
_REPLACED = text("""
update handoffs set replaced_by = null where replaced_by in (select value from numbers(:ids))""")
_DELETE_HANDOFFS = text("delete from handoffs where id in (select value from numbers(:ids))")
_OFFERS = text("select id from offers where project_id = :project or :everywhere order by id limit :limit")
_EVERYWHERE = text("select name = 'default' from projects where id = :project")
_DELETE_OFFERS = text("delete from offers where id in (select value from numbers(:ids))")
_FORGET_TELLING = text("""
update natural_keys set payload_hash = '', rank = 1 << 30
where project_id = :project and stream_id = :stream and seq = :seq""")
FORGOTTEN = -(1 << 62)
"""Stands for the time in each key of an erased session: no prompt was at it, and it tells which keys are done."""
_FORGET_KEYS = text("""
update natural_keys set payload_hash = '', rank = 1 << 30, prompt_at = :forgotten
where project_id = :project and key_hash in (
  select key_hash from natural_keys where stream_id = :stream and prompt_at is null
  union all select key_hash from natural_keys where stream_id = :stream and prompt_at > :forgotten limit :limit)""")
_KEYS_OF_PROJECT = text("""
delete from natural_keys where project_id = :project and key_hash in (
  select key_hash from natural_keys where project_id = :project order by key_hash limit :limit)""")
_SESSION = text("delete from sessions where stream_id = :stream")
_SESSIONS = text("""
select x.stream_id from sessions x where x.project_id = :project
  and exists (select 1 from streams s where s.id = x.stream_id and s.subject_id = :subject)
order by x.stream_id limit :limit""")
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
    page = conn.scalar(_PAGES[scope], params)
    if page is not None:
        return erase_bit_of_page(conn, params["project"], page, keep_deleted=kind in ("event", "stream"))
    handoffs = [r[0] for r in conn.rows(_HANDOFFS[scope], {**params, "limit": ROWS_PER_CHUNK})]
    if handoffs:
        _delete_handoffs(conn, handoffs)
        return {"handoffs": len(handoffs)}
    return _rest(conn, kind, params)


def erase_bit_of_page(conn: Connection, project: int, page: int, *, keep_deleted: bool) -> dict[str, int]:
    """Some sections, and the page with the last of them.

    A page that a person had deleted leaves its mark unless all of its owner's goes: it is not made again (E03).
    """
    sections = sections_of_page(conn, page, SECTIONS_PER_CHUNK)
    passages = drop_sections(conn, project, sections)
    if len(sections) == SECTIONS_PER_CHUNK:
        return {"passages": passages}
    forget_proposals_about(conn, project, page)
    return {"pages": 1, "passages": passages + erase_pages(conn, [page], project=project, keep_deleted=keep_deleted)}


def _rest(conn: Connection, kind: str, params: dict[str, Any]) -> dict[str, int] | None:
    """Of each session its keys, a part at a time, and then its row."""
    if kind == "event":
        conn.run(_UNDIGEST, params)
        return None
    if kind == "stream":
        if _forget_session(conn, params["project"], params["stream"], KEYS_PER_CHUNK) == KEYS_PER_CHUNK:
            return {}
        conn.run(_TOMBS["stream"], params)
        return None
    sessions = conn.rows(_SESSIONS, {**params, "limit": SESSIONS_PER_CHUNK})
    room = KEYS_PER_CHUNK
    for (stream,) in sessions:
        room -= _forget_session(conn, params["project"], stream, room)
        if room <= 0:
            break
    if sessions:
        return {}
    conn.run(_TOMBS["subject"], params)
    return None


def _forget_session(conn: Connection, project: int, stream: int, limit: int) -> int:
    """Forget what was told under at most so many of its keys; how many. Its row goes with the last of them.

    The keys stay, so that the session stays out.
    """
    told = conn.run(_FORGET_KEYS, {"project": project, "stream": stream, "limit": limit, "forgotten": FORGOTTEN})
    if told < limit:
        conn.run(_SESSION, {"stream": stream})
    return told


def _offers(conn: Connection, kind: str, params: dict[str, Any]) -> int:
    """Offers hold what many things said, by words and not by lineage, and nobody misses them: all of the project go.

    What the project `default` says in its rules is offered in every project.
    """
    everywhere = kind == "project" or bool(conn.scalar(_EVERYWHERE, params))
    rows = conn.rows(_OFFERS, {**params, "everywhere": everywhere, "limit": ROWS_PER_CHUNK})
    return conn.run(_DELETE_OFFERS, {"ids": json.dumps([r[0] for r in rows])}) if rows else 0


def _delete_handoffs(conn: Connection, handoffs: list[int]) -> None:
    for statement in (_REPLACED, _DELETE_HANDOFFS):
        conn.run(statement, {"ids": json.dumps(handoffs)})


def forget_tellings(conn: Connection, project: int, stream: int, seqs: list[int]) -> None:
    """Of erased events only the keys stay, and no telling of them is richer: they stay out."""
    conn.many(_FORGET_TELLING, [{"project": project, "stream": stream, "seq": seq} for seq in seqs])


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
        erase_pages(conn, pages, project=project, keep_deleted=True)
    handoffs = [r[0] for r in conn.rows(_HANDOFFS_OF, {"stream": stream})]
    if handoffs:
        _delete_handoffs(conn, handoffs)
    conn.run(_UNDIGEST, {"stream": stream})


_CARRYING = text("""
select distinct h.stream_id from handoffs h cross join objects(h.open_ends) e
where h.project_id = :project and h.stream_id <> :stream and number_in(e.value, 'carried') > 0""")


def carriers_of(conn: Connection, project: int, stream: int) -> list[int]:
    """Sessions whose handoff carries on what earlier ones left open: it may be what is erased."""
    return [r[0] for r in conn.rows(_CARRYING, {"project": project, "stream": stream})]


def destroy_identity(conn: Connection, project: int) -> dict[str, int] | None:
    """The last of a project: the keys of what was told of it, a part at a time, then what named it; None at the end."""
    if conn.run(_KEYS_OF_PROJECT, {"project": project, "limit": KEYS_PER_CHUNK}) == KEYS_PER_CHUNK:
        return {}
    aliases = drop_aliases(conn, project)
    return {"aliases": aliases} if aliases else None
