"""What an erase destroys, a chunk at a time: turns, facts, windows, replies, names, each with all that rests on it.

A chunk takes what is left of its scope, so it may be repeated, and a crash between two chunks loses nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sqlalchemy import text

from everkept.domain.erase import erased_name
from everkept.domain.ids import ProjectId, row_id
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.destroy_agents import destroy_agent_work, destroy_identity
from everkept.store.destroy_launches import destroy_launch_work, destroy_project_workstreams
from everkept.store.destroy_reviews import destroy_project_reviews, destroy_review_work, review_jobs
from everkept.store.embeddings import around_input, forget_embeddings, own_input
from everkept.store.entity_merges import release_members
from everkept.store.facts import JUDGE, release_names, settle_slots
from everkept.store.forgotten import delete_marks, mark_forgotten
from everkept.store.hand import take_back_corrections
from everkept.store.jobs_by_hand import discard_by_hand
from everkept.store.merging import forget_renamed
from everkept.store.search import delete_passages, find_passages_of
from everkept.store.streams import TIMER
from everkept.store.webhooks import erase_webhooks
from everkept.store.windows import DIGEST, DISTIL, EXTRACT, FOLD, SUMMARISE

# A full-text row costs 2 to 7 ms to delete, because `secure-delete` rewrites a page of the index for each of its terms.
TURNS_PER_CHUNK = 3
CHARS_PER_CHUNK = 3_000
FACTS_PER_CHUNK = 3
WINDOWS_PER_CHUNK = 1
STREAMS_PER_CHUNK = 200
REPLIES_PER_CHUNK = 200
CHANGES_PER_CHUNK = 2_000
ROWS_PER_CHUNK = 200

Counts = dict[str, int]
Kind = Literal["event", "stream", "subject", "project"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What is being destroyed: one event, stream or subject, or what a project has beside its subjects."""

    kind: Kind
    project: int
    subject: int | None
    stream: int | None
    seq: int | None
    window: int | None
    """The window that covers the event, where one does."""

    @property
    def params(self) -> dict[str, Any]:
        return {
            "project": self.project, "subject": self.subject, "stream": self.stream, "seq": self.seq,
            "window": self.window,
        }  # fmt: skip


class Place(NamedTuple):
    """How far a stage has come. (0, 0) is its beginning."""

    after: int = 0
    after_seq: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    rows: Counts
    go_on: Place | None
    """None: the stage is finished."""


Stage = Callable[[Connection, Piece, Place], Chunk]


def _ids(values: Iterable[int]) -> str:
    return json.dumps(list(values))


# ---- the turns

_TURNS_OF_STREAM = text("""
select stream_id, seq, length(content) from events where stream_id = :stream and seq > :after_seq and erased_at is null
order by seq limit :limit""")
_TURNS_OF_SUBJECT = text("""
select e.stream_id, e.seq, length(e.content) from streams s join events e on e.stream_id = s.id
where s.subject_id = :subject and (s.id, e.seq) > (:after, :after_seq) and s.id >= :after and e.erased_at is null
order by s.id, e.seq limit :limit""")
_TURN_TEXTS = text("""
select e.stream_id, e.seq, e.content, e.tokens, p.id, p.speaker, a.content, pa.speaker, b.content, pb.speaker
from number_pairs(:places) h join events e on e.stream_id = h.one and e.seq = h.two
left join passages p on p.kind = 'turn' and p.stream_id = e.stream_id and p.seq = e.seq
left join events a on a.stream_id = e.stream_id and a.seq = e.seq - 1
left join passages pa on pa.kind = 'turn' and pa.stream_id = a.stream_id and pa.seq = a.seq
left join events b on b.stream_id = e.stream_id and b.seq = e.seq + 1
left join passages pb on pb.kind = 'turn' and pb.stream_id = b.stream_id and pb.seq = b.seq""")
_UNCOUNT = text("""
update streams set pending_tokens = pending_tokens - :tokens
where id = :stream and covered_seq < :seq and erased_at is null""")
_BLANK = text("""
update events set role = '', name = null, content = null, occurred_at = :now, zone_min = null, recorded_at = :now,
  payload_hash = null, evidence = 0, metadata = null, tokens = 0, model = null, erased_at = :now
where stream_id = :stream and seq = :seq""")


