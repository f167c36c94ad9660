"""Look at the plans that PostgreSQL makes where there is much: which indexes, how many pages.

    python -m tests.bench.postgres_plans [--done N] [--waiting N]

It runs the store's own functions over a database with very many jobs and passages, and asks of each statement, as it is
run with its values, `explain (analyze, buffers)`. A statement that reads more than `PAGES` and `PAGES_A_ROW` for each
row, or walks through a large table, is named, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from tests.postgres import new_database, ordinary

from everkept.domain.ids import ProjectId
from everkept.domain.jobs import Done, Lease
from everkept.domain.scope import Scope
from everkept.ports.clock import Clock, SystemClock
from everkept.store.claims import ClaimRequest, claim
from everkept.store.connection import Connection
from everkept.store.jobs import promote_due
from everkept.store.leases import expire_leases, finish, renew_leases
from everkept.store.postgres import PostgresDatabase
from everkept.store.reach import Across, Reach
from everkept.store.search import document_frequencies, find_postings, load_hits, load_terms, shown_passages

PROJECTS: Final = 10_000
LANES: Final = 2
"""Of each project."""
LARGE: Final = 1
"""The project that has as many passages as all others together."""
PAGES: Final = 150
PAGES_A_ROW: Final = 60
"""A row that is written is written into each index of its table."""
LARGE_TABLES: Final = frozenset({
    "jobs", "lanes", "lane_groups", "passages", "passage_index", "passage_text", "passage_terms", "events", "streams",
})  # fmt: skip
_NOW = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"

_PROJECTS = f"""
insert into projects(workspace_id, name, settings, secret, created_at)
select 1, 'project-' || n, '{{}}', '\\x00', {_NOW} from generate_series(1, {PROJECTS}) n;
insert into lane_groups(project_id, served) select id, id from projects;
insert into lanes(group_id, subject_id, served)
select g.id, s, s from lane_groups g, generate_series(0, {LANES - 1}) s;
"""
# Of what waits a third each is due, due later and ready; of what is ready a third has a serial key.
_JOBS = f"""
insert into jobs(project_id, kind, key, lane_id, uses, serial_key, args, state, due_at, created_at, finished_at)
select g.project_id, 'summarise', n::text, l.id, 'local', case when n %% 9 = 0 then 'key:' || n end, '{{}}', s.state,
  {_NOW} + case when s.state = 'waiting' and n %% 2 = 0 then 3600000000 + n else n - 60000000 end, {_NOW},
  case when s.state = 'done' then {_NOW} - n end
from generate_series(%(first)s::bigint, %(last)s::bigint) n
join lanes l on l.id = 1 + n %% {PROJECTS * LANES} join lane_groups g on g.id = l.group_id
cross join lateral (
  select case when n <= %(done)s then 'done' when n %% 3 = 0 then 'ready' else 'waiting' end) s(state);
"""
_COUNTS = """
update lanes set ready_local = ready.n
from (select lane_id, count(*) as n from jobs where state = 'ready' group by lane_id) as ready where id = lane_id;
update lane_groups set ready_local = ready.n
from (select group_id, sum(ready_local) as n from lanes group by group_id) as ready where id = group_id and n > 0;
"""
# A passage has one common word, one of a hundred and one of its own; half of all lie in one project.
_PASSAGES = f"""
insert into subjects(project_id, name, created_at) select id, 'ana', {_NOW} from projects;
create temporary table made as
select n as id, case when n % 2 = 0 then {LARGE} else 2 + n / 2 % {PROJECTS - 1} end as project,
  'common m' || n % 100 || ' r' || n as own from generate_series(1, %(passages)s) n;
insert into passages(id, project_id, subject_id, kind, traits, embedded)
select id, project, project, 'fact', 0, 'none' from made;
insert into passage_text(id, speaker, own, said, before) select id, '', own, '', '' from made;
insert into passage_index(passage_id, project_id, subject_id, stream_id, kind, lexemes)
select id, project, project, null, 'fact', array_to_tsvector(
  array['i:p' || project, 'i:s' || project, 'i:kfact'] || array(select 'p:' || w from string_to_table(own, ' ') w))
from made;
insert into passage_terms(term, passages)
select w, count(*) from made, string_to_table(own, ' ') w group by w;
insert into passage_totals(id, passages, terms) values(1, %(passages)s, 3 * %(passages)s);
"""


@dataclass(slots=True, kw_only=True)
class Plan:
    """What one statement did, the worst of its runs by pages."""

    function: str
    sql: str
    pages: int
    """Read or found in memory."""
    rows: int
    """Returned, written, or put together into one."""
    walked: frozenset[str]
    """Large tables of which every row was looked at."""

    @property
    def allowed(self) -> int:
        return PAGES + PAGES_A_ROW * self.rows

    @property
    def fault(self) -> str | None:
        if self.walked:
            return f"walks through {', '.join(sorted(self.walked))}"
        return f"reads {self.pages:,} pages for {self.rows} rows" if self.pages > self.allowed else None


@dataclass(slots=True)
class Explained:
    """A driver's connection that explains each statement before it runs it."""

    raw: psycopg.Connection[Any]
    function: str = ""
    plans: dict[tuple[str, str], Plan] = field(default_factory=dict)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        if sql.lstrip(" \n(").startswith(("select", "with", "insert", "update", "delete")):
            self._explain(sql, values)
        return self.raw.execute(sql, values or None)

    def cursor(self) -> Explained:
        return self

    def pipeline(self) -> AbstractContextManager[None]:
        """Each statement is waited for: it is explained first."""
        return nullcontext()

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            self._explain(sql, rows[0])
            self.raw.cursor().executemany(sql, rows)

    def _explain(self, sql: str, values: Sequence[Any]) -> None:
        self.raw.execute("savepoint explained")
        row = self.raw.execute(f"explain (analyze, buffers, timing off, format json) {sql}", values or None).fetchone()
        self.raw.execute("rollback to explained")
        assert row is not None
        root = row[0][0]["Plan"]
        nodes = list(_nodes(root))
        plan = Plan(
            function=self.function, sql=" ".join(sql.split()),
            pages=root["Shared Hit Blocks"] + root["Shared Read Blocks"],
            rows=_rows(root),
            walked=frozenset(
                node["Relation Name"] for node in nodes
                if node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE_TABLES and node["Actual Loops"]
            ),
        )  # fmt: skip
        key = (self.function, plan.sql)
        if key not in self.plans or self.plans[key].pages - self.plans[key].allowed < plan.pages - plan.allowed:
            self.plans[key] = plan


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


