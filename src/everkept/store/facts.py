"""Facts: written with their evidence, then settled as a set, so that the order of work decides nothing (G9)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import TextClause, text

from everkept.domain.facts import FactDraft
from everkept.domain.ids import ProjectId, StreamId, SubjectId, row_id
from everkept.domain.jobs import Schedule
from everkept.domain.passage import Analysed
from everkept.domain.predicates import normalise_name, normalise_predicate
from everkept.domain.timeline import FactState, Pair, TimelineFact, Verdict, pair_of, settle, settle_and_find
from everkept.errors import NotFound, SubjectMoved
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection, Params
from everkept.store.forgotten import Mark, take_forgotten
from everkept.store.hidden import SHOWN_ENTITY, SHOWN_FACT
from everkept.store.jobs import schedule
from everkept.store.lanes import ensure_lane
from everkept.store.search import NewPassage, index_passages
from everkept.store.streams import wake_embedder

JUDGE = "judge_conflicts"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFact:
    """A checked draft with what the store adds to it: when its evidence was said, and its text analysed."""

    draft: FactDraft
    said_at: int
    zone_min: int | None
    stream: int | None
    analysed: Analysed
    pinned: bool = False
    object_is: str | None = None
    """The known entity that its object names in other words; the object itself stays as it was said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsOf:
    """Where a set of facts comes from: one slice of a window, or a hand (window None, `key` its idempotency key)."""

    project: int
    subject: int
    window: int | None
    slice: int
    revision: int | None
    """The subject's revision when the job read it; None for a hand."""
    key: str = ""


# ---- entities

_ALIAS = text("select entity_id from entity_aliases where subject_id = :subject and norm = :norm")
_ENTITY = text("""
insert into entities(project_id, subject_id, name, norm, type, created_at)
values(:project, :subject, :name, :norm, :type, :now) on conflict(subject_id, norm) do update set
  type = case when entities.type = 'other' then excluded.type else entities.type end
returning id""")
_TYPE = text("update entities set type = :type where id = :id and type = 'other' and :type <> 'other'")
_ADD_ALIAS = text("""
insert into entity_aliases(subject_id, norm, entity_id, name) values(:subject, :norm, :entity, :name)
on conflict do nothing""")
_KNOWN_ENTITIES = text(f"""
select e.id, e.name, e.type, count(g.id) from entities e left join facts g on g.entity_id = e.id
where e.subject_id = :subject and e.merged_into is null and {SHOWN_ENTITY}
group by e.id order by 4 desc, e.id limit :limit""")


def _entities_in(scope: str) -> TextClause:
    return text(f"""
select e.id, e.name, e.type, (
    select count(*) from facts f where {SHOWN_FACT} and (
      f.entity_id in (select e.id union all select m.id from entities m where m.merged_into = e.id)
      or f.object_entity_id in (select e.id union all select m.id from entities m where m.merged_into = e.id))),
  (select list_of(a.name) from entity_aliases a
    where a.entity_id in (select e.id union all select m.id from entities m where m.merged_into = e.id))
from entities e join subjects u on u.id = e.subject_id and u.erased_at is null
where {scope} and e.id < :before and e.merged_into is null and {SHOWN_ENTITY} order by e.id desc limit :limit""")


_LIST_ENTITIES = _entities_in("e.project_id = :project")
_ONE_ENTITY = _entities_in("e.project_id = :project and e.id = :id")
_LIST_ENTITIES_SUBJECT = _entities_in("+e.project_id = :project and e.subject_id = :subject")


def _ensure_entity(conn: Connection, of: FactsOf, name: str, type_: str) -> int:
    """By exact name or alias; else a new one."""
    norm = normalise_name(name)
    found = conn.scalar(_ALIAS, {"subject": of.subject, "norm": norm})
    if found is not None:
        conn.run(_TYPE, {"id": found, "type": type_})
        return int(found)
    entity = conn.scalar(
        _ENTITY,
        {"project": of.project, "subject": of.subject, "name": name, "norm": norm, "type": type_, "now": conn.now()},
    )
    conn.run(_ADD_ALIAS, {"subject": of.subject, "norm": norm, "entity": entity, "name": name})
    return int(entity)


_BORROWED = text("""
select f.id, f.subject_id, f.project_id, f.entity_id, f.predicate_norm, f.object, o.type
from numbers(:ids) h join entities o on o.id = h.value join facts f on f.object_entity_id = o.id
where f.object_norm <> o.norm and not exists (select 1 from facts g where g.entity_id = o.id)
  and not exists (select 1 from facts g where g.object_entity_id = o.id and g.object_norm = o.norm)""")
