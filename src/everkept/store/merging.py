"""What a merge is while it runs, and who waits for it: a stretch of the source's things that are not there yet.

"Nothing there" and "not there yet" differ: whoever names something that is still on its way is told so, and asks again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import text

from everkept.errors import Conflict, Unavailable
from everkept.store.connection import Connection, Row
from everkept.store.project_names import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """One merge of a source into a target: how far it is, and what it had to call otherwise. Times in µs since 1970."""

    id: int
    source: int
    target: int
    source_name: str
    """As it was when it was merged."""
    target_name: str
    asked_at: int
    working_on: int | None
    """The subject that moves; None: the next one is to be taken; 0: what the project has beside its subjects."""
    stage: int
    after: int
    after_seq: int
    moved: dict[str, int]
    """Rows by kind."""
    renamed: tuple[tuple[str, str, str], ...]
    """(thread, session, page, webhook or workstream; its name in the source; its name now)."""
    done_at: int | None


_COLUMNS = f"""
select m.id, m.source_id, m.target_id, m.source_name, {shown("t")}, m.asked_at, m.working_on, m.stage, m.after,
  m.after_seq, m.moved, m.renamed, m.done_at
from merges m join projects t on t.id = m.target_id """
_BY_ID = text(_COLUMNS + "where m.id = :id")
_RUNNING = text(_COLUMNS + "where m.done_at is null order by m.id")
_LAST_OF = text(_COLUMNS + "where m.source_id = :project or m.target_id = :project order by m.id desc limit 1")
_INTO = text(_COLUMNS + "where m.target_id = :project and m.done_at is null limit 1")
_TOUCHING = text("""
select source_name from merges where done_at is null and (source_id = :project or target_id = :project) limit 1""")
_STREAM = text("select 1 from streams where project_id = :source and kind = :kind and name = :name")
_TARGET = text(f"""
select {shown("t")} from projects p join projects t on t.id = p.merged_into where p.id = :project""")


def _merge(r: Row) -> Merge:
    return Merge(
        id=r[0], source=r[1], target=r[2], source_name=r[3], target_name=r[4], asked_at=r[5], working_on=r[6],
        stage=r[7], after=r[8], after_seq=r[9], moved=json.loads(r[10]),
        renamed=tuple((what, old, new) for what, old, new in json.loads(r[11])), done_at=r[12],
    )  # fmt: skip


def find_merge(conn: Connection, merge: int) -> Merge | None:
    row = conn.first(_BY_ID, {"id": merge})
    return None if row is None else _merge(row)


def running_merges(conn: Connection) -> list[Merge]:
    return [_merge(r) for r in conn.rows(_RUNNING)]


def last_merge(conn: Connection, project: int) -> Merge | None:
    """The newest one that the project had a part in."""
    row = conn.first(_LAST_OF, {"project": project})
    return None if row is None else _merge(row)


def merge_into(conn: Connection, project: int) -> Merge | None:
    """The merge that brings another project into this one now."""
    row = conn.first(_INTO, {"project": project})
    return None if row is None else _merge(row)


def require_no_merge(conn: Connection, project: int, what: str) -> None:
    """Raises Conflict while the project takes part in a merge: what is on its way would escape `what`."""
    name = conn.scalar(_TOUCHING, {"project": project})
    if name is not None:
        raise Conflict(
            f"the project {name!r} is being merged; {what} once that is done (`everkept status` shows it)", project=name
        )


def require_arrived(conn: Connection, project: int, kind: str, name: str) -> None:
    """Raises Unavailable where the project has no such thread or session yet, but a merge is bringing it."""
    merge = merge_into(conn, project)
    if merge is not None and conn.first(_STREAM, {"source": merge.source, "kind": kind, "name": name}) is not None:
        raise Unavailable(
            f"the {kind} {name!r} is on its way from the project {merge.source_name!r}, which is being merged into"
            " this one; ask again in a moment",
            project=merge.source_name,
        )


def is_merged(conn: Connection, project: int) -> bool:
    """Whether it is another one's name since, though something of it may still be on its way."""
    return conn.first(_TARGET, {"project": project}) is not None


def require_unmerged(conn: Connection, project: int) -> None:
    """Raises Conflict for whoever holds a project that was merged into another one since."""
    target = conn.scalar(_TARGET, {"project": project})
    if target is not None:
        raise Conflict(f"this project was merged into {target!r}; open that one", project=target)


# ---- what an erase takes of them

_RENAMED = text("""
select m.id, m.source_id, m.target_id, m.renamed from merges m join projects t on t.id = m.target_id
where :project in (t.id, t.merged_into) and m.renamed <> '[]' order by m.id desc""")
_KEEP = text("update merges set renamed = :renamed where id = :id")


def forget_renamed(conn: Connection, project: int, things: Iterable[tuple[str, str]]) -> None:
    """Merges no longer tell how these (kind, name) things of the project were called before, in whichever they were."""
    gone = {project: set(things)}
    for merge, source, target, listed in conn.rows(_RENAMED, {"project": project}):
        names = gone.get(target, set())
        rows = json.loads(listed)
        kept = [row for row in rows if (row[0], row[2]) not in names]
        before = {(row[0], row[2]): (row[0], row[1]) for row in rows}
        gone[source] = {before.get(thing, thing) for thing in names}
        if len(kept) < len(rows):
            conn.run(_KEEP, {"id": merge, "renamed": json.dumps(kept, ensure_ascii=False)})