def turns(conn: Connection, piece: Piece, place: Place) -> Chunk:
    """Blank the events; what stays of each is its place and the keyed hash of its key: a re-import stays out."""
    params = {**piece.params, "after": place.after, "after_seq": place.after_seq, "limit": TURNS_PER_CHUNK}
    rows = conn.rows(_TURNS_OF_SUBJECT if piece.kind == "subject" else _TURNS_OF_STREAM, params)
    taken: list[tuple[int, int]] = []
    chars = 0
    for stream, seq, length in rows:
        chars += length or 0
        if taken and chars > CHARS_PER_CHUNK:
            break
        taken.append((stream, seq))
    if not taken:
        return Chunk({}, None)
    return Chunk(destroy_turns(conn, piece.project, taken), Place(*taken[-1]))


def destroy_turns(conn: Connection, project: int, places: Sequence[tuple[int, int]]) -> Counts:
    rows = conn.rows(_TURN_TEXTS, {"places": json.dumps(places)})
    forgotten = forget_embeddings(conn, project, _turn_inputs(rows))
    passages = delete_passages(conn, ProjectId(project), [r[4] for r in rows if r[4] is not None])
    now = conn.now()
    conn.many(_UNCOUNT, [{"stream": r[0], "seq": r[1], "tokens": r[3]} for r in rows])
    conn.many(_BLANK, [{"stream": stream, "seq": seq, "now": now} for stream, seq in places])
    return {"messages": len(places), "passages": passages, "embeddings": forgotten}