_NAME_OBJECT = text("update facts set object_entity_id = :entity where id = :id")


def release_names(conn: Connection, entities: Iterable[int]) -> list[tuple[int, str]]:
    """Give objects their own entity where nobody is left who said the name of the one they were taken for.

    An erased statement's words must not live on as the name of what others spoke of. The slots to settle again.
    """
    slots = []
    rows = conn.rows(_BORROWED, {"ids": json.dumps(sorted(entities))})
    for fact, subject, project, entity, predicate, object_, type_ in rows:
        of = FactsOf(project=project, subject=subject, window=None, slice=0, revision=None)
        conn.run(_NAME_OBJECT, {"id": fact, "entity": _ensure_entity(conn, of, object_, type_)})
        slots.append((entity, predicate))
    return slots


@dataclass(frozen=True, slots=True)
class KnownEntity:
    id: int
    name: str
    type: str


def known_entities(conn: Connection, subject: int, limit: int) -> list[KnownEntity]:
    """Most mentioned first."""
    return [KnownEntity(*r[:3]) for r in conn.rows(_KNOWN_ENTITIES, {"subject": subject, "limit": limit})]


def list_entities(
    conn: Connection, project: int, subject: int | None, before: int | None, limit: int
) -> list[tuple[Any, ...]]:
    """(id, name, type, facts, aliases as JSON), newest first."""
    params = {"project": project, "subject": subject, "limit": limit, "before": _NEWEST if before is None else before}
    return conn.rows(_LIST_ENTITIES if subject is None else _LIST_ENTITIES_SUBJECT, params)


def find_entity(conn: Connection, project: int, entity: int) -> tuple[Any, ...] | None:
    """As `list_entities` has it; None where it is not there, or merged into another one."""
    return conn.first(_ONE_ENTITY, {"project": project, "id": entity, "before": _NEWEST, "limit": 1})


# ---- writing

_REVISION = text("select revision from subjects where id = :subject")
_RAISE = text("update subjects set revision = revision + 1 where id = :subject")
_ADD = text("""
insert into facts(project_id, subject_id, entity_id, object_entity_id, window_id, draft_key, predicate, predicate_norm,
  object, object_norm, text, quote, confidence, single_valued, closes, correction, replaces, valid_from, valid_until,
  said_at, zone_min, said_stream, said_seq, said_index, recorded_at, closed_at, pinned, retired_by_hand)
values(:project, :subject, :entity, :about, :window, :draft_key, :predicate, :predicate_norm,
  :object, :object_norm, :text, :quote, :confidence, :single_valued, :closes, :correction, :replaces, :valid_from,
  :valid_until, :said_at, :zone_min, :said_stream, :said_seq, :said_index, :now, :valid_until, :pinned, :forgotten)
on conflict(subject_id, draft_key) do nothing returning id""")
_EVIDENCE = text("insert into fact_events(fact_id, stream_id, seq) values(:fact, :stream, :seq) on conflict do nothing")
_SLICE_DONE = text(
    "update slices set facts_at = :now, rejected = :rejected where window_id = :window and slice = :slice"
)
_LEFT = text("select count(*) from slices where window_id = :window and facts_at is null")
_WINDOW_DONE = text("update windows set facts_at = :now where id = :window")
_BY_KEY = text("select id from facts where subject_id = :subject and draft_key = :key")


def subject_revision(conn: Connection, subject: int) -> int:
    found = conn.scalar(_REVISION, {"subject": subject})
    return -1 if found is None else int(found)


def raise_revision(conn: Connection, subject: int) -> None:
    """Whoever works on what it read of the subject before this starts again."""
    conn.run(_RAISE, {"subject": subject})


