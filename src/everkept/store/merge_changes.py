"""The source's outbox goes into the target's: every change once, in its order, under the target's next numbers (G11).

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
  (select u.merged_into from subjects u where u.id = c.subject_id), c.subject_id), c.stream_id, c.ref, c.data, c.at,
  coalesce(c.born, c.project_id || '_' || c.seq)
from changes c where c.project_id = :source and c.seq = :old""")
_GONE = text("delete from changes where project_id = :source and seq <= :last")
_PARKED = text("""
update parked_changes set seq = - :new where seq = :old
  and webhook_id in (select id from webhooks where project_id = :source)""")
_NEVER: Final = 1 << 62


def heard(conn: Connection, part: Part) -> Chunk:
    """The next of those that all followers have acknowledged."""
    return _carry(conn, part, conn.scalar(_HEARD, part.params))


def unheard(conn: Connection, part: Part, _place: Place) -> Chunk:
    """The next of the rest, once nothing of the source is left that could make more."""
    return _carry(conn, part, _NEVER)


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
