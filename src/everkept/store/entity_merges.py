"""Two names of one thing: a hand merges the entities, and can take it back.

Nothing moves. The one that was merged keeps its row, its names and its facts, and points to the one it is shown as;
facts are settled under that one. So a merge is a fact about the set like any other (G9), undoing it is settling again,
and an erase of what named either takes just that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from sqlalchemy import text

from everkept.domain.ids import row_id
from everkept.errors import Conflict, InvalidInput, NotFound
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.facts import raise_revision, settle_slots

Slot = tuple[int, str]
"""(entity, predicate)."""

_GET = text("""
select e.subject_id, e.merged_into, exists (select 1 from entities m where m.merged_into = e.id)
from entities e join subjects u on u.id = e.subject_id and u.erased_at is null
where e.id = :id and e.project_id = :project""")
_MERGE = text("update entities set merged_into = :into, merged_by = :by, merged_at = :now where id = :id")
_SPLIT = text("update entities set merged_into = null, merged_by = null, merged_at = null where id = :id")
# With those of all that is merged into them: what one of these had ended may be what another says.
_SLOTS = text("""
with named(id) as (
  select value from numbers(:ids)
  union select id from entities where merged_into in (select value from numbers(:ids)))
select entity_id, predicate_norm from facts where entity_id in (select id from named)
union select entity_id, predicate_norm from facts where object_entity_id in (select id from named)""")
_MEMBERS = text("""
select merged_into, id, name, merged_by, merged_at from entities
where merged_into in (select value from numbers(:ids)) order by merged_at, id""")


def merge_entities(conn: Connection, project: int, entity: int, into: int, by: str) -> None:
    """From now on `entity` is another name of `into`. Raises NotFound, InvalidInput, Conflict."""
    if entity == into:
        raise InvalidInput("an entity is not merged into itself", field="into")
    subject, merged, has_members = _get(conn, project, entity)
    other, other_merged, _ = _get(conn, project, into)
    if subject != other:
        raise InvalidInput("both must be of one subject's memory", field="into")
    if merged is not None or other_merged is not None:
        gone = entity if merged is not None else into
        raise Conflict(f"{row_id('ent', gone)} is merged into another one already; split it first")
    if has_members:
        raise Conflict(
            f"others are merged into {row_id('ent', entity)}; merge the other way round, or split them first"
        )
    conn.run(_MERGE, {"id": entity, "into": into, "by": by, "now": conn.now()})
    _settle(conn, project, subject, _slots(conn, [entity, into]))


def split_entity(conn: Connection, project: int, entity: int) -> None:
    """It is a thing of its own again, with all that was ever said under its name. Raises NotFound, Conflict."""
    subject, into, _ = _get(conn, project, entity)
    if into is None:
        raise Conflict(f"{row_id('ent', entity)} is not merged into another one")
    conn.run(_SPLIT, {"id": entity})
    _settle(conn, project, subject, _slots(conn, [entity, into]))


def release_members(conn: Connection, entities: Iterable[int]) -> list[Slot]:
    """Before these are deleted: what was merged into them is a thing of its own again. The slots to settle."""
    members = [r[1] for r in conn.rows(_MEMBERS, {"ids": json.dumps(sorted(entities))})]
    conn.many(_SPLIT, [{"id": member} for member in members])
    return _slots(conn, members) if members else []


def members_of(conn: Connection, entities: Sequence[int]) -> dict[int, list[tuple[int, str, str, int]]]:
    """{entity: what is merged into it, as (id, name, by whom, when), the first merged first}"""
    found: dict[int, list[tuple[int, str, str, int]]] = {}
    for into, *member in conn.rows(_MEMBERS, {"ids": json.dumps(list(entities))}):
        found.setdefault(into, []).append((member[0], member[1], member[2], member[3]))
    return found


def _get(conn: Connection, project: int, entity: int) -> tuple[int, int | None, bool]:
    """(subject, merged into, whether others are merged into it)."""
    row = conn.first(_GET, {"id": entity, "project": project})
    if row is None:
        raise NotFound(f"there is no entity {row_id('ent', entity)}", id=row_id("ent", entity))
    return row[0], row[1], bool(row[2])


def _slots(conn: Connection, entities: Sequence[int]) -> list[Slot]:
    return [(r[0], r[1]) for r in conn.rows(_SLOTS, {"ids": json.dumps(list(entities))})]


def _settle(conn: Connection, project: int, subject: int, slots: Sequence[Slot]) -> None:
    raise_revision(conn, subject)
    changed = settle_slots(conn, project, subject, slots)
    record_changes(
        conn, project, [NewChange(kind="fact.changed", ref=row_id("fct", f), subject=subject) for f in changed]
    )