def write_facts(
    conn: Connection, of: FactsOf, facts: Sequence[NewFact], rejected: str, near: Sequence[tuple[int, int]] = ()
) -> list[int]:
    """Write one slice's facts, settle what they touch and open the conflicts they cause; the ids that are new.

    `near` holds (place among `facts`, known fact) of pairs that speak of the same thing under different predicates.

    One that a hand had retired or pinned before its window was derived again comes back so (store/forgotten.py).

    Raises SubjectMoved where the subject is no longer what the job read; then nothing of it counts.
    """
    if of.revision is not None and subject_revision(conn, of.subject) != of.revision:
        raise SubjectMoved("the subject changed while its facts were extracted; the job runs again")
    keys = [of.key or _draft_key(of, fact) for fact in facts]
    marks = {} if of.window is None else take_forgotten(conn, of.project, of.window, keys)
    added: dict[int, NewFact] = {}
    ids: dict[int, int] = {}
    again: set[int] = set()
    slots: set[tuple[int, str]] = set()
    for index, (fact, key) in enumerate(zip(facts, keys, strict=True)):
        d = fact.draft
        entity = _ensure_entity(conn, of, d.entity, "other")
        about = _ensure_entity(conn, of, fact.object_is or d.object, d.object_type) if d.kind == "entity" else None
        mark = marks.get(key, Mark())
        row = _fact_row(conn, of, fact, index, entity, about) | {"draft_key": key, "forgotten": mark.retired}
        row["pinned"] = fact.pinned or mark.pinned
        fact_id = conn.scalar(_ADD, row)
        if fact_id is None:
            continue
        slots.add((entity, row["predicate_norm"]))
        added[fact_id] = fact
        ids[index] = fact_id
        if mark.retired:
            again.add(fact_id)
        if fact.stream is not None:
            conn.many(_EVIDENCE, [{"fact": fact_id, "stream": fact.stream, "seq": seq} for seq in fact.draft.seqs])
    _index(conn, of, added)
    if added:
        conn.run(_RAISE, {"subject": of.subject})
    changed = settle_slots(conn, of.project, of.subject, slots, [(ids[i], known) for i, known in near if i in ids])
    if of.window is not None:
        _complete_slice(conn, of.window, of.slice, rejected)
    record_changes(conn, of.project, [
        *(NewChange(kind="fact.added", ref=row_id("fct", f), subject=of.subject) for f in added),
        *(NewChange(kind="fact.changed", ref=row_id("fct", f), subject=of.subject)
          for f in changed if f not in added or f in again),
    ])  # fmt: skip
    return list(added)


def _complete_slice(conn: Connection, window: int, part: int, rejected: str) -> None:
    now = conn.now()
    conn.run(_SLICE_DONE, {"window": window, "slice": part, "now": now, "rejected": rejected})
    if conn.scalar(_LEFT, {"window": window}) == 0:
        conn.run(_WINDOW_DONE, {"window": window, "now": now})


def _fact_row(
    conn: Connection, of: FactsOf, fact: NewFact, index: int, entity: int, about: int | None
) -> dict[str, Any]:
    d = fact.draft
    return {
        "project": of.project,
        "subject": of.subject,
        "entity": entity,
        "about": about,
        "window": of.window,
        "predicate": d.predicate,
        "predicate_norm": normalise_predicate(d.predicate),
        "object": d.object,
        "object_norm": normalise_name(d.object),
        "text": d.text,
        "quote": d.quote or None,
        "confidence": d.confidence,
        "single_valued": d.single_valued,
        "closes": d.closes,
        "correction": d.correction,
        "replaces": d.replaces,
        "valid_from": d.valid_from_us,
        "valid_until": d.valid_until_us,
        "said_at": fact.said_at,
        "zone_min": fact.zone_min,
        "said_stream": fact.stream,
        "said_seq": d.seqs[0] if d.seqs else None,
        "said_index": index,
        "now": conn.now(),
        "pinned": fact.pinned,
    }


def _draft_key(of: FactsOf, fact: NewFact) -> str:
    """What is the same statement of the same slice, however often it is derived."""
    d = fact.draft
    parts = (
        normalise_name(d.entity),
        normalise_predicate(d.predicate),
        normalise_name(d.object),
        d.closes,
        d.correction,
        d.valid_from_us,
        d.valid_until_us,
        d.seqs[:1],
    )
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()
    return f"{of.window}.{of.slice}:{digest}"


def _index(conn: Connection, of: FactsOf, added: dict[int, NewFact]) -> None:
    if not added:
        return
    index_passages(conn, [
        NewPassage(project=ProjectId(of.project), subject=SubjectId(of.subject), kind="fact", ref=fact_id,
                   stream=None if fact.stream is None else StreamId(fact.stream), seq=next(iter(fact.draft.seqs), None),
                   speaker=fact.draft.entity, occurred_at_us=fact.said_at, analysed=fact.analysed)
        for fact_id, fact in added.items()
    ])  # fmt: skip
    wake_embedder(conn, of.project)


