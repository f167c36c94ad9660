"""What is known of a subject moves: its entities, then its facts a slot at a time, then what search holds of them.

A subject of a name that the target has is joined to that one. Entities of one name or alias become one, and each slot
is settled anew as the set of all that was said about it, in whatever order it came (G9).
"""

from __future__ import annotations

import json
from typing import Final

from sqlalchemy import text

from everkept.domain.ids import ProjectId, row_id
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.facts import settle_slots
from everkept.store.merge_part import Chunk, Part, Place
from everkept.store.search import moved_vectors
from everkept.store.streams import wake_embedder

ENTITIES_PER_CHUNK: Final = 150
FACTS_PER_CHUNK: Final = 60
PASSAGES_PER_CHUNK: Final = 250

_OF_SOURCE = "subject_id = :subject and project_id = :source and id > :after order by id limit :limit"
_SAME_NAME = """coalesce(
  (select a.entity_id from entity_aliases a where a.subject_id = :into and a.norm = e.norm),
  (select o.id from entities o where o.subject_id = :into and o.norm = e.norm))"""

# ---- entities that the target does not have by name

_ENTITIES = text(f"select id from entities where {_OF_SOURCE}")
_NEW_ENTITIES = text(f"""
select e.id from entities e where e.id in (select value from numbers(:ids)) and (:joined = 0 or {_SAME_NAME} is null)
""")
_MOVE_ENTITIES = text("""
update entities set project_id = :target, subject_id = :into where id in (select value from numbers(:ids))""")
_ALIASES_THERE = text("""
delete from entity_aliases where subject_id = :subject and entity_id in (select value from numbers(:ids))
  and :joined = 1 and exists (
    select 1 from entity_aliases a where a.subject_id = :into and a.norm = entity_aliases.norm)""")
_MOVE_ALIASES = text("""
update entity_aliases set subject_id = :into
where subject_id = :subject and entity_id in (select value from numbers(:ids))""")


def entities(conn: Connection, part: Part, place: Place) -> Chunk:
    """Those that the target does not have move as they are; the others wait until their facts have gone to it."""
    given = {**part.params, "joined": int(part.joined)}
    ids = [r[0] for r in conn.rows(_ENTITIES, {**given, "after": place.after, "limit": ENTITIES_PER_CHUNK})]
    new = [r[0] for r in conn.rows(_NEW_ENTITIES, {**given, "ids": json.dumps(ids)})]
    for statement in (_MOVE_ENTITIES, _ALIASES_THERE, _MOVE_ALIASES):
        conn.run(statement, {**given, "ids": json.dumps(new)})
    return Chunk({"entities": len(new)}, Place(ids[-1]) if len(ids) == ENTITIES_PER_CHUNK else None)


# ---- facts

_SLOTS = text("""
select entity_id, predicate_norm, count(*) from (
  select entity_id, predicate_norm from facts where subject_id = :subject and project_id = :source
  order by id limit :limit) group by 1, 2 order by 1, 2""")
_HERE = text(f"select case when :joined = 1 then {_SAME_NAME} end from entities e where e.id = :entity")
_IN_SLOT = text("""
select id from facts where entity_id = :entity and predicate_norm = :predicate and project_id = :source""")
# Two facts that hands wrote without a key may have one name.
_FREE_KEYS = text("""
update facts set draft_key = draft_key || '~' || cast(id as text) where id in (select value from numbers(:ids))
  and :joined = 1 and exists (
    select 1 from facts f where f.subject_id = :into and f.draft_key = facts.draft_key)""")
_MOVE_FACTS = text(f"""
update facts set project_id = :target, subject_id = :into, entity_id = :here,
  object_entity_id = (select case when :joined = 1 then coalesce({_SAME_NAME}, e.id) else e.id end
    from entities e where e.id = facts.object_entity_id)
where id in (select value from numbers(:ids))""")
_MOVE_VERDICTS = text("""
update verdicts set subject_id = :into where earlier_fact in (select value from numbers(:ids))
  or later_fact in (select value from numbers(:ids))""")
_RAISE = text("update subjects set revision = revision + 1 where id = :into")


