"""Passages, their full-text rows and their vectors: what recall reads, and what is written beside every event.

A full-text row holds analysed terms (domain/text.py) in the columns scope, speaker, own, said (the date) and before
(the turn before in the same sitting). The turn after is only ranked by, never searched: writing it into a row that
exists costs more than the append, and finds nothing more (R@10 82.9 against 83.1, within the error). Its scope column
names project, subject, stream and kind as terms, so that a search never leaves its scope before the limit is applied.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import text

from everkept.domain.ids import ProjectId, StreamId, SubjectId
from everkept.domain.passage import SITTING_GAP_US, Analysed
from everkept.domain.scope import Scope
from everkept.store.connection import Connection, Row
from everkept.store.full_text import full_text
from everkept.store.hidden import SHOWN_PASSAGE
from everkept.store.text_rows import TextRow, scope_term

KINDS: Final = ("turn", "fact", "episode", "page")


class NewPassage(NamedTuple):
    """One thing to be found. `ref` is the fact or window; `stream` and `seq` name the turn that it is, or rests on."""

    project: ProjectId
    subject: SubjectId
    kind: str
    analysed: Analysed
    stream: StreamId | None = None
    seq: int | None = None
    ref: int | None = None
    speaker: str | None = None
    occurred_at_us: int | None = None


_Place = tuple[int, int, int, str]
"""Of the turn before, for the next one of its stream: seq, sitting, time in µs, terms of speaker and text."""


_INSERT_PASSAGE = text(
    "insert into passages(id, project_id, subject_id, stream_id, seq, kind, ref_id, speaker, occurred_at, sitting,"
    " traits) values(:id, :project, :subject, :stream, :seq, :kind, :ref, :speaker, :occurred_at, :sitting, :traits)"
)
_INSERT_TURN = text(  # the same without `ref_id`: to bind a NULL costs more than any other value
    "insert into passages(id, project_id, subject_id, stream_id, seq, kind, speaker, occurred_at, sitting, traits)"
    " values(:id, :project, :subject, :stream, :seq, 'turn', :speaker, :occurred_at, :sitting, :traits)"
)
_PLACES = text(
    "select p.stream_id, p.seq, p.sitting, coalesce(p.occurred_at, 0), p.id"
    " from number_pairs(:places) h join passages p on p.stream_id = h.one and p.seq = h.two and p.kind = 'turn'"
)


def index_passages(conn: Connection, passages: Sequence[NewPassage]) -> list[int]:
    """Write the passages of one batch with their full-text rows; their ids in the order given.

    Turns of one stream come in the order of `seq`, also from batch to batch. The turn before is taken from the batch,
    else from the index.
    """
    if not passages:
        return []
    first = conn.allocate("passages", len(passages))
    places, sittings = _places_before(conn, passages), _sittings_of(conn, passages)
    turns: list[Row] = []
    others: list[Row] = []
    texts: list[TextRow] = []
    for id_, (project, subject, kind, analysed, stream, seq, ref, speaker, at) in enumerate(passages, first):
        own, spoken_by, said, traits = analysed.own, analysed.speaker, analysed.said, analysed.traits
        before = ""
        if kind == "turn" and stream is not None and seq is not None:
            sitting, when = seq, at or 0
            place = places.get(stream)
            if place is not None and place[0] == seq - 1 and -SITTING_GAP_US <= when - place[2] <= SITTING_GAP_US:
                _, sitting, _, before = place
            places[stream] = seq, sitting, when, f"{spoken_by} {own}"
            turns.append((id_, project, subject, stream, seq, speaker, at, sitting, traits))
        else:
            in_sitting = sittings.get((stream or 0, seq or 0))
            others.append((id_, project, subject, stream, seq, kind, ref, speaker, at, in_sitting, traits))
        texts.append(TextRow(id_, (project, subject, stream, kind), spoken_by, own, said, before))
    conn.many_in_order(_INSERT_TURN, turns)
    conn.many_in_order(_INSERT_PASSAGE, others)
    full_text(conn).put(conn, texts)
    return list(range(first, first + len(passages)))


def _places_before(conn: Connection, passages: Sequence[NewPassage]) -> dict[int, _Place]:
    """{stream: the turn before its first one of the batch}."""
    firsts: dict[int, int] = {}
    for p in passages:
        if p.kind == "turn" and p.stream is not None and p.seq is not None:
            firsts.setdefault(p.stream, p.seq)
    wanted = [(stream, seq - 1) for stream, seq in firsts.items() if seq > 1]
    rows = conn.rows(_PLACES, {"places": json.dumps(wanted)}) if wanted else []
    words = {r[0]: f"{r[1]} {r[2]}" for r in load_terms(conn, [r[4] for r in rows])}
    return {stream: (seq, sitting, at, words[id_]) for stream, seq, sitting, at, id_ in rows if id_ in words}


def _sittings_of(conn: Connection, passages: Sequence[NewPassage]) -> dict[tuple[int, int], int]:
    """The sittings of the turns that facts rest on."""
    wanted = [(p.stream, p.seq) for p in passages if p.kind != "turn" and p.stream is not None and p.seq is not None]
    return {(r[0], r[1]): r[2] for r in conn.rows(_SITTINGS, {"places": json.dumps(wanted)})} if wanted else {}


_SITTINGS = text(
    "select p.stream_id, p.seq, p.sitting from number_pairs(:places) h"
    " join passages p on p.stream_id = h.one and p.seq = h.two and p.kind = 'turn'"
)


# ---- reading: what there is, and candidates


class Corpus(NamedTuple):
    passages: int
    mean_length: float
    """Mean number of terms in a passage's own text."""