def _rows(plan: dict[str, Any]) -> int:
    """What it returns or writes, or puts together into one row."""
    rows = int(plan["Actual Rows"] * plan["Actual Loops"])
    through = plan["Node Type"] in ("Aggregate", "ModifyTable", "Result")
    return max([rows, *map(_rows, plan.get("Plans", ()))]) if through else rows


def load(url: str, *, done: int, waiting: int, passages: int) -> None:
    """Into a database with the schema and nothing else; and the planner is told of it."""
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("set session_replication_role = replica")  # foreign keys are not looked up for each row
        raw.execute("set synchronous_commit = off")
        raw.execute(_PROJECTS)
        last = done + waiting
        for first in range(1, last + 1, 100_000):
            raw.execute(_JOBS, {"first": first, "last": min(last, first + 99_999), "done": done})
        raw.execute(_COUNTS)
        for statement in filter(str.strip, _PASSAGES.split(";")):
            raw.execute(statement.replace("%(passages)s", str(passages)).encode())
        raw.execute("vacuum analyze")


Run = Callable[..., Any]
"""run(reach, function, *args): in a transaction of its own, each statement explained."""


def explain(url: str, clock: Clock, work: Callable[[Run], None], *, small: bool = False) -> list[Plan]:
    """Of every statement of the work, as a role that the policies bind.

    Where tables are `small` the planner walks through one although there is an index: then it is told not to.
    """
    database = PostgresDatabase(ordinary(url))
    with database.connect(read_only=False) as raw:
        explained = Explained(raw)
        conn = Connection(explained, database.dialect, clock)
        transactions = database.transactions()
        if small:
            raw.execute("set enable_seqscan = off")
        conn.shares = transactions.share

        def run(reach: Reach, function: Callable[..., Any], *args: Any) -> Any:
            explained.function = function.__name__
            transactions.begin(raw, {reach})
            result = function(conn, *args)
            raw.execute("commit")
            return result

        work(run)
        return list(explained.plans.values())


def everything(run: Run) -> None:
    """A worker's round, and a recall's candidates."""
    _jobs(run)
    _recall(run)


def _jobs(run: Run) -> None:
    run(Across.QUEUE, promote_due, 200)
    request = ClaimRequest(
        owner="bench", free=10, slots=16, lease_s=600.0, uses={"local": 10, "model": 10}, probes=frozenset({"model"}),
        idle=True, estimates_s={},
    )  # fmt: skip
    leases: list[Lease] = run(Across.QUEUE, claim, request).leases
    assert len(leases) == request.free
    run(Across.LEASES, renew_leases, "bench", 16, 600.0)
    run(Across.QUEUE, expire_leases, 5, 100, 60.0)
    for lease in leases:
        run(lease.project, finish, lease, Done(), 0.1)


def _recall(run: Run) -> None:
    for project in (LARGE, LARGE + 1):
        scope = Scope(project=ProjectId(project))
        run(project, document_frequencies, ["common", "m1", "r77"])
        for word in ("m1", "r2", "nowhere"):
            run(project, find_postings, scope, word, ("fact",))
        found = run(project, find_postings, scope, "common", ("fact",))
        ids = [int(n) for _, some in found for n in some.split(",")][:100]
        assert ids
        run(project, load_hits, scope, ids)
        run(project, shown_passages, scope, ids)
        run(project, load_terms, ids)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.postgres_plans", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--done", type=int, default=1_000_000, metavar="N", help="jobs that have ended")
    parser.add_argument("--waiting", type=int, default=100_000, metavar="N", help="jobs that wait or may be claimed")
    parser.add_argument("--passages", type=int, default=200_000, metavar="N", help="half of them in one project")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server goes with it
    url = new_database()
    PostgresDatabase(url).prepare(SystemClock())
    start = time.perf_counter()
    load(url, done=given.done, waiting=given.waiting, passages=given.passages)
    print(f"loaded in {time.perf_counter() - start:.0f} s")
    plans = explain(url, SystemClock(), everything)
    for plan in sorted(plans, key=lambda plan: -plan.pages):
        print(f"{plan.pages:7,} pages {plan.rows:6,} rows  {plan.function}: {plan.sql[:120]}")
    faults = [f"{plan.function}: {plan.fault}: {plan.sql}" for plan in plans if plan.fault]
    sys.exit("\n".join(faults) or None)


if __name__ == "__main__":
    main()
