"""The source's outbox goes into the target's: every change once, in its order, under the target's next numbers (G11).

Each is about the subject that its own is joined to, from the carry on, though subjects are joined only later: whoever
follows one subject passes what is not about it, and would never be told.

What all followers of the source have acknowledged comes first, before anything else moves. They go on after it, in the
target: they hear what the merge brings, and then what none of them may miss. Whoever was ahead hears some of it twice.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import text

from everkept.store.connection import Connection
from everkept.store.merge_part import Chunk, Part, Place

CHANGES_PER_CHUNK: Final = 300

_HEARD = text("""
select min(
  coalesce((select min(cursor) from consumers where project_id = :source and name <> 'wiki'), p.change_seq),
  coalesce((select min(k.seq) - 1 from parked_changes k join webhooks w on w.id = k.webhook_id
    join changes c on c.project_id = w.project_id and c.seq = k.seq where w.project_id = :source), p.change_seq))
from projects p where p.id = :source""")
_NEXT = text("""
select seq from changes where project_id = :source and seq > :after and seq <= :upto order by seq limit :limit""")
_TAKE = text("update projects set change_seq = change_seq + :n where id = :target returning change_seq")
_ADD = text("""
insert into changes(project_id, seq, kind, subject_id, stream_id, ref, data, at, born)
select :target, :new, c.kind, coalesce(
  u.merged_into, (select t.id from subjects t where t.project_id = :target and t.name = u.name), c.subject_id),
  c.stream_id, c.ref, c.data, c.at, coalesce(c.born, c.project_id || '_' || c.seq)
from changes c left join subjects u on u.id = c.subject_id where c.project_id = :source and c.seq = :old""")
_GONE = text("delete from changes where project_id = :source and seq <= :last")
_PARKED = text("""
update parked_changes set seq = - cast(:new as bigint) where seq = :old
  and webhook_id in (select id from webhooks where project_id = :source)""")
_FIRST: Final = text("select coalesce(min(seq), 1) from changes where project_id = :target")
_JOINED: Final = text("""
update changes set subject_id = (select u.merged_into from subjects u where u.id = changes.subject_id)
where project_id = :target and seq >= :first and seq < :next
  and exists (select 1 from subjects u where u.id = changes.subject_id and u.merged_into is not null)""")
LOOKED_THROUGH_PER_CHUNK: Final = 2_000
_NEVER: Final = 1 << 62


def heard(conn: Connection, part: Part) -> Chunk:
    """The next of those that all followers have acknowledged."""
    return _carry(conn, part, conn.scalar(_HEARD, part.params))


def unheard(conn: Connection, part: Part, _place: Place) -> Chunk:
    """The next of the rest, once nothing of the source is left that could make more."""
    return _carry(conn, part, _NEVER)


def joined(conn: Connection, part: Part, place: Place) -> Chunk:
    """Whose name the target learned only after the carry: what came before is about the one that it was joined to.

    Whoever asks for the target's subject is told of it, and its erase reaches it.
    """
    assert part.change is not None, "what was heard is carried before anything else"
    first = place.after or int(conn.scalar(_FIRST, part.params))
    upto = first + LOOKED_THROUGH_PER_CHUNK
    conn.run(_JOINED, {**part.params, "first": first, "next": upto})
    return Chunk({}, Place(upto) if upto <= part.change else None)


def _carry(conn: Connection, part: Part, upto: int) -> Chunk:
    old = [r[0] for r in conn.rows(_NEXT, {**part.params, "after": 0, "upto": upto, "limit": CHANGES_PER_CHUNK})]
    if not old:
        return Chunk({}, None)
    first = conn.scalar(_TAKE, {"target": part.target, "n": len(old)}) - len(old) + 1
    given = [{**part.params, "old": seq, "new": first + nth} for nth, seq in enumerate(old)]
    for statement in (_ADD, _PARKED):
        conn.many(statement, given)
    conn.run(_GONE, {**part.params, "last": old[-1]})
    conn.ring(part.target)
    return Chunk({"changes": len(old)}, Place())
