"""Workstreams by name, and which one the launches of a worktree continue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from everkept.domain.ids import row_id
from everkept.errors import Conflict, NotFound
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkstreamRow:
    id: int
    project: int
    name: str
    fence: int
    created_at: int


_COLUMNS = "select w.id, w.project_id, w.name, w.fence, w.created_at from workstreams w "
_BY_ID = text(_COLUMNS + "where w.project_id = :project and w.id = :id")
_BY_NAME = text(_COLUMNS + "where w.project_id = :project and w.name = :name")
_LIST = text(
    _COLUMNS + "where w.project_id = :project and (:before is null or w.id < :before) order by w.id desc limit :limit"
)
_SELECTED = text(
    _COLUMNS
    + "join workstream_selections c on c.workstream_id = w.id where c.project_id = :project and c.place = :place"
)
_LAST_HERE = text(
    _COLUMNS + "join launches l on l.workstream_id = w.id where l.project_id = :project and l.worktree = :place"
    " order by l.id desc limit 1"
)
_ADD = text("""
insert into workstreams(project_id, name, created_at) values(:project, :name, :now)
on conflict do nothing returning id""")
_RENAME = text("update workstreams set name = :name where id = :id")
_SELECT = text("""
insert into workstream_selections(project_id, place, workstream_id, selected_at)
values(:project, :place, :workstream, :now)
on conflict(project_id, place) do update set workstream_id = excluded.workstream_id, selected_at = excluded.selected_at
""")
_PLACES = text("""
select workstream_id, place from workstream_selections
where workstream_id in (select value from numbers(:workstreams)) order by place""")


def _workstream(r: tuple[Any, ...]) -> WorkstreamRow:
    return WorkstreamRow(id=r[0], project=r[1], name=r[2], fence=r[3], created_at=r[4])


def get_workstream(conn: Connection, project: int, workstream: int) -> WorkstreamRow:
    row = conn.first(_BY_ID, {"project": project, "id": workstream})
    if row is None:
        wanted = row_id("wst", workstream)
        raise NotFound(f"there is no workstream {wanted} in this project", id=wanted)
    return _workstream(row)


def find_workstream(conn: Connection, project: int, name: str) -> WorkstreamRow | None:
    row = conn.first(_BY_NAME, {"project": project, "name": name})
    return None if row is None else _workstream(row)


def list_workstreams(conn: Connection, project: int, before: int | None, limit: int) -> list[WorkstreamRow]:
    """Newest first. `before`: those that come after this one in the list."""
    return [_workstream(r) for r in conn.rows(_LIST, {"project": project, "before": before, "limit": limit})]


def ensure_workstream(conn: Connection, project: int, name: str) -> WorkstreamRow:
    """The one of this name, made where there is none."""
    added = conn.scalar(_ADD, {"project": project, "name": name, "now": conn.now()})
    if added is not None:
        record_changes(conn, project, [NewChange(kind="workstream.created", ref=row_id("wst", added))])
    found = find_workstream(conn, project, name)
    assert found is not None
    return found


def rename_workstream(conn: Connection, project: int, workstream: int, name: str) -> WorkstreamRow:
    """Raises Conflict where another one has the name."""
    other = find_workstream(conn, project, name)
    if other is not None and other.id != workstream:
        taken_by = row_id("wst", other.id)
        raise Conflict(f"the workstream {taken_by} is called {name!r} already", id=taken_by)
    if other is None:
        conn.run(_RENAME, {"id": workstream, "name": name})
        record_changes(conn, project, [NewChange(kind="workstream.renamed", ref=row_id("wst", workstream))])
    return get_workstream(conn, project, workstream)


def select_workstream(conn: Connection, project: int, workstream: int, place: str) -> None:
    """From now on launches in this worktree continue it."""
    asked = {"project": project, "place": place, "workstream": workstream, "now": conn.now()}
    conn.run(_SELECT, asked)


def selected_in(conn: Connection, project: int, place: str) -> WorkstreamRow | None:
    row = conn.first(_SELECTED, {"project": project, "place": place})
    return None if row is None else _workstream(row)


def last_launched_in(conn: Connection, project: int, place: str) -> WorkstreamRow | None:
    row = conn.first(_LAST_HERE, {"project": project, "place": place})
    return None if row is None else _workstream(row)


def places_of(conn: Connection, workstreams: Sequence[int]) -> dict[int, list[str]]:
    """{workstream: worktrees in which it is selected}."""
    found: dict[int, list[str]] = {workstream: [] for workstream in workstreams}
    for workstream, place in conn.rows(_PLACES, {"workstreams": json.dumps(list(workstreams))}):
        found[workstream].append(place)
    return found
