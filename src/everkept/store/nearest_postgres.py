"""The nearest vectors, found by PostgreSQL: all of a scope looked through, or pgvector's graph of a large project.

A graph holds the project's vectors up to a number (`written`), and what came after is looked through; who makes them,
and why no write waits for one: `vector_graphs.py`. Without one everything is looked through, which finds the same.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import text

from everkept.store.connection import Connection, Row

SCANNED_MAX: Final = 20_000
"""A scope of up to so many vectors is looked through even where a graph holds it: that takes less, and misses none."""
GRAPH_BITS: Final = 256
"""Vectors of another length are always looked through."""

_FIND_GRAPH = text("select written_until from vector_graphs where project_id = :project and model = :model")
_COUNT = text("""
select count(*) from (
  select 1 from vectors where subject_id = :subject and model = :model and project_id = :project and signs is not null
  limit :limit) counted""")
# By a function and not by the operator that graphs are made for: nothing but looking through all of them answers it.
_LOOK_THROUGH = text("""
select n.passage_id, v.around from (
  select w.passage_id from vectors w
  where w.project_id = :project and w.model = :model and w.written > :after and w.signs is not null
    and length(w.signs) = :bits and (:subject is null or w.subject_id = :subject)
    and not exists (select 1 from passages p where p.id = w.passage_id and p.hidden)
  order by hamming_distance(w.signs, cast(:signs as bit varying)), w.passage_id limit :limit) n
join vectors v on v.passage_id = n.passage_id and v.model = :model""")
_FOLLOW_GRAPH = text(f"""
select n.passage_id, v.around from (
  select w.passage_id from vectors w
  where w.project_id = :project and w.model = :model and w.written <= :until and w.signs is not null
    and length(w.signs) = {GRAPH_BITS} and (:subject is null or w.subject_id = :subject)
  order by w.signs::bit({GRAPH_BITS}) <~> cast(:signs as bit({GRAPH_BITS})) limit :limit) n
join vectors v on v.passage_id = n.passage_id and v.model = :model
where not exists (select 1 from passages p where p.id = n.passage_id and p.hidden)""")
# The order is made afterwards anyhow, and whoever asks for strict order is given fewer of the nearest.
_SEARCH = text(
    "select set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', '400', true)"
)


class Wanted(NamedTuple):
    """Vectors of one project and model, of one subject or any, that are nearest to `signs`: 0s and 1s, one a bit."""

    project: int
    model: str
    subject: int | None
    signs: str
    limit: int


def find_nearest(conn: Connection, wanted: Wanted) -> list[Row]:
    """(passage, around) of the nearest by Hamming distance that are not hidden, in no order.

    `limit` of them or, from a graph and from what came after it, up to as many of each.
    """
    until = _graph_for(conn, wanted)
    if until:
        conn.rows(_SEARCH)
        found = conn.rows(_FOLLOW_GRAPH, {**wanted._asdict(), "until": until})
        if len(found) >= wanted.limit:
            return found + _look_through(conn, wanted, after=until)
    return _look_through(conn, wanted, after=0)


def _look_through(conn: Connection, wanted: Wanted, *, after: int) -> list[Row]:
    return conn.rows(_LOOK_THROUGH, {**wanted._asdict(), "after": after, "bits": len(wanted.signs)})


def _graph_for(conn: Connection, wanted: Wanted) -> int:
    """Up to which number a graph is to be followed; 0 where all of the scope is to be looked through."""
    if len(wanted.signs) != GRAPH_BITS:
        return 0
    until = int(conn.scalar(_FIND_GRAPH, {"project": wanted.project, "model": wanted.model}) or 0)
    if until and wanted.subject is not None:
        counted = conn.scalar(_COUNT, {**wanted._asdict(), "limit": SCANNED_MAX + 1})
        return until if counted > SCANNED_MAX else 0
    return until
