"""A subject's threads and sessions move one after the other, each with all that rests on it; its own row comes last.

A long one's turns and windows come in earlier chunks, so that no transaction is long. Until its row is there nobody
finds it by its name, and nobody can add to it.
"""

from __future__ import annotations

import json
from typing import Final

from sqlalchemy import text

from everkept.domain.ids import ProjectId
from everkept.store.connection import Connection
from everkept.store.destroy import job_keys
from everkept.store.generations import REVIEW, advance, anything_waits, ensure_state, review_key
from everkept.store.lanes import ensure_lane
from everkept.store.merge_jobs import move_jobs, rename_job
from everkept.store.merge_pages import move_pages
from everkept.store.merge_part import Chunk, Part, Place, Renamed, another_name
from everkept.store.merge_replies import move_replies
from everkept.store.review_jobs import wake_scheduler
from everkept.store.search import moved_vectors
from everkept.store.streams import TIMER, wake_embedder
from everkept.store.windows import DISTIL, FOLD

TURNS_PER_CHUNK: Final = 250
WINDOWS_PER_CHUNK: Final = 60
COSTS_TURNS: Final = {"thread": 25, "session": 100}
"""What a stream's own rows and all that was made of it cost, counted in turns."""
NAME_CHARS_MAX: Final = 255

_NEXT = text("""
select id, kind, name, last_seq from streams where subject_id = :subject and id > :from and project_id = :source
order by id limit 1""")


def streams(conn: Connection, part: Part, place: Place) -> Chunk:
    """Some whole ones, or a stretch of a long one. `place`: the stream that is on its way, and how far its turns are;
    (n, 0) is done with n."""
    counts: dict[str, int] = {}
    renamed: list[Renamed] = []
    room = TURNS_PER_CHUNK
    while room > 0:
        after = place.after - 1 if place.after_seq else place.after
        row = conn.first(_NEXT, {**part.params, "from": after})
        if row is None:
            return Chunk(counts, None, tuple(renamed))
        stream, kind, name, last_seq = row
        done = place.after_seq if stream == place.after else 0
        upto = min(last_seq, done + room)
        _move_turns(conn, part, stream, done, upto)
        moved = max(upto - done, 0)
        counts["messages"] = counts.get("messages", 0) + moved
        if upto < last_seq or not _move_windows(conn, part, stream) or not _move_keys(conn, part, stream):
            return Chunk(counts, Place(stream, max(upto, 1)), tuple(renamed))  # (n, 0) would be done with it
        renamed += _move_row(conn, part, stream, kind, name)
        if kind == "session":
            pages, called = move_pages(conn, part, stream=stream)
            counts["pages"] = counts.get("pages", 0) + pages
            renamed += called
        counts[f"{kind}s"] = counts.get(f"{kind}s", 0) + 1
        room -= moved + COSTS_TURNS[kind]
        place = Place(stream, 0)
    return Chunk(counts, place, tuple(renamed))


# ---- turns, windows, keys

_EVENTS = text("""
update events set project_id = :target
where stream_id = :stream and seq > :after and seq <= :upto and project_id = :source""")
_PASSAGES = text("""
update passages set project_id = :target, subject_id = :into
where kind = 'turn' and stream_id = :stream and seq > :after and seq <= :upto and project_id = :source""")
_VECTORS = text("""
update vectors set project_id = :target, subject_id = :into where passage_id in (
  select id from passages where kind = 'turn' and stream_id = :stream and seq > :after and seq <= :upto)""")
_WINDOWS = text("""
select id, slices from windows where stream_id = :stream and project_id = :source order by end_seq limit :limit""")
_MOVE_WINDOWS = text("""
update windows set project_id = :target, subject_id = :into where id in (select value from numbers(:ids))""")
_KEYS = text("""
select key_hash from natural_keys where stream_id = :stream and project_id = :source limit :limit""")
# The target may have heard of an event since: what it heard is newer.
_KEYS_THERE = text("""
delete from natural_keys where project_id = :source and key_hash in (select value from words(:keys))
  and exists (select 1 from natural_keys k where k.project_id = :target and k.key_hash = natural_keys.key_hash)""")
_MOVE_KEYS = text("""
update natural_keys set project_id = :target
where project_id = :source and key_hash in (select value from words(:keys))""")


def _move_turns(conn: Connection, part: Part, stream: int, after: int, upto: int) -> None:
    given = {**part.params, "stream": stream, "after": after, "upto": upto}
    for statement in (_EVENTS, _PASSAGES, _VECTORS):
        conn.run(statement, given)
    moved_vectors(conn, ProjectId(part.source), ProjectId(part.target))
    wake_embedder(conn, part.target)


def _move_windows(conn: Connection, part: Part, stream: int) -> bool:
    """Some of its windows with their jobs; whether these were all."""
    rows = conn.rows(_WINDOWS, {**part.params, "stream": stream, "limit": WINDOWS_PER_CHUNK})
    conn.run(_MOVE_WINDOWS, {**part.params, "ids": json.dumps([r[0] for r in rows])})
    move_jobs(conn, part, [key for window, slices in rows for key in job_keys(window, slices)])
    return len(rows) < WINDOWS_PER_CHUNK