def find_hand_fact(conn: Connection, subject: int, key: str) -> int | None:
    found = conn.scalar(_BY_KEY, {"subject": subject, "key": key})
    return None if found is None else int(found)


# ---- settling

# An entity that a hand merged into another one goes by that one's name.
_NAMED = """from facts f join entities e on e.id = f.entity_id left join entities c on c.id = e.merged_into
  left join entities o on o.id = f.object_entity_id left join entities k on k.id = o.merged_into"""
_SLOT = text(f"""
select f.id, f.said_at, f.said_stream, f.said_seq, f.said_index, coalesce(c.norm, e.norm), f.predicate_norm,
  coalesce(k.name, o.name, f.object),
  f.confidence, f.valid_from, f.valid_until, f.single_valued, f.closes, f.correction, f.replaces, f.pinned,
  f.retired_by_hand, f.retired_because, f.closed_at, f.closed_by, f.retired_at, f.superseded_by, f.duplicate_of,
  f.live, f.unsettled, f.recorded_at
{_NAMED}
where f.entity_id in (select :entity union all select m.id from entities m where m.merged_into = :entity)
  and f.predicate_norm in (select value from words(:predicates))""")
_VERDICTS = text("""
select earlier_fact, later_fact, verdict, judged_at from verdicts where subject_id = :subject""")
_RECORDED_AT = 25
"""Its place in a row of `_SLOT`."""
_OPEN = text("""
insert into verdicts(subject_id, earlier_fact, later_fact, opened_at) values(:subject, :earlier, :later, :now)
on conflict do nothing""")
_SLOT_OF = text("select entity_id, predicate_norm from facts where id = :id")
_SHOWN_AS = text("select merged_into from entities where id = :id")
_STATE = text("""
update facts set closed_at = :closed_at, closed_by = :closed_by, closed_known_at = :closed_known_at,
  retired_at = :retired_at, retired_because = :retired_because, superseded_by = :superseded_by,
  duplicate_of = :duplicate_of, live = :live, unsettled = :unsettled
where id = :id""")


def settle_slots(
    conn: Connection, project: int, subject: int, slots: Iterable[tuple[int, str]], near: Iterable[Pair] = ()
) -> list[int]:
    """Settle the statements of these (entity, predicate) slots as a set; the facts whose state changed.

    Opens the conflicts that this causes, and the `near` pairs, which an embedder found to speak of the same thing.
    """
    pairs_known = conn.rows(_VERDICTS, {"subject": subject})
    rows = _slot_rows(conn, _shown_as(conn, slots), [*((a, b) for a, b, _, _ in pairs_known), *near])
    facts = {r[0]: _timeline_fact(r) for r in rows.values()}
    verdicts: dict[Pair, Verdict] = {
        (a, b): verdict or "open" for a, b, verdict, _ in pairs_known if a in rows and b in rows
    }
    beside = {pair_of(facts[a], facts[b]) for a, b in near if a in facts and b in facts} - verdicts.keys()
    verdicts |= dict.fromkeys(beside, "open")
    states, conflicts = settle_and_find(facts.values(), verdicts)
    found = [p for p in conflicts if p not in verdicts]
    opened = sorted({*found, *beside})
    conn.many(_OPEN, [{"subject": subject, "earlier": a, "later": b, "now": conn.now()} for a, b in opened])
    if found:
        states = settle(facts.values(), verdicts | dict.fromkeys(found, "open"))
    if opened:
        schedule(conn, [judge_wish(conn, project, subject)])
    judged = {frozenset((a, b)): at for a, b, _, at in pairs_known if at is not None}
    changed = [s for s in states if _differs(rows[s.id], s)]
    conn.many(_STATE, [_state(rows, s, judged, conn.now()) for s in changed])
    return [s.id for s in changed]


def _slot_rows(conn: Connection, slots: set[tuple[int, str]], pairs: Sequence[Pair]) -> dict[int, tuple[Any, ...]]:
    """The facts of the slots, and of every slot that a pair ties to one of them."""
    rows: dict[int, tuple[Any, ...]] = {}
    done: set[tuple[int, str]] = set()
    while slots:
        for entity, some in groupby(sorted(slots), key=itemgetter(0)):
            asked = {"entity": entity, "predicates": json.dumps([predicate for _, predicate in some])}
            rows |= {r[0]: r for r in conn.rows(_SLOT, asked)}
        done |= slots
        outside = sorted({f for a, b in pairs if (a in rows) != (b in rows) for f in (a, b) if f not in rows})
        slots = _shown_as(conn, ((r[0], r[1]) for f in outside for r in conn.rows(_SLOT_OF, {"id": f}))) - done
    return rows


