"""A worker of Everkept as a process of its own, with one kind of job that does nothing but say that it ran.

    python -m tests.bench.postgres_worker URL SLOTS

It prints `ready` once it looks for work, and on SIGTERM one line of JSON: `Ran`. A job with `"hold": true` in its
arguments writes its start into the table `runs` and stays, the first time that it is run.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import text

from everkept.config import load
from everkept.derive.kinds import periodic_tasks
from everkept.derive.tools import Tools
from everkept.domain.jobs import Done, JobPolicy, Outcome
from everkept.ports.clock import SystemClock
from everkept.ports.faults import NoFaults
from everkept.store.connection import Connection
from everkept.store.postgres import PostgresDatabase
from everkept.store.store import Store
from everkept.work.job import JobContext, JobKind
from everkept.work.maintenance import Maintenance
from everkept.work.runner import Runner
from everkept.work.worker import Worker

KIND = "bench"
HELD_S = 500.0


@dataclass(slots=True)
class Ran:
    """What this process ran, by the clock that all processes of the machine share."""

    jobs: int = 0
    first_s: float = 0.0


def make_worker(url: str, slots: int, home: Path, kind: JobKind[Any]) -> tuple[Store, Worker]:
    settings = load({"EVERKEPT_HOME": str(home), "EVERKEPT_WORK__SLOTS": str(slots)}, home)
    clock = SystemClock()
    store = Store(PostgresDatabase(url))
    store.open()
    runner = Runner(
        store,
        {KIND: kind},
        settings,
        Tools(model=None, words=None, embedder=None),
        owner=f"bench-{os.getpid()}",
        clock=clock,
        faults=NoFaults(),
        pools={"local": None, "model": None, "embedder": None},
        maintenance=Maintenance(store, periodic_tasks(settings), clock),
    )
    return store, Worker(runner, settings, embedder_label="")


_RUN = text("insert into runs(at) values(clock_timestamp()) returning (select count(*) from runs)")


def _note_run(conn: Connection) -> int:
    """How often it was begun before."""
    return int(conn.scalar(_RUN))


def job_kind(ran: Ran, store: list[Store]) -> JobKind[Any]:
    async def run(args: Mapping[str, Any], _ctx: JobContext) -> Outcome:
        if not ran.jobs:
            ran.first_s = time.monotonic()
        ran.jobs += 1
        if args.get("hold") and await store[0].write(_note_run) == 0:
            await asyncio.sleep(HELD_S)
        return Done()

    policy = JobPolicy(attempts_max=1, timeout_s=600, estimate_s=0.001)
    return JobKind(name=KIND, policy=policy, read_args=lambda args: args, run=run)


def main() -> None:
    url, slots, home = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    ran, stores = Ran(), list[Store]()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    store, worker = make_worker(url, slots, home, job_kind(ran, stores))
    stores.append(store)
    worker.start()
    print("ready", flush=True)
    ended.wait()
    worker.stop(10.0)
    store.close()
    print(json.dumps(asdict(ran)), flush=True)


if __name__ == "__main__":
    main()