def _move_keys(conn: Connection, part: Part, stream: int) -> bool:
    """Some of the natural keys that name it; whether these were all."""
    rows = conn.rows(_KEYS, {**part.params, "stream": stream, "limit": 2 * TURNS_PER_CHUNK})
    given = {**part.params, "keys": json.dumps([r[0] for r in rows])}
    for statement in (_KEYS_THERE, _MOVE_KEYS):
        conn.run(statement, given)
    return len(rows) < 2 * TURNS_PER_CHUNK


# ---- the row itself

_TAKEN = text("select 1 from streams where project_id = :target and kind = :kind and name = :name")
_MOVE = text("""
update streams set project_id = :target, subject_id = :into, lane_id = :lane, name = :name where id = :stream""")
_OBSERVATIONS = text("update observations set project_id = :target where stream_id = :stream")
_HANDOFFS = text("update handoffs set project_id = :target where stream_id = :stream")


def _move_row(conn: Connection, part: Part, stream: int, kind: str, name: str) -> list[Renamed]:
    """The stream appears in the target, whole: its session, generations, reviews, pages, handoffs and jobs with it."""
    given = {**part.params, "stream": stream, "kind": kind}
    new, renamed = name, list[Renamed]()
    while conn.first(_TAKEN, {**given, "name": new}) is not None:
        new = another_name(name, part, stream, taken=new != name, length_max=NAME_CHARS_MAX)
    if new != name:
        renamed.append((kind, name, new))
    conn.run(_MOVE, {**given, "lane": ensure_lane(conn, part.target, part.into), "name": new})
    move_jobs(conn, part, [(job, str(stream)) for job in (TIMER, FOLD, DISTIL)])
    if kind == "session":
        _move_session(conn, part, stream)
        conn.run(_OBSERVATIONS, given)
        conn.run(_HANDOFFS, given)
        _keep_one_open(conn, part, stream)
    move_replies(conn, part)
    return renamed


# ---- generations: renumbered, so that none is reviewed twice and none forgotten

_GENERATIONS = text("select seq from generations where stream_id = :stream and project_id = :source order by seq")
_TAKE = text("update projects set finished_seq = finished_seq + :n where id = :target returning finished_seq")
# Out of the way of the source's own numbers first; reviews follow by their key.
_NUMBER = text("update generations set seq = - cast(:new as bigint) where project_id = :source and seq = :old")
_SHOW = text("update generations set seq = - seq where project_id = :target and stream_id = :stream and seq < 0")
_FINISHED = text("select finished_seq from sessions where stream_id = :stream")
_SESSION = text("""
update sessions set project_id = :target, finished_seq = :finished where stream_id = :stream""")


def _move_session(conn: Connection, part: Part, stream: int) -> None:
    """Its generations take the target's next numbers, in their order; they pass its watermark like any others."""
    given = {**part.params, "stream": stream}
    old = [r[0] for r in conn.rows(_GENERATIONS, given)]
    first = conn.scalar(_TAKE, {"target": part.target, "n": len(old)}) - len(old) + 1 if old else 0
    new = {seq: first + nth for nth, seq in enumerate(old)}
    conn.many(_NUMBER, [{"source": part.source, "old": seq, "new": number} for seq, number in new.items()])
    finished = conn.scalar(_FINISHED, given)
    conn.run(_SESSION, {**given, "finished": new.get(finished)})
    conn.run(_SHOW, given)
    move_jobs(conn, part, [(REVIEW, review_key(part.source, seq)) for seq in old])
    for seq, number in new.items():
        args = json.dumps({"generation": number})
        rename_job(conn, REVIEW, review_key(part.source, seq), review_key(part.target, number), args)
    if new:
        ensure_state(conn, part.target)
        advance(conn, part.target)
        advance(conn, part.source)
        if anything_waits(conn, part.target):
            wake_scheduler(conn, part.target)


# ---- handoffs: one is open per worktree

_OPEN_BESIDE = text("""
select h.id from handoffs h where h.project_id = :target and h.state = 'open' and h.worktree in (
  select worktree from handoffs where stream_id = :stream and state = 'open' and worktree is not null)
order by h.created_at desc, h.id desc""")
_REPLACED = text("""
update handoffs set state = 'replaced', replaced_by = :by, settled_at = :now
where id in (select value from numbers(:ids)) and id <> :by""")


def _keep_one_open(conn: Connection, part: Part, stream: int) -> None:
    """The newest of a worktree. A session leaves one handoff at a time, so these are of one worktree."""
    open_ones = [r[0] for r in conn.rows(_OPEN_BESIDE, {**part.params, "stream": stream})]
    if len(open_ones) > 1:
        conn.run(_REPLACED, {"ids": json.dumps(open_ones), "by": open_ones[0], "now": conn.now()})