def _turn_inputs(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """Every text that an embedder may have been given with words of these turns in it (derive/embed_passages.py)."""
    inputs = []
    for _, _, content, _, _, speaker, before, before_speaker, after, after_speaker in rows:
        if content is None:
            continue
        line = f"{speaker}: {content}"
        inputs += [own_input(content), around_input(line)]
        inputs += [around_input(f"{before_speaker}: {before}", line)] if before is not None else []
        inputs += [around_input(line, f"{after_speaker}: {after}")] if after is not None else []
    return inputs


# ---- the facts

_FACTS = {
    "event": text("""
select id from facts where window_id = :window
union select fact_id from fact_events where stream_id = :stream and seq = :seq order by 1 limit :limit"""),
    "stream": text("select distinct fact_id from fact_events where stream_id = :stream order by 1 limit :limit"),
    "subject": text("select id from facts where subject_id = :subject order by id limit :limit"),
}
_FACT_TEXTS = text("""
select f.id, f.subject_id, f.entity_id, f.predicate_norm, f.text, p.speaker, f.object_entity_id,
  coalesce(e.merged_into, e.id)
from facts f join entities e on e.id = f.entity_id
left join passages p on p.kind = 'fact' and p.ref_id = f.id where f.id in (select value from numbers(:ids))""")
_DELETE_VERDICTS = text("""
delete from verdicts where earlier_fact in (select value from numbers(:ids))
  or later_fact in (select value from numbers(:ids))""")
_DELETE_EVIDENCE = text("delete from fact_events where fact_id in (select value from numbers(:ids))")
_DELETE_FACTS = text("delete from facts where id in (select value from numbers(:ids))")
_UNUSED = text("""
select id from entities e where id in (select value from numbers(:ids))
  and not exists (select 1 from facts f where f.entity_id = e.id)
  and not exists (select 1 from facts f where f.object_entity_id = e.id)""")
_DELETE_ALIASES = text("delete from entity_aliases where entity_id in (select value from numbers(:ids))")
_DELETE_ENTITIES = text("delete from entities where id in (select value from numbers(:ids))")
RAISE_EPOCH = text("update subjects set epoch = epoch + 1, revision = revision + 1 where id = :subject")


def facts(conn: Connection, piece: Piece, _place: Place) -> Chunk:
    """Delete facts by lineage and settle what is left of their slots, as if they had never been said.

    An event takes all facts of its window with it: they come from a reply that was given with the event in view, and
    are derived again from what remains. What a hand had forgotten of them stays forgotten.
    """
    ids = [r[0] for r in conn.rows(_FACTS[piece.kind], {**piece.params, "limit": FACTS_PER_CHUNK})]
    if not ids:
        _free_corrections(conn, piece)
        return Chunk({}, None)
    return Chunk(_destroy_facts(conn, piece, ids), Place())


def _free_corrections(conn: Connection, piece: Piece) -> None:
    """What a hand put right of what is gone now."""
    if piece.stream is None:
        return
    for subject, slots in take_back_corrections(conn, piece.stream, piece.seq).items():
        conn.run(RAISE_EPOCH, {"subject": subject})
        _settle(conn, piece.project, subject, [], sorted(slots))


def _destroy_facts(conn: Connection, piece: Piece, ids: Sequence[int]) -> Counts:
    rows = conn.rows(_FACT_TEXTS, {"ids": _ids(ids)})
    inputs = [x for r in rows for x in (own_input(r[4]), around_input(f"{r[5]}: {r[4]}"))]
    forgotten = forget_embeddings(conn, piece.project, inputs)
    passages = delete_passages(conn, ProjectId(piece.project), find_passages_of(conn, "fact", ids))
    if piece.stream is not None and piece.seq is not None:
        mark_forgotten(conn, piece.project, ids, erased=(piece.stream, piece.seq))
    for statement in (_DELETE_VERDICTS, _DELETE_EVIDENCE, _DELETE_FACTS):
        conn.run(statement, {"ids": _ids(ids)})
    touched = {e for r in rows for e in (r[2], r[6]) if e is not None}
    renamed = [] if piece.kind == "subject" else release_names(conn, touched)
    unused = _unused(conn, touched)
    renamed += release_members(conn, unused)
    entities = _destroy_entities(conn, unused)
    for subject in sorted({r[1] for r in rows}):
        conn.run(RAISE_EPOCH, {"subject": subject})
        if piece.kind != "subject":
            _settle(conn, piece.project, subject, [r for r in rows if r[1] == subject], renamed)
    return {"facts": len(rows), "passages": passages, "embeddings": forgotten, "entities": entities}


def _settle(
    conn: Connection, project: int, subject: int, gone: Sequence[tuple[Any, ...]], renamed: Sequence[tuple[int, str]]
) -> None:
    changed = settle_slots(conn, project, subject, {*((r[7], r[3]) for r in gone), *renamed})
    record_changes(conn, project, [
        *(NewChange(kind="fact.erased", ref=row_id("fct", r[0]), subject=subject) for r in gone),
        *(NewChange(kind="fact.changed", ref=row_id("fct", f), subject=subject) for f in changed),
    ])  # fmt: skip


def _unused(conn: Connection, entities: Iterable[int]) -> list[int]:
    """Those that no fact speaks of any more."""
    return [r[0] for r in conn.rows(_UNUSED, {"ids": _ids(entities)})]


def _destroy_entities(conn: Connection, entities: Sequence[int]) -> int:
    conn.run(_DELETE_ALIASES, {"ids": _ids(entities)})
    return conn.run(_DELETE_ENTITIES, {"ids": _ids(entities)})


_ENTITIES = text("select id from entities where subject_id = :subject order by id limit :limit")
_ALIASES = text("delete from entity_aliases where subject_id = :subject")


def entities(conn: Connection, piece: Piece, _place: Place) -> Chunk:
    """Entities of a subject that no fact held any more when its facts went."""
    ids = [r[0] for r in conn.rows(_ENTITIES, {"subject": piece.subject, "limit": ROWS_PER_CHUNK})]
    if not ids:
        conn.run(_ALIASES, {"subject": piece.subject})
        return Chunk({}, None)
    return Chunk({"entities": _destroy_entities(conn, _unused(conn, ids))}, Place())


# ---- the windows

_WINDOWS = {
    "stream": text("select id, slices from windows where stream_id = :stream order by end_seq desc limit :limit"),
    "subject": text("select id, slices from windows where subject_id = :subject order by id desc limit :limit"),
}
_WINDOW_TEXTS = text("""
select coalesce(w.summary, '') || ' ' || coalesce(w.learnings, ''), p.speaker from windows w
left join passages p on p.kind = 'episode' and p.ref_id = w.id where w.id in (select value from numbers(:ids))""")
_DELETE_SLICES = text("delete from slices where window_id in (select value from numbers(:ids))")
_DELETE_WINDOWS = text("delete from windows where id in (select value from numbers(:ids))")


def windows(conn: Connection, piece: Piece, _place: Place) -> Chunk:
    """Delete windows, the last of a stream first, with their slices, summaries and jobs."""
    rows = conn.rows(_WINDOWS[piece.kind], {**piece.params, "limit": WINDOWS_PER_CHUNK})
    if not rows:
        return Chunk({}, None)
    ids = [r[0] for r in rows]
    counts = forget_summaries(conn, piece.project, ids)
    jobs = drop_jobs(conn, piece.project, [key for window, slices in rows for key in job_keys(window, slices)])
    conn.run(_DELETE_SLICES, {"ids": _ids(ids)})
    delete_marks(conn, ids)
    conn.run(_DELETE_WINDOWS, {"ids": _ids(ids)})
    return Chunk({**counts, "episodes": len(ids), "jobs": jobs}, Place())


def forget_summaries(conn: Connection, project: int, window_ids: Sequence[int]) -> Counts:
    """Destroy what search holds of these windows' summaries; the windows stay as they are."""
    rows = conn.rows(_WINDOW_TEXTS, {"ids": _ids(window_ids)})
    inputs = [x for own, speaker in rows for x in (own_input(own), around_input(f"{speaker}: {own}"))]
    forgotten = forget_embeddings(conn, project, inputs)
    passages = delete_passages(conn, ProjectId(project), find_passages_of(conn, "episode", window_ids))
    return {"passages": passages, "embeddings": forgotten}


# ---- jobs

_JOBS = text("""
select j.id, j.state from word_pairs(:keys) h join jobs j on j.kind = h.one and j.key = h.two
where j.project_id = :project""")
_DELETE_JOBS = text("delete from jobs where id in (select value from numbers(:ids))")


def job_keys(window: int, slices: int) -> list[tuple[str, str]]:
    return [(kind, f"{window}.{part}") for kind in (SUMMARISE, EXTRACT, DIGEST) for part in range(slices)]


def drop_jobs(conn: Connection, project: int, keys: Sequence[tuple[str, str]]) -> int:
    """Delete jobs with their arguments, errors and history. A running one loses its lease: its finish is refused."""
    rows = conn.rows(_JOBS, {"keys": json.dumps(keys), "project": project})
    for job, state in rows:
        if state not in ("done", "discarded"):
            discard_by_hand(conn, project, job, "erased")
    return conn.run(_DELETE_JOBS, {"ids": _ids(r[0] for r in rows)}) if rows else 0


# ---- streams and their names

_STREAMS = text("""
select id from streams where subject_id = :subject and erased_at is null order by id limit :limit""")
_NAMES = text("select kind, name from streams where id in (select value from numbers(:ids))")
_BLANK_STREAM = text("""
update streams set name = :name, settings = '{}', last_recorded_at = null, covered_seq = last_seq, pending_tokens = 0,
  end_through = 0, pulled_due_at = null, summary = null, summary_through = 0, erased_at = :now where id = :id""")


def streams(conn: Connection, piece: Piece, _place: Place) -> Chunk:
    """Take the names of a subject's threads away; each row stays, so that its number is never used again."""
    ids = [r[0] for r in conn.rows(_STREAMS, {"subject": piece.subject, "limit": STREAMS_PER_CHUNK})]
    if not ids:
        return Chunk({}, None)
    return Chunk(blank_streams(conn, piece.project, ids), Place())


def blank_streams(conn: Connection, project: int, ids: Sequence[int]) -> Counts:
    now = conn.now()
    forget_renamed(conn, project, [(kind, name) for kind, name in conn.rows(_NAMES, {"ids": _ids(ids)})])
    conn.many(_BLANK_STREAM, [{"id": s, "name": erased_name(s), "now": now} for s in ids])
    jobs = drop_jobs(conn, project, [(kind, str(s)) for s in ids for kind in (TIMER, FOLD, DISTIL)])
    return {"threads": len(ids), "jobs": jobs}


# ---- replies

_LOST = """exists (select 1 from numbers(r.recipe, 'facts') shown
    where not exists (select 1 from facts f where f.id = shown.value))
  or exists (select 1 from numbers(r.recipe, 'entities') shown
    where not exists (select 1 from entities n where n.id = shown.value))
  or exists (select 1 from numbers(r.recipe, 'pages') shown
    where not exists (select 1 from pages g where g.id = shown.value and g.version > 0))"""
_SHOWN = """exists (select 1 from numbers(r.recipe, 'streams') shown where shown.value = :stream)"""
"""Words of the stream were shown beside what the question was about."""
_PAGE = """
select r.id, {condition} from replies r where r.subject_id = :subject and r.id > :after order by r.id limit :limit"""
_REPLIES_TOUCHED = {
    "event": text(_PAGE.format(condition=f"""r.work like 'window:' || cast(:window as text) || '.%' or {_LOST}
  or (number_in(r.recipe, 'stream') = :stream and number_in(r.recipe, 'through') >= :seq) or {_SHOWN}""")),
    "stream": text(_PAGE.format(condition=f"number_in(r.recipe, 'stream') = :stream or {_SHOWN} or {_LOST}")),
}  # fmt: skip
_REPLIES_OF = {
    "subject": text("select id from replies where subject_id = :subject order by id limit :limit"),
    "project": text("select id from replies where project_id = :project limit :limit"),
}
_DELETE_REPLIES = text("delete from replies where id in (select value from numbers(:ids))")


def replies(conn: Connection, piece: Piece, place: Place) -> Chunk:
    """Delete journaled replies, whole rows, that were given with something in view that is erased.

    Comes after the facts: a recipe that names a fact or an entity which is gone tells of a reply that saw it.
    """
    if piece.kind in _REPLIES_OF:
        ids = [r[0] for r in conn.rows(_REPLIES_OF[piece.kind], {**piece.params, "limit": REPLIES_PER_CHUNK})]
        gone = conn.run(_DELETE_REPLIES, {"ids": _ids(ids)})
        return Chunk({"replies": gone}, Place() if ids else None)
    rows = conn.rows(_REPLIES_TOUCHED[piece.kind], {**piece.params, "after": place.after, "limit": REPLIES_PER_CHUNK})
    gone = conn.run(_DELETE_REPLIES, {"ids": _ids(r[0] for r in rows if r[1])})
    return Chunk({"replies": gone}, Place(rows[-1][0]) if rows else None)


# ---- what else rests on a subject or a project

_PASSAGES = text("""
select id from passages where subject_id = :subject and kind <> 'turn' order by id limit :limit""")
_HEAD = text("select change_seq from projects where id = :project")
_UNNAME = """
update changes set ref = 'thr_' || cast(stream_id as text) where project_id = :project and seq > :after and seq <= :upto
  and kind = 'messages.appended' and """
_UNNAME_CHANGES = {"subject": text(_UNNAME + "subject_id = :subject"), "stream": text(_UNNAME + "stream_id = :stream")}


def passages(conn: Connection, piece: Piece, _place: Place) -> Chunk:
    """Passages whose row of origin was gone before; a turn's went with its event, which always leaves a row."""
    ids = [r[0] for r in conn.rows(_PASSAGES, {"subject": piece.subject, "limit": TURNS_PER_CHUNK})]
    if not ids:
        return Chunk({}, None)
    return Chunk({"passages": delete_passages(conn, ProjectId(piece.project), ids)}, Place())


def changes(conn: Connection, piece: Piece, place: Place) -> Chunk:
    """Take the threads' names out of the outbox; its rows stay, because its sequence has no holes."""
    upto = place.after + CHANGES_PER_CHUNK
    conn.run(_UNNAME_CHANGES[piece.kind], {**piece.params, "after": place.after, "upto": upto})
    head = conn.scalar(_HEAD, {"project": piece.project}) or 0
    return Chunk({}, Place(upto) if upto < head else None)


_PROJECT_EMBEDDINGS = text("""
delete from embeddings where project_id = :project and (model, dim, text_hash) in (
  select model, dim, text_hash from embeddings where project_id = :project limit :limit)""")
_PROJECT_CHANGES = text("""
delete from changes where project_id = :project and seq in (
  select seq from changes where project_id = :project order by seq limit :limit)""")
_PROJECT_JOBS = text("""
select id, kind, key from jobs where id > :after and project_id = :project and kind <> 'erase_scope'
order by id limit :limit""")
_PROJECT_CONSUMERS = text("delete from consumers where project_id = :project")


def project_embeddings(conn: Connection, piece: Piece, _place: Place) -> Chunk:
    gone = conn.run(_PROJECT_EMBEDDINGS, {"project": piece.project, "limit": ROWS_PER_CHUNK})
    return Chunk({"embeddings": gone}, Place() if gone else None)


def project_changes(conn: Connection, piece: Piece, _place: Place) -> Chunk:
    gone = conn.run(_PROJECT_CHANGES, {"project": piece.project, "limit": CHANGES_PER_CHUNK})
    return Chunk({"changes": gone}, Place() if gone else None)


def project_jobs(conn: Connection, piece: Piece, place: Place) -> Chunk:
    """Its place only says from where to look, so that the jobs of other projects are read past once."""
    rows = conn.rows(_PROJECT_JOBS, {"project": piece.project, "after": place.after, "limit": ROWS_PER_CHUNK})
    dropped = drop_jobs(conn, piece.project, [(r[1], r[2]) for r in rows])
    return Chunk({"jobs": dropped}, Place(rows[-1][0]) if rows else None)


def project_consumers(conn: Connection, piece: Piece, _place: Place) -> Chunk:
    """Whoever followed the project's changes: the names are the project's own words."""
    webhooks = erase_webhooks(conn, piece.project)
    return Chunk({"webhooks": webhooks, "consumers": conn.run(_PROJECT_CONSUMERS, {"project": piece.project})}, None)


def judge(conn: Connection, piece: Piece, _place: Place) -> Chunk:
    """The one job that a subject has for itself."""
    return Chunk({"jobs": drop_jobs(conn, piece.project, [(JUDGE, str(piece.subject))])}, None)


def agent_work(conn: Connection, piece: Piece, _place: Place) -> Chunk:
    """Pages, handoffs and offers that rest on a session's events."""
    gone = destroy_agent_work(conn, piece.kind, piece.params)
    return Chunk({}, None) if gone is None else Chunk({kind: n for kind, n in gone.items() if n}, Place())


def reviews(conn: Connection, piece: Piece, _place: Place) -> Chunk:
    """What reviews observed in a session and proposed from it, and the reviews themselves."""
    jobs = drop_jobs(conn, piece.project, review_jobs(conn, piece.kind, piece.params))
    gone = destroy_review_work(conn, piece.kind, piece.params)
    if gone is None:
        return Chunk({"jobs": jobs}, None)
    return Chunk({kind: n for kind, n in {**gone, "jobs": jobs}.items() if n}, Place())


def project_reviews(conn: Connection, piece: Piece, _place: Place) -> Chunk:
    """What no session stands for: proposals made by hand, and the numbers of the generations."""
    return Chunk({}, Place() if destroy_project_reviews(conn, piece.project) else None)


def launch_work(conn: Connection, piece: Piece, _place: Place) -> Chunk:
    """What workstreams have of it: ledger rows, links, cursors, and all packets of the project."""
    gone = destroy_launch_work(conn, piece.kind, piece.params)
    return Chunk({}, None) if gone is None else Chunk(gone, Place())


def project_workstreams(conn: Connection, piece: Piece, _place: Place) -> Chunk:
    """Workstreams and launches themselves."""
    return Chunk({}, Place() if destroy_project_workstreams(conn, piece.project) else None)


def identity(conn: Connection, piece: Piece, _place: Place) -> Chunk:
    """What named the project: remotes and paths of its checkouts, and the keys of what was told of it."""
    gone = destroy_identity(conn, piece.project)
    return Chunk({}, None) if gone is None else Chunk(gone, Place())


STAGES: dict[Kind, tuple[Stage, ...]] = {
    "event": (reviews, launch_work, agent_work, facts, replies),
    "stream": (reviews, launch_work, agent_work, facts, windows, turns, replies, changes),
    "subject": (
        reviews,
        launch_work,
        agent_work,
        streams,
        facts,
        windows,
        turns,
        passages,
        entities,
        judge,
        replies,
        changes,
    ),
    "project": (
        project_embeddings,
        project_changes,
        project_jobs,
        replies,
        project_reviews,
        project_workstreams,
        project_consumers,
        identity,
    ),
}
"""In this order. Windows go after their facts, replies after both."""
SUBJECT_OF_PROJECT = tuple(stage for stage in STAGES["subject"] if stage not in (replies, changes))
"""The project deletes all its replies and changes at its end: none of its subjects walks through them."""