def corpus_size(conn: Connection) -> Corpus:
    """Size of the whole index."""
    return Corpus(*full_text(conn).size(conn))


def document_frequencies(conn: Connection, terms: Iterable[str]) -> dict[str, int]:
    """In how many passages (themselves or an adjacent turn) each term occurs; a term that occurs nowhere is missing."""
    return full_text(conn).frequencies(conn, list(terms))


_ALSO_PROJECTS = text("select id from projects where merged_into = :project")
_ALSO_SUBJECTS = text("select id from subjects where merged_into = :subject")


def _within(conn: Connection, scope: Scope) -> list[str]:
    """The terms that stand for the scope: any of them. What a merge brought keeps those that it was written with."""
    terms = [scope_term(scope)]
    if scope.stream is None and scope.subject is None:
        terms += [f"p{r[0]}" for r in conn.rows(_ALSO_PROJECTS, {"project": scope.project})]
    elif scope.stream is None:
        terms += [f"s{r[0]}" for r in conn.rows(_ALSO_SUBJECTS, {"subject": scope.subject})]
    return terms


def find_postings(
    conn: Connection,
    scope: Scope | None,
    term: str,
    kinds: Sequence[str],
    *,
    also_any: Sequence[str] = (),
    after: int = 0,
) -> list[tuple[float, str]]:
    """(weight, passage ids joined by commas) of a term: the turn itself holds it, or, at half weight, the one before.

    `also_any` keeps only passages that hold one of those terms as well, `after` only those with a higher id. What is
    found may be hidden, and without a scope may lie anywhere: the caller looks at it through `shown_passages`.
    """
    within = None if scope is None else _within(conn, scope)
    return full_text(conn).postings(conn, within, term, kinds, also_any, after)


class Hit(NamedTuple):
    """A passage that may be shown: read under the whole scope, and not hidden."""

    id: int
    kind: str
    ref: int | None
    subject: int
    stream: int | None
    seq: int | None
    speaker: str | None
    occurred_at_us: int | None
    sitting: int | None
    traits: int


_HITS = text(
    "select p.id, p.kind, p.ref_id, p.subject_id, p.stream_id, p.seq, p.speaker, p.occurred_at, p.sitting, p.traits"
    " from passages p where p.id in (select value from numbers(:ids)) and p.project_id = :project"
    " and (:subject is null or p.subject_id = :subject) and (:stream is null or p.stream_id = :stream)"
    " and p.hidden = false"
    f" and {SHOWN_PASSAGE}"
)


def load_hits(conn: Connection, scope: Scope, passage_ids: Sequence[int]) -> list[Hit]:
    """Those of the passages that lie in the scope and are not hidden, in no order."""
    params: dict[str, Any] = {
        "ids": json.dumps(list(passage_ids)),
        "project": scope.project,
        "subject": scope.subject,
        "stream": scope.stream,
    }
    return list(map(Hit._make, conn.rows(_HITS, params)))


