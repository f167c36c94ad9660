"""pgvector's graphs (HNSW): one for each project with many vectors, made beside whoever reads and writes.

To put a vector into a graph takes milliseconds, a hundred times what it takes to write it, and it would be done while
the project is locked. So a graph is a partial index over what a project had when the graph was begun, made by
`create index concurrently`, and is replaced once much has come after it. Nothing rests on it but the time that a recall
takes. Whoever owns the tables makes it: `everkept db index`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from everkept.errors import Conflict
from everkept.store.nearest_postgres import GRAPH_BITS, SCANNED_MAX

_PREFIX: Final = "near_vectors_"
_MAKING: Final = 7_411_005
"""The advisory lock of whoever makes graphs, so that no two make the same; it ends with the connection."""
_LACKING: Final = f"""
select v.project_id, v.model, count(*), max(v.written) from vectors v
left join vector_graphs g on g.project_id = v.project_id and g.model = v.model
where v.signs is not null and length(v.signs) = {GRAPH_BITS} and v.written > coalesce(g.written_until, 0)
group by v.project_id, v.model having count(*) > %s order by v.project_id, v.model"""
_KEEP: Final = """
insert into vector_graphs(project_id, model, written_until, name) values(%s, %s, %s, %s)
on conflict (project_id, model) do update set written_until = excluded.written_until, name = excluded.name"""
_UNUSED: Final = f"""
select c.relname from pg_class c join pg_namespace s on s.oid = c.relnamespace
where c.relkind = 'i' and s.nspname = current_schema() and starts_with(c.relname, '{_PREFIX}')
  and c.relname not in (select name from vector_graphs)"""
_FORGET: Final = f"""
delete from vector_graphs g where not exists (
  select 1 from vectors v where v.project_id = g.project_id and v.model = g.model and v.signs is not null
  and length(v.signs) = {GRAPH_BITS})"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    project: int
    model: str
    vectors: int
    """That no graph held before."""


def make_graphs(raw: Any, lacking_max: int = SCANNED_MAX) -> Iterator[Graph]:
    """Make the graph of each project that has more vectors than `lacking_max` outside of one; each as it is done.

    `raw` is an owner's connection in autocommit, past any pooler. What a run that died has left is taken away. Raises
    Conflict where another run is at work, and the driver's errors.
    """
    # Not waited for: whoever waits has a snapshot, and the other run's `create index concurrently` waits for that.
    if not raw.execute("select pg_try_advisory_lock(%s)", (_MAKING,)).fetchone()[0]:
        raise Conflict("another `everkept db index` is at work on this database")
    try:
        raw.execute(_FORGET)
        _drop_unused(raw)
        for project, model, vectors, until in raw.execute(_LACKING, (lacking_max,)).fetchall():
            name = f"{_PREFIX}{project}_{until}"
            raw.execute(_making(name, project, model, until))
            raw.execute(_KEEP, (project, model, until, name))
            _drop_unused(raw)
            yield Graph(project=project, model=model, vectors=vectors)
    finally:
        raw.execute("select pg_advisory_unlock(%s)", (_MAKING,))


def _making(name: str, project: int, model: str, until: int) -> str:
    quoted = model.replace("'", "''")
    return (
        f"create index concurrently {name} on vectors using hnsw ((signs::bit({GRAPH_BITS})) bit_hamming_ops)"
        f" where project_id = {project} and model = '{quoted}' and written <= {until} and signs is not null"
        f" and length(signs) = {GRAPH_BITS}"
    )


def _drop_unused(raw: Any) -> None:
    for (name,) in raw.execute(_UNUSED).fetchall():
        raw.execute(f"drop index concurrently if exists {name}")
