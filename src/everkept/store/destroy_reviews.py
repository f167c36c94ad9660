"""What an erase destroys of reviews: observations, reviews, and proposals by their evidence (G10).

A proposal goes with any part of what it rests on: it is made again of what remains. So does the page that an approval
made of it; what an approval added to a page of somebody else is taken out of all its versions. A rejected one stays
while some of its evidence does, without a word, so that it is not proposed again. Of a generation its number stays, so
that the watermark has no hole to stop at.
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import text

from everkept.store.connection import Connection
from everkept.store.destroy_agents import erase_bit_of_page
from everkept.store.generations import REVIEW, advance, review_key
from everkept.store.pages import take_out_lines
from everkept.store.proposals import APPLY

PROPOSALS_PER_CHUNK = 20
ROWS_PER_CHUNK = 200
STREAMS_PER_CHUNK = 20

Counts = dict[str, int]

_RESTING = {
    "event": text("""
select proposal_id from proposal_quotes where stream_id = :stream and seq = :seq
union select id from proposals where stream_id = :stream and state in ('staged', 'conflict') limit :limit"""),
    "stream": text("""
select proposal_id from proposal_quotes where stream_id = :stream
union select id from proposals where stream_id = :stream limit :limit"""),
    "subject": text("""
select q.proposal_id from streams s join proposal_quotes q on q.stream_id = s.id where s.subject_id = :subject
union select p.id from streams s join proposals p on p.stream_id = s.id where s.subject_id = :subject limit :limit"""),
}
_DROP_QUOTES = {
    "event": text("""
delete from proposal_quotes where stream_id = :stream and seq = :seq
  and proposal_id in (select value from numbers(:ids))"""),
    "stream": text("""
delete from proposal_quotes where stream_id = :stream and proposal_id in (select value from numbers(:ids))"""),
    "subject": text("""
delete from proposal_quotes where stream_id in (select id from streams where subject_id = :subject)
  and proposal_id in (select value from numbers(:ids))"""),
}
_GOING = text("""
select p.id from proposals p where p.id in (select value from numbers(:ids)) and (p.state <> 'rejected'
  or not exists (select 1 from proposal_quotes q where q.proposal_id = p.id))""")
_WRITTEN = text("""
select page_id, previous, body, id from proposals where id in (select value from numbers(:ids))
  and page_id is not null order by id limit 1""")
_UNWRITTEN = text("update proposals set page_id = null where id = :id")
_IS_THERE = text("select 1 from pages where id = :page and version > 0")
_DROP_ALL_QUOTES = text("delete from proposal_quotes where proposal_id in (select value from numbers(:ids))")
_DELETE_PROPOSALS = text("delete from proposals where id in (select value from numbers(:ids))")
_SILENCE = text("""
update proposals set slug = '', title = '', section = '', body = '', why = '', state_reason = null
where id in (select value from numbers(:ids))""")
_UNLINK = {
    "stream": text("""
update proposals set review_id = null, stream_id = null
where id in (select value from numbers(:ids)) and stream_id = :stream"""),
    "subject": text("""
update proposals set review_id = null, stream_id = null
where id in (select value from numbers(:ids)) and stream_id in (select id from streams where subject_id = :subject)
"""),
}

# An event's session is reviewed again over what remains, so that all that it showed is observed anew.
_OBSERVATIONS = """
delete from observations where (project_id, signature, stream_id, seq) in (
  select o.project_id, o.signature, o.stream_id, o.seq from {rows} limit :limit)"""
_FORGET = {
    "stream": text(_OBSERVATIONS.format(rows="observations o where o.stream_id = :stream")),
    "subject": text(_OBSERVATIONS.format(
        rows="streams s join observations o on o.stream_id = s.id where s.subject_id = :subject")),
}  # fmt: skip
_SAY_NOTHING = (
    text("update reviews set refused = '[]', note = null where stream_id = :stream"),
    text("update generations set reason = null where stream_id = :stream"),
)

_STREAMS = {
    "stream": text("select distinct stream_id from generations where stream_id = :stream limit :limit"),
    "subject": text("""
select distinct g.stream_id from streams s join generations g on g.stream_id = s.id where s.subject_id = :subject
limit :limit"""),
}
_NUMBERS = text("select seq from generations where stream_id in (select value from numbers(:streams))")
_DROP_REVIEWS = text("delete from reviews where stream_id in (select value from numbers(:streams))")
_ENTOMB = text("""
update generations set state = 'erased', stream_id = null, digest_hash = '', reason = null, ended_at = null,
  passed_at = coalesce(passed_at, :now)