_IN_SCOPE = (
    "select p.id from passages p where p.id in (select value from numbers(:ids)) and p.project_id = :project"
    " and (:subject is null or p.subject_id = :subject) and (:stream is null or p.stream_id = :stream)"
    f" and p.hidden = false and {SHOWN_PASSAGE}"
)
# A telling that a fuller one stands in the place of says nothing of its own.
_COMPLETED = "exists (select 1 from events r where r.revises = p.seq and r.stream_id = p.stream_id"
_SHOWN = text(_IN_SCOPE + f" and (p.kind <> 'turn' or not {_COMPLETED}))")
_SHOWN_IN_TIME = text(
    _IN_SCOPE + " and (p.kind <> 'turn' or (exists (select 1 from events e"
    " where e.stream_id = p.stream_id and e.seq = p.seq and e.recorded_at <= :recorded_until)"
    f" and not {_COMPLETED} and r.recorded_at <= :recorded_until)))"
)


def shown_passages(
    conn: Connection, scope: Scope, passage_ids: Sequence[int], recorded_until_us: int | None = None
) -> set[int]:
    """Those of the passages that lie in the scope and are not hidden, nor, if turns, were recorded later.

    Of the tellings of one event of a session only the fullest is shown.
    """
    params: dict[str, Any] = {
        "ids": json.dumps(list(passage_ids)),
        "project": scope.project,
        "subject": scope.subject,
        "stream": scope.stream,
    }
    if recorded_until_us is None:
        return {r[0] for r in conn.rows(_SHOWN, params)}
    return {r[0] for r in conn.rows(_SHOWN_IN_TIME, params | {"recorded_until": recorded_until_us})}


NEVER_US: Final = -(1 << 62)
"""Stands for a time that is not known."""
_COLUMNS_SINCE = text(
    "select p.id, case p.kind when 'turn' then 0 when 'fact' then 1 when 'episode' then 2 else 3 end,"
    " coalesce(p.ref_id, 0), p.subject_id,"
    f" coalesce(p.stream_id, 0), coalesce(p.seq, 0), coalesce(p.occurred_at, {NEVER_US}), coalesce(p.sitting, 0),"
    " p.traits, p.speaker from passages p where p.id > :after and p.project_id = :project and p.hidden = false"
    f" and {SHOWN_PASSAGE} order by p.id limit :limit"
)


def load_columns_since(conn: Connection, project: ProjectId, after: int, limit: int) -> list[Row]:
    """(id, place in `KINDS`, ref, subject, stream, seq, occurred_at, sitting, traits, speaker) of what is not hidden.

    In the order of ids, from the first one above `after`. All but the speaker are numbers: 0, or `NEVER_US`, for none.
    """
    return conn.rows(_COLUMNS_SINCE, {"project": project, "after": after, "limit": limit})


def load_terms(conn: Connection, passage_ids: Sequence[int]) -> list[Row]:
    """(id, speaker, own, said): the analysed terms of these passages, each joined by spaces."""
    return full_text(conn).terms(conn, passage_ids)


# ---- vectors


class Pending(NamedTuple):
    """A passage without vectors, with what they are made of. Texts are None where they have been erased."""

    id: int
    subject: int
    kind: str
    text: str | None
    speaker: str | None
    before: tuple[tuple[str | None, str], ...]
    """(speaker, text) of up to two turns before it in the sitting, oldest first."""


class NewVectors(NamedTuple):
    passage: int
    own: bytes
    around: bytes


_PENDING = text(
    "select p.id, p.subject_id, p.kind,"
    " case p.kind when 'turn' then e.content when 'fact' then f.text"
    " when 'page' then g.title || case n.heading when g.title then '' else ': ' || n.heading end || '\n' || n.body"
    " else coalesce(w.summary, '') || ' ' || coalesce(w.learnings, '') end,"
    " p.speaker, b1.speaker, e1.content, b2.speaker, e2.content"
    " from passages p"
    " left join events e on p.kind = 'turn' and e.stream_id = p.stream_id and e.seq = p.seq"
    " left join facts f on p.kind = 'fact' and f.id = p.ref_id"
    " left join windows w on p.kind = 'episode' and w.id = p.ref_id"
    " left join page_sections n on p.kind = 'page' and n.id = p.ref_id"
    " left join pages g on g.id = n.page_id"
    " left join passages b1 on p.kind = 'turn' and b1.kind = 'turn' and b1.stream_id = p.stream_id"
    " and b1.seq = p.seq - 1"
    " and b1.sitting = p.sitting and b1.hidden = false"
    " left join events e1 on e1.stream_id = b1.stream_id and e1.seq = b1.seq"
    " left join passages b2 on p.kind = 'turn' and b2.kind = 'turn' and b2.stream_id = p.stream_id"
    " and b2.seq = p.seq - 2"
    " and b2.sitting = p.sitting and b2.hidden = false"
    " left join events e2 on e2.stream_id = b2.stream_id and e2.seq = b2.seq"
    " where p.project_id = :project and p.embedded is null and p.hidden = false and p.id > :after"
    f" and {SHOWN_PASSAGE} order by p.id limit :limit"
)


