"""What a project is called: by its name in the first workspace, as `workspace/project` in any other.

Who has one workspace never sees it. A name in the first one goes before: it may hold a slash itself.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import text

from everkept.store.connection import Connection

FIRST: Final = 1
"""The workspace that is there from the beginning, and that nobody has to name."""


def shown(project: str) -> str:
    """SQL for the name by which a row of `projects` is found, where `project` is its alias in the statement."""
    return (
        f"case when {project}.workspace_id = {FIRST} then {project}.name else (select w.name from workspaces w"
        f" where w.id = {project}.workspace_id) || '/' || {project}.name end"
    )


_IN_WORKSPACE = text("""
select p.id from projects p where p.workspace_id = (
  select w.id from workspaces w where w.name = :workspace) and p.name = :name and p.erased_at is null""")
_IN_FIRST = text(f"select id from projects where workspace_id = {FIRST} and name = :name and erased_at is null")


def locate(conn: Connection, name: str) -> int | None:
    """The number of the project of this name, also of one that was merged into another."""
    found = conn.scalar(_IN_FIRST, {"name": name})
    if found is None and "/" in name:
        workspace, _, project = name.partition("/")
        found = conn.scalar(_IN_WORKSPACE, {"workspace": workspace, "name": project})
    return None if found is None else int(found)