def _shown_as(conn: Connection, slots: Iterable[tuple[int, str]]) -> set[tuple[int, str]]:
    """The same slots, each under the entity that its own is merged into."""
    asked = set(slots)
    named = {entity: conn.scalar(_SHOWN_AS, {"id": entity}) or entity for entity in {entity for entity, _ in asked}}
    return {(named[entity], predicate) for entity, predicate in asked}


def judge_wish(conn: Connection, project: int, subject: int) -> Schedule:
    """One judge for all contradictions of a subject: a new one starts it again where it had given up on an old one."""
    return Schedule(
        kind=JUDGE, key=str(subject), project=project, lane=ensure_lane(conn, project, subject), due_at_us=conn.now(),
        uses="model", serial_key=f"facts:{project}:{subject}", args=json.dumps({"subject": subject}),
        rearm_dead=True,
    )  # fmt: skip


def _timeline_fact(r: tuple[Any, ...]) -> TimelineFact:
    return TimelineFact(
        id=r[0],
        said_us=r[1],
        stream=r[2] or 0,
        seq=r[0] if r[3] is None else r[3],
        draft=r[4],
        entity=r[5],
        predicate=r[6],
        object=r[7],
        confidence=r[8],
        valid_from_us=r[9],
        valid_until_us=r[10],
        single_valued=None if r[11] is None else bool(r[11]),
        closes=bool(r[12]),
        correction=bool(r[13]),
        replaces=r[14],
        pinned=bool(r[15]),
        retired_by_hand=(r[17] or "by hand") if r[16] else None,
    )


def _closed_known_at(
    rows: Mapping[int, tuple[Any, ...]], s: FactState, judged: Mapping[frozenset[int], int]
) -> int | None:
    """When its end became known: once both statements were recorded, and ruled on where a judge had to.

    Made from the set, like the state itself, so that what is taken back and brought again leaves the past as it was.
    """
    if s.closed_by is None:
        return None
    known: list[int] = [rows[f][_RECORDED_AT] for f in (s.id, s.closed_by)]
    return max(*known, judged.get(frozenset((s.id, s.closed_by)), 0))


def _differs(r: tuple[Any, ...], s: FactState) -> bool:
    """Whether the row says something else of the fact."""
    closed_at, closed_by, retired_at = r[18], r[19], r[20]
    before = (closed_at, closed_by, None if retired_at is None else r[17], r[21], r[22], bool(r[23]), bool(r[24]))
    return before != (s.closed_at_us, s.closed_by, s.retired, s.superseded_by, s.duplicate_of, s.live, s.unsettled)


def _state(rows: Mapping[int, tuple[Any, ...]], s: FactState, judged: Mapping[frozenset[int], int], now: int) -> Params:
    return {
        "id": s.id, "closed_at": s.closed_at_us, "closed_by": s.closed_by,
        "closed_known_at": _closed_known_at(rows, s, judged),
        "retired_at": (rows[s.id][20] or now) if s.retired is not None else None, "retired_because": s.retired,
        "superseded_by": s.superseded_by, "duplicate_of": s.duplicate_of, "live": s.live, "unsettled": s.unsettled,
    }  # fmt: skip


# ---- judging

_OPEN_PAIRS = text("""
select earlier_fact, later_fact from verdicts where subject_id = :subject and verdict is null
order by opened_at, earlier_fact, later_fact limit :limit""")
_JUDGED = text("""
update verdicts set verdict = :verdict, reason = :reason, judged_at = :now
where earlier_fact = :earlier and later_fact = :later and verdict is null""")


def open_conflicts(conn: Connection, subject: int, limit: int) -> list[Pair]:
    return [(r[0], r[1]) for r in conn.rows(_OPEN_PAIRS, {"subject": subject, "limit": limit})]


