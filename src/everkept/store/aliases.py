"""Which project a checkout's signs name: the alias table behind `capture.identity`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text

from everkept.errors import NotFound
from everkept.store.connection import Connection
from everkept.store.project_names import shown
from everkept.store.projects import ProjectRow, ensure_project, find_project

_FIND = text(f"""
select {shown("p")} from project_aliases a join projects p on p.id = a.project_id and p.erased_at is null
where a.kind = :kind and a.value = :value""")
_ADD = text("""
insert into project_aliases(kind, value, project_id, created_at) values(:kind, :value, :project, :now)
on conflict do nothing""")
_LIST = text("select kind, value from project_aliases where project_id = :project order by kind, value")
_MOVE = text("""
insert into project_aliases(kind, value, project_id, created_at) values(:kind, :value, :project, :now)
on conflict(kind, value) do update set project_id = excluded.project_id""")
_DROP = text("delete from project_aliases where project_id = :project")
STRONG = ("marker", "remote", "root")
"""Signs that name one body of code wherever it lies; the others are places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    project: ProjectRow
    found_by: str
    value: str


def find_by_signs(conn: Connection, signs: Sequence[tuple[str, str]]) -> Found | None:
    """The project that the strongest known sign names. Only looks.

    A marker counts where it was trusted before. A place counts only where no strong sign says otherwise: the folder
    that held one repository may hold another one today.
    """
    for kind, value in signs:
        name = conn.scalar(_FIND, {"kind": kind, "value": value})
        if name is None:
            continue
        project = find_project(conn, name)
        if project is None or (kind not in STRONG and _is_another(conn, project, signs)):
            continue
        return Found(project=project, found_by=kind, value=value)
    return None


def _is_another(conn: Connection, project: ProjectRow, signs: Sequence[tuple[str, str]]) -> bool:
    """Whether what lies here now has a name of its own, and the project that lay here before has another one.

    A repository that was given another remote is then a project of its own; `trust` makes it the same again.
    """
    here = any(kind in ("remote", "root") for kind, _ in signs)
    return here and any(kind in ("remote", "root") for kind, _ in conn.rows(_LIST, {"project": project.id}))


def resolve(conn: Connection, signs: Sequence[tuple[str, str]], name: str, secret: bytes) -> Found:
    """As `find_by_signs`, and where nothing is known a new project `name`; every sign is known afterwards.

    A marker is not learnt here: it counts once somebody trusted it (`trust`).
    """
    found = find_by_signs(conn, signs)
    if found is None:
        kind, value = next((s for s in signs if s[0] != "marker"), ("path", ""))
        found = Found(project=ensure_project(conn, name, secret), found_by=kind, value=value)
    now = conn.now()
    for kind, value in signs:
        if kind != "marker":  # a place is rebound: what lay there before has gone
            learn = _ADD if kind in STRONG else _MOVE
            conn.run(learn, {"kind": kind, "value": value, "project": found.project.id, "now": now})
    return found


def trust(conn: Connection, kind: str, value: str, project: str) -> None:
    """From now on this sign names this project (`api.scoping`). Raises NotFound where there is no such project."""
    row = find_project(conn, project)
    if row is None:
        raise NotFound(
            f"there is no project {project!r}; `everkept projects create {project}` makes it", project=project
        )
    conn.run(_MOVE, {"kind": kind, "value": value, "project": row.id, "now": conn.now()})


def aliases_of(conn: Connection, project: int) -> list[tuple[str, str]]:
    """(kind, value) of every sign that names the project."""
    return [(r[0], r[1]) for r in conn.rows(_LIST, {"project": project})]


def drop_aliases(conn: Connection, project: int) -> int:
    return conn.run(_DROP, {"project": project})
