"""What a hand decides about facts beside retiring them: that one is pinned, or was wrong, and what is right.

Each decision is a statement or a mark on one, which the timeline reads with all others (G9): made before or after a
late window is worked, it comes to the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from everkept.domain.ids import row_id
from everkept.errors import Conflict, KeyConflict, NotFound
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.facts import FactsOf, NewFact, find_hand_fact, raise_revision, settle_slots, write_facts
from everkept.store.hidden import SHOWN_FACT


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A fact as it was stated, before anything was settled. Times in microseconds since 1970."""

    id: int
    subject: int
    entity_id: int
    predicate_norm: str
    entity: str
    predicate: str
    object: str
    object_type: str | None
    """None where the object is no entity of its own."""
    text: str
    valid_from: int | None
    valid_until: int | None
    single_valued: bool | None
    said_at: int
    closes: bool
    pinned: bool
    retired: bool


_STATEMENT = text(f"""
select f.id, f.subject_id, f.entity_id, f.predicate_norm, e.name, f.predicate, f.object, o.type, f.text, f.valid_from,
  f.valid_until, f.single_valued, f.said_at, f.closes, f.pinned, f.retired_at is not null
from facts f join subjects u on u.id = f.subject_id and u.erased_at is null join entities e on e.id = f.entity_id
  left join entities o on o.id = f.object_entity_id
where f.id = :id and f.project_id = :project and {SHOWN_FACT}""")
_PIN = text("update facts set pinned = :pinned where id = :id")
_STATED = text("""
update facts set stated_by = :by, (corrects, corrects_stream, corrects_seq) = (
  select o.draft_key, o.said_stream, o.said_seq from facts o where o.id = :old) where id = :id""")
_CORRECTS = text("select 1 from facts f join facts o on o.draft_key = f.corrects where f.id = :id and o.id = :old")
_NO_LONGER_CORRECTS = text("""
update facts set corrects = null, corrects_stream = null, corrects_seq = null, correction = false, replaces = ''
where corrects_stream = :stream and (:seq is null or corrects_seq = :seq)
returning subject_id, entity_id, predicate_norm""")


def get_statement(conn: Connection, project: int, fact: int) -> Statement:
    """Raises NotFound."""
    r = conn.first(_STATEMENT, {"id": fact, "project": project})
    if r is None:
        raise NotFound(f"there is no fact {row_id('fct', fact)}", id=row_id("fct", fact))
    return Statement(
        id=r[0], subject=r[1], entity_id=r[2], predicate_norm=r[3], entity=r[4], predicate=r[5], object=r[6],
        object_type=r[7], text=r[8], valid_from=r[9], valid_until=r[10],
        single_valued=None if r[11] is None else bool(r[11]), said_at=r[12], closes=bool(r[13]), pinned=bool(r[14]),
        retired=bool(r[15]),
    )  # fmt: skip


def pin(conn: Connection, project: int, fact: int, by: str, *, undo: bool = False) -> None:
    """Nothing that is said later changes a pinned fact, only a hand. Raises NotFound, Conflict."""
    statement = get_statement(conn, project, fact)
    if statement.pinned != undo:
        return
    if statement.retired and not undo:
        raise Conflict(f"{row_id('fct', fact)} is not believed any more; there is nothing to pin")
    conn.run(_PIN, {"id": fact, "pinned": not undo})
    raise_revision(conn, statement.subject)
    changed = settle_slots(conn, project, statement.subject, [(statement.entity_id, statement.predicate_norm)])
    record_changes(conn, project, [
        NewChange(kind="fact.changed", ref=row_id("fct", f), subject=statement.subject,
                  data={"pinned": not undo, "by": by} if f == fact else {})
        for f in sorted({fact, *changed})
    ])  # fmt: skip


def correct(conn: Connection, project: int, fact: int, new: NewFact, key: str, by: str) -> tuple[int, bool]:
    """(the fact that takes its place, whether this key had made it before).

    `new` is a correction that names the object of `fact`; it is pinned where that was.
    Raises NotFound, Conflict, KeyConflict.
    """
    old = get_statement(conn, project, fact)
    known = find_hand_fact(conn, old.subject, key)
    if known is not None:
        of_another = conn.first(_CORRECTS, {"id": known, "old": fact}) is None
        if of_another or not _says(get_statement(conn, project, known), new):
            raise KeyConflict("this key was used before with another payload; use a new key", field="key")
        return known, True
    if old.retired:
        raise Conflict(f"{row_id('fct', fact)} is not believed any more; there is nothing to correct")
    if old.pinned:
        conn.run(_PIN, {"id": fact, "pinned": False})
    of = FactsOf(project=project, subject=old.subject, window=None, slice=0, revision=None, key=key)
    (made,) = write_facts(conn, of, [new], "[]")
    conn.run(_STATED, {"id": made, "by": by, "old": fact})
    return made, False


def _says(made: Statement, new: NewFact) -> bool:
    d = new.draft
    return (made.text, made.object, made.valid_from, made.valid_until) == (
        d.text, d.object, d.valid_from_us, d.valid_until_us,
    )  # fmt: skip


def take_back_corrections(conn: Connection, stream: int, seq: int | None) -> dict[int, set[tuple[int, str]]]:
    """What was said there is destroyed: what put it right only states itself from now on, and names nothing of it.

    {subject: the slots to settle again}
    """
    slots: dict[int, set[tuple[int, str]]] = {}
    for subject, entity, predicate in conn.rows(_NO_LONGER_CORRECTS, {"stream": stream, "seq": seq}):
        slots.setdefault(subject, set()).add((entity, predicate))
    return slots
