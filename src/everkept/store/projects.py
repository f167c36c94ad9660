"""Projects, subjects and API keys: the scopes everything else hangs on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from everkept.domain.erase import ERASED_MARK
from everkept.errors import Conflict, InvalidInput, NotFound
from everkept.store.connection import Connection, Row
from everkept.store.generations import anything_waits, ensure_state
from everkept.store.lanes import ensure_lane
from everkept.store.merging import require_no_merge, require_unmerged
from everkept.store.project_names import FIRST, locate, shown
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
    former_secrets: tuple[bytes, ...] = ()
    """Of the projects that were merged into it: what was accepted in them is known under these."""
    found_as: str | None = None
    """The name of a project that was merged into it, where it was asked for by that."""


# The name of a project that was merged into another one is that of the other.
_FIND = text(f"""
select t.id, {shown("t")}, t.settings, t.secret, t.created_at, {shown("p")}
from projects p join projects t on t.id = coalesce(p.merged_into, p.id)
where p.id = :id and t.erased_at is null""")
_FORMER = text("select secret from projects where merged_into = :id order by id")
_LIST = text(f"""
select p.id, {shown("p")}, p.settings, p.secret, p.created_at, {shown("p")} from projects p
where p.erased_at is null and p.merged_into is null order by p.workspace_id, p.name""")
_ADD = text("""
insert into projects(workspace_id, name, settings, secret, created_at)
values(:workspace, :name, :settings, :secret, :now) on conflict do nothing""")
_BARE = text("select name from projects where id = :id")
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
    number = locate(conn, name)
    return None if number is None else _find(conn, number)


def _find(conn: Connection, number: int) -> ProjectRow | None:
    row = conn.first(_FIND, {"id": number})
    return None if row is None else _row(conn, row)


def get_project(conn: Connection, name: str) -> ProjectRow:
    project = find_project(conn, name)
    if project is None:
        raise NotFound(f"there is no project {name!r}", project=name)
    return project


def _row(conn: Connection, row: Row) -> ProjectRow:
    id_, name, settings, secret, created_at, asked = row
    return ProjectRow(
        id=id_, name=name, settings=settings, secret=bytes(secret), created_at=created_at,
        former_secrets=tuple(former_secrets(conn, id_)), found_as=None if asked == name else asked,
    )  # fmt: skip


def former_secrets(conn: Connection, project: int) -> list[bytes]:
    """Of the projects that were merged into it: hashes that were made in those are made with these."""
    return [bytes(r[0]) for r in conn.rows(_FORMER, {"id": project})]


_SECRET = text("select secret from projects where id = :id")


def all_secrets(conn: Connection, project: int) -> list[bytes]:
    """Its own first, with which new hashes are made; empty where it was erased."""
    return [bytes(conn.scalar(_SECRET, {"id": project}) or b""), *former_secrets(conn, project)]


def list_projects(conn: Connection) -> list[ProjectRow]:
    return [_row(conn, r) for r in conn.rows(_LIST)]


def ensure_project(conn: Connection, name: str, secret: bytes, settings: Mapping[str, Any] | None = None) -> ProjectRow:
    """The project of this name, made in the first workspace if there is none (`secret`: 32 random bytes, used only
    then).

    Raises Conflict where it is there and has other settings than those that are given.
    """
    found = find_project(conn, name)
    if found is None:
        _add(conn, FIRST, name, secret, settings)
    elif settings is not None and json.loads(found.settings) != dict(settings):
        raise Conflict(
            f"there is a project {found.name!r} already, with other settings; update it to change them",
            project=found.name,
        )
    return _with_lane(conn, name)


def _add(conn: Connection, workspace: int, name: str, secret: bytes, settings: Mapping[str, Any] | None) -> None:
    given = json.dumps(dict(settings or {}))
    conn.run(_ADD, {
        "workspace": workspace, "name": name, "settings": given, "secret": secret, "now": conn.now(),
    })  # fmt: skip


def _with_lane(conn: Connection, name: str) -> ProjectRow:
    project = find_project(conn, name)
    assert project is not None
    ensure_lane(conn, project.id, 0)
    ensure_state(conn, project.id)
    return project


def update_project(conn: Connection, name: str, new_name: str | None, settings: Mapping[str, Any] | None) -> ProjectRow:
    """Rename (one row: everything else names the project by number) and/or replace its settings."""
    project = get_project(conn, name)
    if project.found_as is not None:
        raise Conflict(f"{name!r} was merged into {project.name!r}; change that one", project=project.name)
    if new_name is not None and new_name != name:
        if name == DEFAULT_PROJECT:  # whoever names no project would find an empty one in its place
            raise Conflict(
                "the project 'default' keeps its name; create another project for other memory", project=name
            )
        called = project.name.removesuffix(str(conn.scalar(_BARE, {"id": project.id}))) + new_name
        if locate(conn, called) is not None:
            raise Conflict(f"there is a project {called!r} already", project=called)
        conn.run(_RENAME, {"id": project.id, "new": new_name})
    if settings is not None:
        conn.run(_SET, {"id": project.id, "settings": json.dumps(dict(settings))})
        if anything_waits(conn, project.id):  # its reviews may be wanted again
            wake_scheduler(conn, project.id)
    found = _find(conn, project.id)
    assert found is not None
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRow:
    id: int
    name: str
    created_at: int


_WORKSPACE = text("select id, name, created_at from workspaces where name = :name")
_ADD_WORKSPACE = text("insert into workspaces(name, created_at) values(:name, :now) on conflict do nothing")
_WORKSPACE_OF = text("select workspace_id from projects where id = :id")
_TAKEN = text("select 1 from projects where workspace_id = :workspace and name = :name and id <> :id")
_MOVE = text("update projects set workspace_id = :workspace where id = :id and erased_at is null")


def ensure_workspace(conn: Connection, name: str) -> WorkspaceRow:
    """The workspace of this name, made if there is none. Raises InvalidInput for a name with a slash."""
    if "/" in name:
        raise InvalidInput("the name of a workspace holds no slash", field="workspace")
    row = conn.first(_WORKSPACE, {"name": name})
    if row is None:
        conn.run(_ADD_WORKSPACE, {"name": name, "now": conn.now()})
        row = conn.first(_WORKSPACE, {"name": name})
    assert row is not None
    return WorkspaceRow(id=row[0], name=row[1], created_at=row[2])


def ensure_project_in(
    conn: Connection, workspace: str, name: str, secret: bytes, settings: Mapping[str, Any] | None
) -> ProjectRow:
    """As `ensure_project`, in a workspace, which is made if there is none; `settings` are those of a new one.

    Raises Conflict where a project of another workspace has the name that this one would be called by.
    """
    number = ensure_workspace(conn, workspace).id
    called = name if number == FIRST else f"{workspace}/{name}"
    found = locate(conn, called)
    if found is None:
        _add(conn, number, name, secret, settings)
    elif conn.scalar(_WORKSPACE_OF, {"id": found}) != number:
        raise Conflict(f"there is a project {called!r} already, in another workspace; rename it first", project=called)
    return _with_lane(conn, called)


def move_project(conn: Connection, project: int, workspace: int, name: str) -> None:
    """Take a project, called `name`, to another workspace: one row. All that is in it names the project by number; its
    reviews name the workspace too, and follow by their key.

    Raises Conflict where that workspace has a project of this name, NotFound where the project was erased.
    """
    if conn.first(_TAKEN, {"workspace": workspace, "name": name, "id": project}) is not None:
        raise Conflict(f"that workspace has a project {name!r} already; rename one of them first", project=name)
    if conn.run(_MOVE, {"workspace": workspace, "id": project}) == 0:
        raise NotFound(f"there is no project {name!r}", project=name)


def move_to_workspace(conn: Connection, name: str, workspace: str) -> ProjectRow:
    """As `move_project`, by names; the workspace is made if there is none. Its new name is `workspace/project`; its
    keys, signs, reviews and jobs go on as they are.

    Raises NotFound, and Conflict where it cannot move: it is `default` or the name of a merged one, a merge runs, or
    the first workspace has a project whose name reads as the new one.
    """
    project = get_project(conn, name)
    if project.found_as is not None:
        raise Conflict(f"{name!r} was merged into {project.name!r}; move that one", project=project.name)
    if project.name == DEFAULT_PROJECT:  # whoever names no project would find an empty one in its place
        raise Conflict("the project 'default' stays where it is; create another one for other memory", project=name)
    require_no_merge(conn, project.id, "move it")
    number, bare = ensure_workspace(conn, workspace).id, str(conn.scalar(_BARE, {"id": project.id}))
    new = bare if number == FIRST else f"{workspace}/{bare}"
    if locate(conn, new) not in (None, project.id):
        raise Conflict(f"there is a project {new!r} already; rename one of them first", project=new)
    move_project(conn, project.id, number, bare)
    return get_project(conn, new)


_SUBJECT = text("""
select u.id from subjects u join projects p on p.id = u.project_id
where u.project_id = :project and u.name = :name and u.erased_at is null and p.erased_at is null
  and p.merged_into is null""")
_SUBJECT_ADD = text("""
insert into subjects(project_id, name, created_at)
select id, :name, :now from projects where id = :project and erased_at is null and merged_into is null
on conflict do nothing""")
_SUBJECT_NAMES = text("select id, name from subjects where id in (select value from numbers(:ids))")


def find_subject(conn: Connection, project: int, name: str) -> int | None:
    found = conn.scalar(_SUBJECT, {"project": project, "name": name})
    return None if found is None else int(found)


def ensure_subject(conn: Connection, project: int, name: str) -> int:
    subject = find_subject(conn, project, name)
    if subject is None:
        conn.run(_SUBJECT_ADD, {"project": project, "name": name, "now": conn.now()})
        subject = find_subject(conn, project, name)
    if subject is None:
        require_unmerged(conn, project)
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
_KEY_FIND = text(f"""
select {shown("p")} from api_keys k join projects p on p.id = k.project_id
join projects t on t.id = coalesce(p.merged_into, p.id)
where k.token_hash = :hash and k.revoked_at is null and t.erased_at is null""")
_KEY_LIST = text(f"""
select k.id, k.name, {shown("p")}, k.created_at, k.revoked_at
from api_keys k left join projects p on p.id = k.project_id order by k.id""")
_KEY_REVOKE = text("update api_keys set revoked_at = :now where id = :id and revoked_at is null")


def add_key(conn: Connection, project: int, name: str, token_hash: bytes) -> int:
    return int(conn.scalar(_KEY_ADD, {"project": project, "name": name, "hash": token_hash, "now": conn.now()}))


def find_key(conn: Connection, token_hash: bytes) -> str | None:
    """The project's name of a key that is not revoked."""
    found = conn.scalar(_KEY_FIND, {"hash": token_hash})
    return None if found is None else str(found)


_NAMES_OF = text(f"""
select {shown("n")} from projects p
join projects n on coalesce(n.merged_into, n.id) = coalesce(p.merged_into, p.id)
where p.id = :id""")


def names_of(conn: Connection, name: str) -> frozenset[str]:
    """Every name that means the same project: its own, and those of what was merged into it."""
    return frozenset(r[0] for r in conn.rows(_NAMES_OF, {"id": locate(conn, name)}))


def list_keys(conn: Connection) -> list[tuple[Any, ...]]:
    return conn.rows(_KEY_LIST)


def revoke_key(conn: Connection, key: int) -> bool:
    return conn.run(_KEY_REVOKE, {"id": key, "now": conn.now()}) > 0
