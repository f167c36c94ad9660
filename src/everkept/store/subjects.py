"""Whose memory there is in a project."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from everkept.store.connection import Connection
from everkept.store.projects import shown_name

COUNTED_MAX = 10_000
"""What there is more of is counted no further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectRow:
    """Counts end at `COUNTED_MAX`."""

    id: int
    name: str
    threads: int
    facts: int
    created_at: int


_LIST = text("""
select u.id, u.name, u.created_at,
  (select count(*) from (select 1 from streams s where s.subject_id = u.id and s.kind = 'thread'
    and s.erased_at is null limit :most)),
  (select count(*) from (select 1 from facts f where f.subject_id = u.id and f.retired_at is null limit :most))
from subjects u
where u.project_id = :project and u.erased_at is null and u.id < :before order by u.id desc limit :limit""")


def list_subjects(conn: Connection, project: int, before: int | None, limit: int) -> list[SubjectRow]:
    """The newest first."""
    rows = conn.rows(_LIST, {
        "project": project, "before": 2**63 - 1 if before is None else before, "limit": limit, "most": COUNTED_MAX,
    })  # fmt: skip
    return [SubjectRow(id=r[0], name=shown_name(r[1]) or "", created_at=r[2], threads=r[3], facts=r[4]) for r in rows]
