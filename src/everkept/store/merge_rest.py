"""What a project has beside its subjects moves last: offers, proposals, vectors that were paid for, lines of work,
jobs, erases that were done, and those who follow its outbox."""

from __future__ import annotations

from typing import Final

from sqlalchemy import TextClause, text

from everkept.store.connection import Connection
from everkept.store.generations import SCHEDULER
from everkept.store.merge_changes import joined, unheard
from everkept.store.merge_jobs import drop_job, move_jobs_left
from everkept.store.merge_pages import PAGES_PER_CHUNK, move_pages
from everkept.store.merge_part import Chunk, Part, Place, Renamed, Stage, another_name
from everkept.store.merge_replies import REPLIES_PER_CHUNK, move_replies
from everkept.store.streams import EMBED, EMBED_WORDS

ROWS_PER_CHUNK: Final = 200
NAME_CHARS_MAX: Final = 255

_ORDER: Final = "where project_id = :source limit :limit"


def replies(conn: Connection, part: Part, _place: Place) -> Chunk:
    """What was asked since the first stage."""
    moved = move_replies(conn, part)
    return Chunk({"replies": moved}, Place() if moved == REPLIES_PER_CHUNK else None)


def pages(conn: Connection, part: Part, _place: Place) -> Chunk:
    moved, renamed = move_pages(conn, part)
    return Chunk({"pages": moved}, Place() if moved == PAGES_PER_CHUNK else None, tuple(renamed))


# ---- offers, proposals, erases, embeddings

_OFFERS = text(f"update offers set project_id = :target where id in (select id from offers {_ORDER})")
# What both have proposed stays proposed by the target.
_PROPOSED = text("""
update proposals set state = 'superseded', decided_at = :now,
  state_reason = 'the project that it came into had the same proposal'
where project_id = :source and state = 'staged' and exists (select 1 from proposals t
  where t.project_id = :target and t.state = 'staged' and t.fingerprint = proposals.fingerprint)""")
_PROPOSALS = text(f"update proposals set project_id = :target where id in (select id from proposals {_ORDER})")
_ERASURES = text(f"""
update erasures set project_id = :target, subject_id = coalesce(
  (select u.merged_into from subjects u where u.id = erasures.subject_id), subject_id)
where id in (select id from erasures {_ORDER})""")
_EMBEDDING = "select project_id, model, dim, text_hash from embeddings where project_id = :source limit :limit"
_EMBEDDED_THERE = text(f"""
delete from embeddings where (project_id, model, dim, text_hash) in (
  select s.project_id, s.model, s.dim, s.text_hash from ({_EMBEDDING}) s join embeddings t
    on t.project_id = :target and t.model = s.model and t.dim = s.dim and t.text_hash = s.text_hash)""")
_EMBEDDINGS = text(f"""
update embeddings set project_id = :target where (project_id, model, dim, text_hash) in ({_EMBEDDING})""")


def _some(name: str, move: TextClause, before: TextClause | None = None) -> Stage:
    """Rows that go as they are, so many at a time; `before`: what makes room for them."""

    def stage(conn: Connection, part: Part, _place: Place) -> Chunk:
        given = {**part.params, "limit": ROWS_PER_CHUNK, "now": conn.now()}
        made = 0 if before is None else conn.run(before, given)
        moved = conn.run(move, given)
        return Chunk({name: moved}, Place() if moved + made else None)

    return stage


# ---- lines of work

_WORKSTREAMS = text("select id, name from workstreams where project_id = :source order by id limit 20")
_NAMED = text("select 1 from workstreams where project_id = :target and name = :name")
_WORKSTREAM = text("update workstreams set project_id = :target, name = :name where id = :id")
_OF_WORKSTREAM = tuple(
    text(f"update {table} set project_id = :target where workstream_id = :id")
    for table in ("launches", "launch_sessions")
)
_SELECTED_THERE = text("""
delete from workstream_selections where project_id = :source and workstream_id = :id and exists (
  select 1 from workstream_selections t where t.project_id = :target and t.place = workstream_selections.place)""")
_SELECTIONS = text("update workstream_selections set project_id = :target where workstream_id = :id")


