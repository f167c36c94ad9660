"""The job engine: jobs a second beside a bare queue table, and how long small tenants wait beside a large one (G13)."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.report import Figure, Goal

from everkept.bootstrap import open_application
from everkept.config import Settings, load
from everkept.derive.tools import Tools
from everkept.domain.jobs import Done, JobPolicy, Outcome, Schedule
from everkept.ports.clock import SystemClock
from everkept.ports.faults import NoFaults
from everkept.store.connection import Connection
from everkept.store.jobs import schedule
from everkept.store.lanes import ensure_lane
from everkept.store.projects import ensure_project
from everkept.store.sqlite import choose_driver, open_file
from everkept.store.store import Store
from everkept.work.job import JobContext, JobKind
from everkept.work.maintenance import Maintenance
from everkept.work.runner import Runner

SLOTS = 4
LARGE = 2_000
SMALL = 20
RUN_S = 0.1


@dataclass(slots=True)
class _Runs:
    """A kind of job that sleeps, and when each run started."""

    run_s: float
    started: dict[str, float] = field(default_factory=dict)
    ended: int = 0
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Looked at each time a job starts or ends."""
        while not condition():
            await self.moved.wait()
            self.moved.clear()

    async def run(self, args: Mapping[str, Any], _ctx: JobContext) -> Outcome:
        self.started[args["name"]] = time.monotonic()
        self.moved.set()
        if self.run_s:
            await asyncio.sleep(self.run_s)
        self.ended += 1
        self.moved.set()
        return Done()

    @property
    def kind(self) -> JobKind[Any]:
        policy = JobPolicy(attempts_max=1, timeout_s=60, estimate_s=max(self.run_s, 0.001))
        return JobKind(name="bench", policy=policy, read_args=lambda args: args, run=self.run)


def measure(home: Path, *, quick: bool) -> Iterator[Figure]:
    jobs = 200 if quick else 600
    mine = asyncio.run(_rate(home / "jobs", jobs))
    peer = _bare_queue(home / "queue.db", jobs)
    yield Figure(
        name=f"{jobs} empty jobs, {SLOTS} slots",
        value=mine,
        unit="jobs/s",
        peer="bare queue, two commits a job",
        peer_value=peer,
    )
    yield from asyncio.run(_fairness(home / "fair"))


def _settings(home: Path) -> Settings:
    return load({"EVERKEPT_HOME": str(home), "EVERKEPT_WORK__SLOTS": str(SLOTS)}, home)


def _runner(store: Store, settings: Settings, runs: _Runs) -> Runner:
    clock = SystemClock()
    runner = Runner(
        store,
        {"bench": runs.kind},
        settings,
        Tools(model=None, words=None, embedder=None),
        owner="bench",
        clock=clock,
        faults=NoFaults(),
        pools={"local": None, "model": None, "embedder": None},
        maintenance=Maintenance(store, [], clock),
    )
    store.on_due = runner.notify
    return runner


def _enqueue(conn: Connection, project: int, names: list[str]) -> None:
    lane = ensure_lane(conn, project, 0)
    due = conn.now()
    schedule(
        conn,
        [
            Schedule(kind="bench", key=name, project=project, lane=lane, due_at_us=due, args=f'{{"name": "{name}"}}')
            for name in names
        ],
    )


async def _open(home: Path) -> tuple[Store, Settings]:
    settings = _settings(home)
    await (await open_application(settings, worker=False)).close()  # makes the home and the schema
    store = Store(home / "everkept.db")
    store.open()
    return store, settings


async def _rate(home: Path, jobs: int) -> float:
    """From the first look to the last finish: promote, claim, run and finish of each."""
    store, settings = await _open(home)
    runs = _Runs(0.0)
    for number in range(SMALL):
        project = await store.write(ensure_project, f"p{number}", bytes(32))
        await store.write(_enqueue, project.id, [f"{number}-{i}" for i in range(jobs // SMALL)])
    start = time.perf_counter()
    runner = _runner(store, settings, runs)
    working = asyncio.create_task(runner.run())
    await runs.until(lambda: runs.ended == jobs)
    runner.stop(60.0)
    await working  # the last ones are booked
    seconds = time.perf_counter() - start
    store.close()
    return jobs / seconds


def _bare_queue(file: Path, jobs: int) -> float:
    raw = open_file(choose_driver(), file)
    raw.execute("pragma wal_autocheckpoint = 1000")  # SQLite's default; Everkept's writer has its own
    raw.execute("create table queue(id integer primary key, state text not null default 'ready', args text)")
    raw.execute("begin")
    raw.executemany("insert into queue(args) values(?)", [(f'{{"name": "{i}"}}',) for i in range(jobs)])
    raw.execute("commit")
    start = time.perf_counter()
    while True:
        row = raw.execute(
            "update queue set state = 'leased'"
            " where id = (select min(id) from queue where state = 'ready') returning id"
        ).fetchall()
        if not row:
            break
        raw.execute("update queue set state = 'done' where id = ?", row[0])
    seconds = time.perf_counter() - start
    raw.close()
    return jobs / seconds


async def _fairness(home: Path) -> Iterator[Figure]:
    """Twenty tenants of one job each arrive while one with 2,000 slow jobs has had the worker to itself."""
    store, settings = await _open(home)
    runs = _Runs(RUN_S)
    large = await store.write(ensure_project, "large", bytes(32))
    for start in range(0, LARGE, 500):
        await store.write(_enqueue, large.id, [f"large-{i}" for i in range(start, start + 500)])
    small = [(await store.write(ensure_project, f"small-{i}", bytes(32))).id for i in range(SMALL)]
    runner = _runner(store, settings, runs)
    working = asyncio.create_task(runner.run())
    await runs.until(lambda: runs.ended >= 3 * SLOTS)
    names = [f"small-{i}" for i in range(SMALL)]
    for project, name in zip(small, names, strict=True):
        await store.write(_enqueue, project, [name])
    asked = time.monotonic()
    await runs.until(lambda: all(name in runs.started for name in names))
    runner.stop(5.0)
    await working
    store.close()
    waits = [max(0.0, runs.started[name] - asked) / RUN_S for name in names]
    bound = math.ceil(SMALL / SLOTS) + 1
    return iter(
        [
            Figure(
                name=f"longest wait of {SMALL} small tenants beside {LARGE:,} jobs",
                value=max(waits),
                unit="run times",
                peer=f"bound of G13: ⌈n/{SLOTS}⌉ + 1 with n = {SMALL}",
                peer_value=bound,
                goal=Goal(of="ratio", sense="most", bound=1.0),
            )
        ]
    )