def write_verdicts(
    conn: Connection, project: int, subject: int, revision: int, verdicts: Sequence[tuple[Pair, Verdict, str]]
) -> None:
    """Keep the rulings and settle again. Raises SubjectMoved where the subject is no longer what the judge saw."""
    if subject_revision(conn, subject) != revision:
        raise SubjectMoved("the subject changed while its contradictions were judged; the job runs again")
    slots: set[tuple[int, str]] = set()
    for (earlier, later), verdict, reason in verdicts:
        conn.run(_JUDGED, {"earlier": earlier, "later": later, "verdict": verdict, "reason": reason, "now": conn.now()})
        slots |= {(r[0], r[1]) for f in (earlier, later) for r in conn.rows(_SLOT_OF, {"id": f})}
    conn.run(_RAISE, {"subject": subject})
    changed = settle_slots(conn, project, subject, slots)
    record_changes(
        conn, project, [NewChange(kind="fact.changed", ref=row_id("fct", f), subject=subject) for f in changed]
    )


_TIMELINE = text(f"""
select f.id, f.said_at, f.said_stream, f.said_seq, f.said_index, coalesce(c.norm, e.norm), f.predicate_norm,
  coalesce(k.name, o.name, f.object),
  f.confidence, f.valid_from, f.valid_until, f.single_valued, f.closes, f.correction, f.replaces, f.pinned,
  f.retired_by_hand, f.retired_because
{_NAMED}
where f.id in (select value from numbers(:ids))""")


def timeline_facts(conn: Connection, ids: Sequence[int]) -> dict[int, TimelineFact]:
    return {r[0]: _timeline_fact(r) for r in conn.rows(_TIMELINE, {"ids": json.dumps(list(ids))})}


# ---- by hand

_HAND = text("""
update facts set retired_by_hand = :by_hand, retired_because = :why where id = :id and project_id = :project""")
_OWNER = text("select subject_id, entity_id, predicate_norm from facts where id = :id and project_id = :project")


def retire_by_hand(conn: Connection, project: int, fact: int, why: str | None) -> None:
    """Retire (or, with `why` None, bring back) one fact, and settle its slot. Raises NotFound."""
    owner = conn.first(_OWNER, {"id": fact, "project": project})
    if owner is None:
        raise NotFound(f"there is no fact {row_id('fct', fact)}", id=row_id("fct", fact))
    subject, entity, predicate = owner
    conn.run(_HAND, {"id": fact, "project": project, "by_hand": why is not None, "why": why})
    conn.run(_RAISE, {"subject": subject})
    changed = settle_slots(conn, project, subject, [(entity, predicate)])
    record_changes(
        conn, project, [NewChange(kind="fact.changed", ref=row_id("fct", f), subject=subject) for f in changed]
    )


# ---- reading


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    id: int
    subject: int
    subject_name: str
    entity: str
    predicate: str
    object: str
    text: str
    quote: str | None
    confidence: float
    valid_from: int | None
    valid_until: int | None
    said_at: int
    recorded_at: int
    closed_at: int | None
    closed_by: int | None
    closed_known_at: int | None
    retired_at: int | None
    retired_because: str | None
    superseded_by: int | None
    duplicate_of: int | None
    live: bool
    unsettled: bool
    pinned: bool
    closes: bool
    window: int | None
    zone_min: int | None
    stated_by: str | None
    """Whose hand put another fact right with it."""
    corrects: int | None
    """That other fact; None also while it is derived again."""
    replaced_at: int | None
    """When it took the place of another fact: where its beginning was not said, it is no earlier than that."""


_FACT_COLUMNS = """
select f.id, f.subject_id, u.name, coalesce(c.name, e.name), f.predicate, f.object, f.text, f.quote, f.confidence,
  f.valid_from, f.valid_until, f.said_at, f.recorded_at, f.closed_at, f.closed_by, f.closed_known_at, f.retired_at,
  f.retired_because,
  f.superseded_by, f.duplicate_of, f.live, f.unsettled, f.pinned, f.closes, f.window_id, f.zone_min, f.stated_by,
  (select o.id from facts o where o.subject_id = f.subject_id and o.draft_key = f.corrects),
  case when f.valid_from is null and coalesce(f.single_valued, true) then (
    select max(o.closed_at) from facts o
    where o.entity_id in (select m.id from entities m where m.id = coalesce(c.id, e.id) or m.merged_into = c.id
        or m.merged_into = e.id)
      and o.predicate_norm = f.predicate_norm and o.closed_by = f.id) end
from facts f join subjects u on u.id = f.subject_id and u.erased_at is null join entities e on e.id = f.entity_id
  left join entities c on c.id = e.merged_into
"""
_BY_IDS = text(
    _FACT_COLUMNS + f"where f.project_id = :project and f.id in (select value from numbers(:ids)) and {SHOWN_FACT}"
)
# A statement for each scope, so that the index of that scope is used.
_LIST = text(
    _FACT_COLUMNS + f"where f.project_id = :project and f.id < :before and {SHOWN_FACT} order by f.id desc limit :limit"
)
_LIST_SUBJECT = text(
    _FACT_COLUMNS + "where +f.project_id = :project and f.subject_id = :subject and f.id < :before"
    f" and {SHOWN_FACT} order by f.id desc limit :limit"
)
_NEWEST = 2**63 - 1
_EVENTS_OF = text("""
select fact_id, stream_id, seq from fact_events where fact_id in (select value from numbers(:ids))
order by fact_id, stream_id, seq""")
_LIVE = text(
    _FACT_COLUMNS
    + f"where f.subject_id = :subject and f.live and not f.closes and f.closed_at is null and {SHOWN_FACT}"
    " order by f.said_at desc, f.id desc limit :limit"
)
_PINNED = text(
    _FACT_COLUMNS + f"where f.subject_id = :subject and f.pinned and f.live and {SHOWN_FACT} order by f.id limit :limit"
)


