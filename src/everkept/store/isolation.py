"""Row-level security in PostgreSQL: a transaction sees and writes the rows of the projects that it reaches, no other.

Every statement names its project anyway; should one forget to, the database still gives away nothing of another. How
far a transaction reaches (`reach.py`) is said as it begins, for it alone, so that no pooler carries it to the next;
without a word it reaches nothing. The policies are forced: whoever owns the tables is bound too, unless as a superuser.

What is searched has none: it holds ids, lexemes and vectors and no text, and names its project in typed columns
(operators of full text and vectors may not be asked before a policy, which would take their indexes away). What it
finds is read under the policies.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from sqlalchemy import Table

from everkept.store.reach import Reach

OF_ALL: Final = frozenset({
    "counters", "pauses", "periodic", "providers", "transcripts", "workers",  # of the whole store
    "workspaces", "projects", "merges",  # names of projects, by which any of them is found
    "lane_groups", "lanes",  # whose turn it is, in numbers
    "vectors",  # what is searched
})  # fmt: skip
"""The tables that hold nothing that was said or made in a project, and have no policy."""
_PART_OF: Final = {"page_looks": ("page_id", "pages")}
"""What names the whole that it is a part of without a reference to it: table → (column, the whole)."""
_REACHED: Final = """(select nullif(current_setting('everkept.everything', true), '') = 'on')
  or {column} = any ((select string_to_array(nullif(current_setting('everkept.projects', true), ''), ','))::bigint[])"""


def projects_reached(reaches: Collection[Reach]) -> str:
    """A query for the ids: a project reaches what it was merged into, where work goes on that began in it."""
    ids = ", ".join(str(reach) for reach in sorted(reach for reach in reaches if isinstance(reach, int)))
    return f"select unnest(array[{ids}]::bigint[]) as id union select target_id from merges where source_id in ({ids})"


def reach_statement(reaches: Collection[Reach]) -> str:
    """Says how far the transaction that is open reaches."""
    if all(isinstance(reach, int) for reach in reaches):
        listed = f"(select string_agg(id::text, ',') from ({projects_reached(reaches)}) as reached)"
        return f"select set_config('everkept.projects', {listed}, true), set_config('everkept.everything', '', true)"
    return "select set_config('everkept.everything', 'on', true)"


def policy_statements() -> list[str]:
    """What turns it on in a new schema."""
    from everkept.store.tables import metadata

    statements = []
    for table in metadata.sorted_tables:
        if table.name not in OF_ALL:
            statements += _isolated(table.name, condition(table))
    found = "exists (select 1 from passages whose where whose.id = passage_text.id)"
    return statements + _isolated("passage_text", found)


def condition(table: Table) -> str:
    """Whether a row is of a project that is reached: its own, or that of what it is a part of."""
    if "project_id" in table.columns:
        return _REACHED.format(column="project_id")
    for column in table.columns:
        for key in column.foreign_keys:
            whole = key.column.table
            if "project_id" in whole.columns:
                of = f"whose.{key.column.name} = {table.name}.{column.name}"
                return f"exists (select 1 from {whole.name} whose where {of})"
    if table.name in _PART_OF:
        column_name, whole_name = _PART_OF[table.name]
        return f"exists (select 1 from {whole_name} whose where whose.id = {table.name}.{column_name})"
    raise LookupError(f"{table.name} is of no project: give it one, or name it in OF_ALL")


def _isolated(table: str, condition: str) -> list[str]:
    return [
        f"alter table {table} enable row level security",
        f"alter table {table} force row level security",
        f"create policy of_reached_projects on {table} using ({condition})",
    ]