def facts(conn: Connection, part: Part, _place: Place) -> Chunk:
    """Whole slots, so that each is settled once with all that is in it."""
    given = {**part.params, "joined": int(part.joined)}
    slots = conn.rows(_SLOTS, {**given, "limit": FACTS_PER_CHUNK})
    if not slots:
        return Chunk({}, None)
    moved: list[int] = []
    settled: set[tuple[int, str]] = set()
    for entity, predicate, _ in slots:
        if len(moved) >= FACTS_PER_CHUNK:
            break
        here = conn.scalar(_HERE, {**given, "entity": entity}) or entity
        ids = [r[0] for r in conn.rows(_IN_SLOT, {**given, "entity": entity, "predicate": predicate})]
        for statement in (_FREE_KEYS, _MOVE_FACTS, _MOVE_VERDICTS):
            conn.run(statement, {**given, "here": here, "ids": json.dumps(ids)})
        moved += ids
        settled.add((here, predicate))
    conn.run(_RAISE, given)
    if part.joined:
        _settle(conn, part, settled)
    return Chunk({"facts": len(moved)}, Place())


def _settle(conn: Connection, part: Part, slots: set[tuple[int, str]]) -> None:
    changed = settle_slots(conn, part.target, part.into, slots)
    record_changes(conn, part.target, [
        NewChange(kind="fact.changed", ref=row_id("fct", fact), subject=part.into) for fact in changed
    ])  # fmt: skip


# ---- entities whose facts have gone

_LEFT = text(f"""
select e.id, {_SAME_NAME} from entities e where e.subject_id = :subject and e.project_id = :source
order by e.id limit :limit""")
_TO_THE_ONE = text("update entity_aliases set entity_id = :here, subject_id = :into where entity_id = :entity")
_OBJECTS = text("update facts set object_entity_id = :here where object_entity_id = :entity")
_DELETE = text("delete from entities where id = :entity")
# What a hand said of two names holds for the one that takes their place, unless a hand said otherwise in the target.
_ITS_OWN = text("""
update entities set (merged_into, merged_by, merged_at) = (
  select e.merged_into, e.merged_by, e.merged_at from entities e where e.id = :entity)
where id = :here and merged_into is null and not exists (select 1 from entities m where m.merged_into = :here)
  and exists (select 1 from entities e where e.id = :entity and e.merged_into <> :here)""")
_MEMBERS = text("""
update entities set merged_into = coalesce((select h.merged_into from entities h where h.id = :here), :here)
where merged_into = :entity""")
_NOT_INTO_ITSELF = text("""
update entities set merged_into = null, merged_by = null, merged_at = null where merged_into = id and id = :here""")
_SLOTS_OF = text("""
select distinct entity_id, predicate_norm from facts where entity_id in (
  select :here union select id from entities where merged_into = :here
  union select merged_into from entities where id = :here and merged_into is not null)""")


def entities_left(conn: Connection, part: Part, _place: Place) -> Chunk:
    """Each gives its other names to the one that the target has, and is gone."""
    given = {**part.params, "joined": int(part.joined)}
    rows = conn.rows(_LEFT, {**given, "limit": ENTITIES_PER_CHUNK})
    for entity, here in rows:
        assert here is not None, "the first stage took all that the target did not have"
        one = {**given, "entity": entity, "here": here, "ids": json.dumps([entity])}
        told = sum(conn.run(statement, one) for statement in (_ITS_OWN, _MEMBERS))
        for statement in (_NOT_INTO_ITSELF, _ALIASES_THERE, _TO_THE_ONE, _OBJECTS, _DELETE):
            conn.run(statement, one)
        if told:
            _settle(conn, part, {(r[0], r[1]) for r in conn.rows(_SLOTS_OF, one)})
    return Chunk({"joined entities": len(rows)}, Place() if rows else None)


# ---- what search holds of facts, episodes and pages

_PASSAGES = text(f"select id from passages where kind <> 'turn' and {_OF_SOURCE}")
_MOVE_PASSAGES = text("""
update passages set project_id = :target, subject_id = :into where id in (select value from numbers(:ids))""")
_MOVE_VECTORS = text("""
update vectors set project_id = :target, subject_id = :into where passage_id in (select value from numbers(:ids))""")


def passages(conn: Connection, part: Part, place: Place) -> Chunk:
    ids = [r[0] for r in conn.rows(_PASSAGES, {**part.params, "after": place.after, "limit": PASSAGES_PER_CHUNK})]
    for statement in (_MOVE_PASSAGES, _MOVE_VECTORS):
        conn.run(statement, {**part.params, "ids": json.dumps(ids)})
    moved_vectors(conn, ProjectId(part.source), ProjectId(part.target))
    wake_embedder(conn, part.target)
    return Chunk({}, Place(ids[-1]) if len(ids) == PASSAGES_PER_CHUNK else None)