def workstreams(conn: Connection, part: Part, _place: Place) -> Chunk:
    """Each with its launches, ledger and cursors, which name it by number."""
    renamed: list[Renamed] = []
    rows = conn.rows(_WORKSTREAMS, part.params)
    for id_, name in rows:
        new = name
        while conn.first(_NAMED, {**part.params, "name": new}) is not None:
            new = another_name(name, part, id_, taken=new != name, length_max=NAME_CHARS_MAX)
        renamed += [("workstream", name, new)] if new != name else []
        for statement in (_WORKSTREAM, *_OF_WORKSTREAM, _SELECTED_THERE, _SELECTIONS):
            conn.run(statement, {**part.params, "id": id_, "name": new})
    return Chunk({"workstreams": len(rows)}, Place() if rows else None, tuple(renamed))


# ---- jobs

_OWN_JOBS: Final = (SCHEDULER, EMBED, EMBED_WORDS)
"""A project's own, which the target has too."""


def jobs(conn: Connection, part: Part, place: Place) -> Chunk:
    if not place.after:
        for kind in _OWN_JOBS:
            drop_job(conn, part, kind, str(part.source))
    ids = move_jobs_left(conn, part, place.after, ROWS_PER_CHUNK // 4)
    return Chunk({"jobs": len(ids)}, Place(ids[-1]) if ids else None)


# ---- those who follow the outbox

_WEBHOOKS = text("select id, name from webhooks where project_id = :source order by id")
_WEBHOOK_NAMED = text("select 1 from webhooks where project_id = :target and name = :name")
_WEBHOOK = text("""
update webhooks set project_id = :target, name = :name, subject_id = coalesce(
  (select u.merged_into from subjects u where u.id = webhooks.subject_id), subject_id) where id = :id""")
# What was carried has its new number, negative. What was pruned before has the old one still, which is another
# change's now, and nobody meant to send that again.
_NO_LONGER_KEPT = text("delete from parked_changes where webhook_id = :id and seq > 0")
_SHOW_PARKED = text("update parked_changes set seq = - seq where webhook_id = :id and seq < 0")
_FOLLOWER = text("""
update consumers set name = 'webhook:' || :new where project_id = :source and name = 'webhook:' || :name""")
# One of a name that the target has goes on where that one is; the others hear all since the merge began.
_FOLLOWERS = text("""
insert into consumers(project_id, name, cursor, fence, created_at)
select :target, c.name, :change, max(c.fence, t.last_fence) + 1, c.created_at
from consumers c join projects t on t.id = :target
where c.project_id = :source and c.name <> 'wiki'
on conflict do nothing""")
_NO_FOLLOWERS = text("delete from consumers where project_id = :source")


def followers(conn: Connection, part: Part, _place: Place) -> Chunk:
    """Webhooks and consumers, at the last change before the merge: what they are told twice, nothing is left out."""
    renamed: list[Renamed] = []
    gone = 0
    rows = conn.rows(_WEBHOOKS, part.params)
    for id_, name in rows:
        new = name
        while conn.first(_WEBHOOK_NAMED, {**part.params, "name": new}) is not None:
            new = another_name(name, part, id_, taken=new != name, length_max=NAME_CHARS_MAX)
        renamed += [("webhook", name, new)] if new != name else []
        gone += conn.run(_NO_LONGER_KEPT, {"id": id_})
        for statement in (_WEBHOOK, _SHOW_PARKED):
            conn.run(statement, {**part.params, "id": id_, "name": new})
        conn.run(_FOLLOWER, {**part.params, "name": name, "new": new})
    conn.run(_FOLLOWERS, {**part.params, "change": part.change})
    conn.run(_NO_FOLLOWERS, part.params)
    conn.ring(part.target)
    return Chunk({"webhooks": len(rows), "parked changes no longer kept": gone}, None, tuple(renamed))


_TOMBS = text("""
delete from generations where project_id = :source and stream_id is null and seq in (
  select seq from generations where project_id = :source order by seq limit :limit)""")
_NO_STATE = text("delete from review_states where project_id = :source")


def nothing_left(conn: Connection, part: Part, _place: Place) -> Chunk:
    """What only numbered the source's own."""
    given = {**part.params, "limit": ROWS_PER_CHUNK}
    if conn.run(_TOMBS, given):
        return Chunk({}, Place())
    conn.run(_NO_STATE, given)
    return Chunk({}, None)


PROJECT_STAGES: Final[tuple[Stage, ...]] = (
    replies, pages, workstreams, _some("offers", _OFFERS), _some("proposals", _PROPOSALS, _PROPOSED),
    _some("embeddings", _EMBEDDINGS, _EMBEDDED_THERE), _some("erases", _ERASURES), jobs, unheard, joined,
    followers, nothing_left,
)  # fmt: skip
