"""Replies of models move before the work that may need them, so that none is asked for again (G8)."""

from __future__ import annotations

import json
from typing import Final

from sqlalchemy import text

from everkept.store.connection import Connection
from everkept.store.merge_part import Part

REPLIES_PER_CHUNK: Final = 200

_NEXT = text("select id from replies where project_id = :source limit :limit")
_SAME = """t.work = s.work and t.step = s.step and t.version = s.version and t.model = s.model and t.ask = s.ask"""
# Of one question that both have asked, one that was answered stays.
_ANSWERED_HERE = text(f"""
delete from replies where id in (
  select t.id from numbers(:ids) h join replies s on s.id = h.value and s.text is not null
  join replies t on t.project_id = :target and {_SAME} where t.text is null)""")
_ANSWERED_THERE = text(f"""
delete from replies where id in (
  select s.id from numbers(:ids) h join replies s on s.id = h.value
  join replies t on t.project_id = :target and {_SAME})""")
_MOVE = text("""
update replies set project_id = :target, subject_id = coalesce(
  (select u.merged_into from subjects u where u.id = replies.subject_id), subject_id)
where id in (select value from numbers(:ids))""")


def move_replies(conn: Connection, part: Part) -> int:
    """The next of the source's; how many. After its first stage only what was asked since is there."""
    rows = conn.rows(_NEXT, {**part.params, "limit": REPLIES_PER_CHUNK})
    if not rows:
        return 0
    given = {**part.params, "ids": json.dumps([r[0] for r in rows])}
    for statement in (_ANSWERED_HERE, _ANSWERED_THERE, _MOVE):
        conn.run(statement, given)
    return len(rows)