def pending_embeddings(conn: Connection, project: ProjectId, limit: int = 100, after: int = 0) -> list[Pending]:
    """The oldest passages of the project (past `after`) that lack vectors, with the texts to make them of."""
    found = []
    for id_, subject, kind, body, speaker, speaker_1, text_1, speaker_2, text_2 in conn.rows(
        _PENDING, {"project": project, "limit": limit, "after": after}
    ):
        before = tuple([(s, b) for s, b in ((speaker_2, text_2), (speaker_1, text_1)) if b is not None])
        found.append(Pending(id_, subject, kind, body, speaker, before))
    return found


def last_vector(conn: Connection, project: ProjectId, model: str) -> int:
    """The newest passage that has a vector of this model; 0 where none has."""
    return conn.scalar(_LAST_VECTOR, {"project": project, "model": model}) or 0


_LAST_VECTOR = text("select max(passage_id) from vectors where project_id = :project and model = :model")
_OWNERS = text(
    "select id, subject_id from passages where id in (select value from numbers(:ids)) and project_id = :project"
)
_PUT_VECTORS = text(
    "insert into vectors(passage_id, model, project_id, subject_id, own, around)"
    " values(:passage, :model, :project, :subject, :own, :around)"
    " on conflict (passage_id, model) do update set own = excluded.own, around = excluded.around"
)
_MARK_EMBEDDED = text(
    "update passages set embedded = :label where project_id = :project and id in (select value from numbers(:ids))"
)
_RAISE_REVISION = text("update projects set vectors_revision = vectors_revision + 1 where id = :project")


def write_vectors(conn: Connection, project: ProjectId, model: str, rows: Sequence[NewVectors]) -> None:
    """Write the vectors of passages that still exist. May be repeated.

    In-memory caches follow new ids by themselves; a vector at or below the highest id raises the project's revision.
    """
    ids = json.dumps([r.passage for r in rows])
    subject_of: dict[int, int] = dict(conn.rows(_OWNERS, {"project": project, "ids": ids}))
    kept = [r for r in rows if r.passage in subject_of]
    if not kept:
        return
    last = last_vector(conn, project, model)
    conn.many(_PUT_VECTORS, [
        {"passage": r.passage, "model": model, "project": project, "subject": subject_of[r.passage], "own": r.own,
         "around": r.around}
        for r in kept
    ])  # fmt: skip
    if min(r.passage for r in kept) <= last:
        conn.run(_RAISE_REVISION, {"project": project})


def moved_vectors(conn: Connection, *projects: ProjectId) -> None:
    """Passages went from one of these projects into another: what is kept in memory of either is read again."""
    conn.many(_RAISE_REVISION, [{"project": project} for project in projects])


def mark_embedded(conn: Connection, project: ProjectId, passage_ids: Sequence[int], label: str) -> None:
    """These passages are done for the embedders that `label` names (also those that had no text to embed)."""
    conn.run(_MARK_EMBEDDED, {"project": project, "label": label, "ids": json.dumps(list(passage_ids))})


_FORGET_VECTORS = text(
    "delete from vectors where passage_id in (select value from numbers(:ids))"
    " and model not in (select value from words(:models))"
)


def forget_other_vectors(conn: Connection, passage_ids: Sequence[int], models: Sequence[str]) -> None:
    """Delete the vectors that other embedders than `models` made of these passages, which have new ones."""
    conn.run(_FORGET_VECTORS, {"ids": json.dumps(list(passage_ids)), "models": json.dumps(list(models))})


_FORGET_LABELS = text(
    "update passages set embedded = null where id in (select id from passages"
    " where project_id = :project and embedded is not null and embedded <> :label order by id limit :limit)"
)


def reopen_embeddings(conn: Connection, project: ProjectId, label: str, limit: int = 500) -> int:
    """Make passages pending again whose vectors are of other embedders than `label`; how many of them (a chunk)."""
    return conn.run(_FORGET_LABELS, {"project": project, "label": label, "limit": limit})


_SNAPSHOT = text("""
select coalesce((select vectors_revision from projects where id = :project), 0),
  coalesce((select max(id) from passages), 0),
  coalesce((select max(passage_id) from vectors where project_id = :project and model = :model), 0)""")
