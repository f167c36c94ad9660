"""Projects, subjects and API keys: the scopes everything else hangs on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from everkept.domain.erase import ERASED_MARK
from everkept.errors import Conflict, NotFound
from everkept.store.connection import Connection
from everkept.store.generations import anything_waits, ensure_state
from everkept.store.jobs import ensure_lane
from everkept.store.review_jobs import wake_scheduler

DEFAULT_PROJECT = "default"
"""Where the memory of those who name no project is; there always is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRow:
    id: int
    name: str
    settings: str
    secret: bytes
    created_at: int


_FIND = text("""
select id, name, settings, secret, created_at from projects where workspace_id = 1 and name = :name
  and erased_at is null""")
_LIST = text("""
select id, name, settings, secret, created_at from projects where workspace_id = 1 and erased_at is null
order by name""")
_ADD = text("""
insert into projects(workspace_id, name, settings, secret, created_at) values(1, :name, :settings, :secret, :now)
on conflict do nothing""")
_RENAME = text("update projects set name = :new where id = :id")
_SET = text("update projects set settings = :settings where id = :id")


ERASED = "(erased)"


def is_erased(name: str | None) -> bool:
    """Whether a name is what an erase has left in its place."""
    return name is not None and name.startswith(ERASED_MARK)


def shown_name(name: str | None) -> str | None:
    """A name as people see it."""
    return ERASED if is_erased(name) else name


def find_project(conn: Connection, name: str) -> ProjectRow | None:
    row = conn.first(_FIND, {"name": name})
    return None if row is None else _row(row)


def _row(row: tuple[Any, ...]) -> ProjectRow:
    return ProjectRow(id=row[0], name=row[1], settings=row[2], secret=bytes(row[3]), created_at=row[4])


def list_projects(conn: Connection) -> list[ProjectRow]:
    return [_row(r) for r in conn.rows(_LIST)]


def ensure_project(conn: Connection, name: str, secret: bytes, settings: Mapping[str, Any] | None = None) -> ProjectRow:
    """The project of this name, made if there is none (`secret`: 32 random bytes, used only then)."""
    conn.run(_ADD, {"name": name, "settings": json.dumps(settings or {}), "secret": secret, "now": conn.now()})
    project = find_project(conn, name)
    assert project is not None
    ensure_lane(conn, project.id, 0)
    ensure_state(conn, project.id)
    return project


def update_project(conn: Connection, name: str, new_name: str | None, settings: Mapping[str, Any] | None) -> ProjectRow:
    """Rename (one row: everything else names the project by number) and/or replace its settings."""
    project = find_project(conn, name)
    if project is None:
        raise NotFound(f"there is no project {name!r}", project=name)
    if new_name is not None and new_name != name:
        if name == DEFAULT_PROJECT:  # whoever names no project would find an empty one in its place
            raise Conflict(
                "the project 'default' keeps its name; create another project for other memory", project=name
            )
        if find_project(conn, new_name) is not None:
            raise Conflict(f"there is a project {new_name!r} already", project=new_name)
        conn.run(_RENAME, {"id": project.id, "new": new_name})
    if settings is not None:
        conn.run(_SET, {"id": project.id, "settings": json.dumps(dict(settings))})
        if anything_waits(conn, project.id):  # its reviews may be wanted again
            wake_scheduler(conn, project.id)
    found = find_project(conn, new_name or name)
    assert found is not None
    return found


_WORKSPACE = text("select id from workspaces where name = :name")
_ADD_WORKSPACE = text("insert into workspaces(name, created_at) values(:name, :now) on conflict do nothing")
_TAKEN = text("select 1 from projects where workspace_id = :workspace and name = :name and id <> :id")
_MOVE = text("update projects set workspace_id = :workspace where id = :id and erased_at is null")


def ensure_workspace(conn: Connection, name: str) -> int:
    """The workspace of this name, made if there is none."""
    conn.run(_ADD_WORKSPACE, {"name": name, "now": conn.now()})
    return int(conn.scalar(_WORKSPACE, {"name": name}))


def move_project(conn: Connection, project: int, workspace: int, name: str) -> None:
    """Take a project, called `name`, to another workspace: one row. All that is in it names the project by number; its
    reviews name the workspace too, and follow by their key.

    Raises Conflict where that workspace has a project of this name, NotFound where the project was erased.
    """
    if conn.first(_TAKEN, {"workspace": workspace, "name": name, "id": project}) is not None:
        raise Conflict(f"that workspace has a project {name!r} already; rename one of them first", project=name)
    if conn.run(_MOVE, {"workspace": workspace, "id": project}) == 0:
        raise NotFound(f"there is no project {name!r}", project=name)


_SUBJECT = text("""
select u.id from subjects u join projects p on p.id = u.project_id
where u.project_id = :project and u.name = :name and u.erased_at is null and p.erased_at is null""")
_SUBJECT_ADD = text("""
insert into subjects(project_id, name, created_at)
select id, :name, :now from projects where id = :project and erased_at is null
on conflict do nothing""")
_SUBJECT_NAMES = text("select id, name from subjects where id in (select value from json_each(:ids))")


def find_subject(conn: Connection, project: int, name: str) -> int | None:
    found = conn.scalar(_SUBJECT, {"project": project, "name": name})
    return None if found is None else int(found)


def ensure_subject(conn: Connection, project: int, name: str) -> int:
    subject = find_subject(conn, project, name)
    if subject is None:
        conn.run(_SUBJECT_ADD, {"project": project, "name": name, "now": conn.now()})
        subject = find_subject(conn, project, name)
    if subject is None:
        raise NotFound("this project was erased; name the project again to start a new one")
    return subject


def subject_names(conn: Connection, subjects: Sequence[int]) -> dict[int, str]:
    return dict(conn.rows(_SUBJECT_NAMES, {"ids": json.dumps(subjects)}))


_COUNTS = text("""
select (select coalesce(sum(last_seq), 0) from streams where project_id = :p),
  (select count(*) from facts where project_id = :p)""")


def project_counts(conn: Connection, project: int) -> tuple[int, int]:
    """(messages appended, facts)."""
    row = conn.first(_COUNTS, {"p": project})
    assert row is not None
    return int(row[0]), int(row[1])


_KEY_ADD = text(
    "insert into api_keys(project_id, name, token_hash, created_at) values(:project, :name, :hash, :now) returning id"
)
_KEY_FIND = text("""
select p.name from api_keys k join projects p on p.id = k.project_id
where k.token_hash = :hash and k.revoked_at is null and p.erased_at is null and p.workspace_id = 1""")
_KEY_LIST = text("""
select k.id, k.name, p.name, k.created_at, k.revoked_at from api_keys k left join projects p on p.id = k.project_id
order by k.id""")
_KEY_REVOKE = text("update api_keys set revoked_at = :now where id = :id and revoked_at is null")


def add_key(conn: Connection, project: int, name: str, token_hash: bytes) -> int:
    return int(conn.scalar(_KEY_ADD, {"project": project, "name": name, "hash": token_hash, "now": conn.now()}))


def find_key(conn: Connection, token_hash: bytes) -> str | None:
    """The project's name of a key that is not revoked."""
    found = conn.scalar(_KEY_FIND, {"hash": token_hash})
    return None if found is None else str(found)


def list_keys(conn: Connection) -> list[tuple[Any, ...]]:
    return conn.rows(_KEY_LIST)


def revoke_key(conn: Connection, key: int) -> bool:
    return conn.run(_KEY_REVOKE, {"id": key, "now": conn.now()}) > 0