where stream_id in (select value from numbers(:streams))""")


def review_jobs(conn: Connection, kind: str, params: dict[str, Any]) -> list[tuple[str, str]]:
    """(kind, key) of the jobs of the reviews and proposals that `destroy_review_work` takes next."""
    approvals = [(APPLY, str(proposal)) for proposal in _resting(conn, kind, params)]
    if kind == "event":  # its session is reviewed still
        return approvals
    streams = json.dumps(_streams(conn, kind, params))
    reviews = [(REVIEW, review_key(params["project"], r[0])) for r in conn.rows(_NUMBERS, {"streams": streams})]
    return [*approvals, *reviews]


def _resting(conn: Connection, kind: str, params: dict[str, Any]) -> list[int]:
    return [r[0] for r in conn.rows(_RESTING[kind], {**params, "limit": PROPOSALS_PER_CHUNK})]


def _streams(conn: Connection, kind: str, params: dict[str, Any]) -> list[int]:
    return [r[0] for r in conn.rows(_STREAMS[kind], {**params, "limit": STREAMS_PER_CHUNK})]


def destroy_review_work(conn: Connection, kind: str, params: dict[str, Any]) -> Counts | None:
    """The next bit of what reviews made of an event, session or subject; None where nothing is left."""
    proposals = _resting(conn, kind, params)
    written = conn.first(_WRITTEN, {"ids": json.dumps(proposals)})
    if written is not None:
        return _unwrite(conn, kind, params, *written)
    if proposals:
        return {"proposals": _destroy_proposals(conn, kind, params, proposals)}
    scope = "subject" if kind == "subject" else "stream"
    forgotten = conn.run(_FORGET[scope], {**params, "limit": ROWS_PER_CHUNK})
    if forgotten:
        return {"observations": forgotten}
    if kind == "event":
        for statement in _SAY_NOTHING:
            conn.run(statement, params)
        return None
    streams = _streams(conn, scope, params)
    if not streams:
        return None
    given = {"streams": json.dumps(streams), "now": conn.now()}
    reviews = conn.run(_DROP_REVIEWS, given)
    conn.run(_ENTOMB, given)
    advance(conn, params["project"])
    return {"reviews": reviews}


def _unwrite(
    conn: Connection, kind: str, params: dict[str, Any], page: int, previous: int | None, body: str, proposal: int
) -> Counts:
    """A bit of the page that an approval made, or all that it added to one."""
    counts: Counts = {}
    if previous is not None:
        take_out_lines(conn, params["project"], page, body)
    elif conn.first(_IS_THERE, {"page": page}) is not None:
        counts = erase_bit_of_page(conn, params["project"], page, keep_deleted=kind in ("event", "stream"))
    if conn.first(_IS_THERE, {"page": page}) is None or previous is not None:
        conn.run(_UNWRITTEN, {"id": proposal})
    return counts


def _destroy_proposals(conn: Connection, kind: str, params: dict[str, Any], proposals: list[int]) -> int:
    ids = json.dumps(proposals)
    conn.run(_DROP_QUOTES[kind], {**params, "ids": ids})
    going = json.dumps([r[0] for r in conn.rows(_GOING, {"ids": ids})])
    conn.run(_DROP_ALL_QUOTES, {"ids": going})
    gone = conn.run(_DELETE_PROPOSALS, {"ids": going})
    conn.run(_SILENCE, {"ids": ids})
    if kind != "event":
        conn.run(_UNLINK[kind], {**params, "ids": ids})
    return gone


# ---- the last of a project

_REST = (
    text("""
delete from proposal_quotes where proposal_id in (
  select id from proposals where project_id = :project order by id limit :limit)"""),
    text("""
delete from proposals where id in (select id from proposals where project_id = :project order by id limit :limit)"""),
    text("""
delete from reviews where id in (select id from reviews where project_id = :project limit :limit)"""),
    text("""
delete from generations where project_id = :project and seq in (
  select seq from generations where project_id = :project order by seq limit :limit)"""),
    text("delete from review_states where project_id = :project and :limit > 0"),
)


def destroy_project_reviews(conn: Connection, project: int) -> int:
    """What was proposed by hand, and the numbers; how many rows, 0 at the end. Its jobs are gone before."""
    given = {"project": project, "limit": ROWS_PER_CHUNK}
    return next((gone for gone in (conn.run(statement, given) for statement in _REST) if gone), 0)