_VECTORS_SINCE = text(
    "select v.passage_id, v.subject_id, v.own, v.around from vectors v join passages p on p.id = v.passage_id"
    " where v.project_id = :project and v.model = :model and v.passage_id > :after and p.hidden = false"
    " order by v.passage_id limit :limit"
)
_VECTORS_OF = text(
    "select passage_id, own, around from vectors where model = :model and project_id = :project"
    " and passage_id in (select value from numbers(:ids))"
)


class Snapshot(NamedTuple):
    """How far the store has come: tells what is kept in memory whether it is still up to date."""

    revision: int
    """The project's: it moves when passages are erased or hidden, or embedded anew."""
    newest: int
    """The highest passage id of any project."""
    newest_vector: int
    """The highest passage id of the project that has a vector of the model."""


def read_snapshot(conn: Connection, project: ProjectId, model: str | None) -> Snapshot:
    return Snapshot._make(conn.rows(_SNAPSHOT, {"project": project, "model": model})[0])


def load_vectors_since(
    conn: Connection, project: ProjectId, model: str, after: int, limit: int = 1_000_000
) -> list[Row]:
    """(passage, subject, own, around) in the order of passage ids, from the first one above `after`."""
    return conn.rows(_VECTORS_SINCE, {"project": project, "model": model, "after": after, "limit": limit})


def load_vectors(conn: Connection, project: ProjectId, model: str, passage_ids: Sequence[int]) -> list[Row]:
    """(passage, own, around) of these passages of the project, where there are any."""
    if not passage_ids:
        return []
    return conn.rows(_VECTORS_OF, {"project": project, "model": model, "ids": json.dumps(list(passage_ids))})


# ---- taking away

_HIDE = text(
    "update passages set hidden = true where project_id = :project and id in (select value from numbers(:ids))"
)
_NEIGHBOURS = text(
    "select n.id, n.seq - p.seq from passages p join passages n on n.stream_id = p.stream_id"
    " and n.seq between p.seq + 1 and p.seq + 2 and n.kind = 'turn'"
    " where p.project_id = :project and p.kind = 'turn' and p.id in (select value from numbers(:ids))"
    " and n.id not in (select value from numbers(:ids))"
)
_DELETE_VECTORS = text("delete from vectors where passage_id in (select value from numbers(:ids))")
_REOPEN = text("update passages set embedded = null where id in (select value from numbers(:ids))")
_MINE = text("select id from passages where project_id = :project and id in (select value from numbers(:ids))")
_DELETE_PASSAGES = text("delete from passages where id in (select value from numbers(:ids))")
_IDS_OF_REFS = text(
    "select id from passages where kind = :kind and ref_id in (select value from numbers(:refs)) order by id"
)


def find_passages_of(conn: Connection, kind: str, refs: Sequence[int]) -> list[int]:
    """Passages of these facts or windows."""
    return [r[0] for r in conn.rows(_IDS_OF_REFS, {"kind": kind, "refs": json.dumps(list(refs))})]


def hide_passages(conn: Connection, project: ProjectId, passage_ids: Sequence[int]) -> None:
    """Take passages out of every answer at once; what is left of them is deleted later."""
    conn.run(_HIDE, {"project": project, "ids": json.dumps(list(passage_ids))})
    conn.run(_RAISE_REVISION, {"project": project})


def delete_passages(conn: Connection, project: ProjectId, passage_ids: Sequence[int]) -> int:
    """Destroy passages with their full-text rows and vectors, and their words in the rows of the turns after them.

    Vectors of the two turns after a deleted one rest on it too: they are deleted, and those turns are pending again.
    """
    ids = [r[0] for r in conn.rows(_MINE, {"project": project, "ids": json.dumps(list(passage_ids))})]
    if not ids:
        return 0
    params = {"project": project, "ids": json.dumps(ids)}
    neighbours = conn.rows(_NEIGHBOURS, params)
    full_text(conn).clear_before(conn, [id_ for id_, distance in neighbours if distance == 1])
    stale = {"ids": json.dumps([id_ for id_, _ in neighbours])}
    conn.run(_DELETE_VECTORS, stale)
    conn.run(_REOPEN, stale)
    conn.run(_DELETE_VECTORS, params)
    full_text(conn).delete(conn, ids)
    conn.run(_DELETE_PASSAGES, params)
    conn.run(_RAISE_REVISION, {"project": project})
    return len(ids)