def _fact(r: tuple[Any, ...]) -> FactRow:
    return FactRow(
        id=r[0],
        subject=r[1],
        subject_name=r[2],
        entity=r[3],
        predicate=r[4],
        object=r[5],
        text=r[6],
        quote=r[7],
        confidence=r[8],
        valid_from=r[9],
        valid_until=r[10],
        said_at=r[11],
        recorded_at=r[12],
        closed_at=r[13],
        closed_by=r[14],
        closed_known_at=r[15],
        retired_at=r[16],
        retired_because=r[17],
        superseded_by=r[18],
        duplicate_of=r[19],
        live=bool(r[20]),
        unsettled=bool(r[21]),
        pinned=bool(r[22]),
        closes=bool(r[23]),
        window=r[24],
        zone_min=r[25],
        stated_by=r[26],
        corrects=r[27],
        replaced_at=r[28],
    )


def facts_by_id(conn: Connection, project: int, ids: Sequence[int]) -> dict[int, FactRow]:
    return {r[0]: _fact(r) for r in conn.rows(_BY_IDS, {"project": project, "ids": json.dumps(list(ids))})}


def list_facts(conn: Connection, project: int, subject: int | None, before: int | None, limit: int) -> list[FactRow]:
    """All facts of the scope, whatever their state, newest first."""
    params = {"project": project, "subject": subject, "limit": limit, "before": _NEWEST if before is None else before}
    return [_fact(r) for r in conn.rows(_LIST if subject is None else _LIST_SUBJECT, params)]


def live_facts(conn: Connection, subject: int, limit: int) -> list[FactRow]:
    """What is believed and holds now, latest said first: shown to an extractor as what is known."""
    return [_fact(r) for r in conn.rows(_LIVE, {"subject": subject, "limit": limit})]


def pinned_facts(conn: Connection, subject: int, limit: int) -> list[FactRow]:
    """What a hand keeps in view and is believed, the oldest first."""
    return [_fact(r) for r in conn.rows(_PINNED, {"subject": subject, "limit": limit})]


def events_of_facts(conn: Connection, ids: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
    """{fact: [(stream, seq), …]}: the evidence of each."""
    found: dict[int, list[tuple[int, int]]] = {}
    for fact, stream, seq in conn.rows(_EVENTS_OF, {"ids": json.dumps(list(ids))}):
        found.setdefault(fact, []).append((stream, seq))
    return found


_STUCK_VERDICTS = text("""
select distinct v.subject_id, u.project_id from verdicts v join subjects u on u.id = v.subject_id
where v.verdict is null and v.subject_id > :after and not exists (
  select 1 from jobs j where j.kind = 'judge_conflicts' and j.key = cast(v.subject_id as text) and j.state <> 'done')
order by v.subject_id limit :limit""")


def sweep_conflicts(conn: Connection, after: int, limit: int) -> tuple[list[int], int]:
    """Schedule the judge for open conflicts whose job is missing; (subjects repaired, where to go on: 0 = the end)."""
    rows = conn.rows(_STUCK_VERDICTS, {"after": after, "limit": limit})
    for subject, project in rows:
        schedule(conn, [judge_wish(conn, project, subject)])
    return [r[0] for r in rows], rows[-1][0] if len(rows) == limit else 0
