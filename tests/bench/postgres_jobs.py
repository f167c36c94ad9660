"""Jobs on PostgreSQL: no-op jobs a second and the time until a killed worker's job runs again, beside peers.

Each peer is what its own documentation says, in an environment of its own (made once, in the cache), with 16 jobs at a
time, on the same server with its defaults: every commit is on the disk before it returns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from tests.bench.postgres_server import Server, postgres
from tests.bench.processes import ROOT
from tests.bench.report import Figure, Goal

from everkept.domain.jobs import Schedule
from everkept.ports.clock import SystemClock
from everkept.store.connection import Connection
from everkept.store.jobs import schedule
from everkept.store.lanes import ensure_lane
from everkept.store.postgres import PostgresDatabase
from everkept.store.projects import ensure_project
from everkept.store.store import Store

SLOTS = 16
PROJECTS = 20
WAIT_S = 300.0
PEERS = Path(__file__).parent / "peers"
_RUNS = "create table runs(at timestamptz not null)"


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A queue under measurement: how to fill it and to begin a worker, and how many jobs of it are left."""

    name: str
    packages: tuple[str, ...]
    """Pinned, from PyPI; of ours none."""
    left: str
    """SQL."""
    fenced: bool
    """Whether a worker that lost its job to another one can no longer end it."""


OURS = System(name="everkept", packages=(), left="select count(*) from jobs where state <> 'done'", fenced=True)
OTHERS = (
    System(
        name="procrastinate", packages=("procrastinate==3.10.0", "psycopg[binary]==3.3.9"), fenced=False,
        left="select count(*) from procrastinate_jobs where status in ('todo', 'doing') and task_name = 'nothing'",
    ),
    System(
        name="pgqueuer", packages=("pgqueuer==1.6.0", "asyncpg==0.32.0", "psycopg[binary]==3.3.9"), fenced=False,
        left="select count(*) from pgqueuer",
    ),
    System(
        name="dbos", packages=("dbos==3.4.0",), fenced=True,
        left="select count(*) from dbos.workflow_status where status in ('ENQUEUED', 'PENDING')",
    ),
)  # fmt: skip


class NotInstalled(Exception):
    """A peer that could not be had from PyPI."""


@dataclass(slots=True)
class Queue:
    """A system over a database of its own."""

    system: System
    url: str
    python: str
    home: Path
    """Of our workers, as those of one machine share it."""
    workers: list[subprocess.Popen[str]] = field(default_factory=list)

    def prepare(self) -> None:
        if self.system is OURS:
            PostgresDatabase(self.url).prepare(SystemClock())
        else:
            self._call("prepare")
        with psycopg.connect(self.url, autocommit=True) as raw:
            raw.execute(_RUNS)

    def enqueue(self, jobs: int) -> None:
        if self.system is OURS:
            _write(self.url, jobs, hold=False)
        else:
            self._call("enqueue", str(jobs))

    def hold(self) -> None:
        """A job that stays, the first time that it is run."""
        if self.system is OURS:
            _write(self.url, 1, hold=True)
        else:
            self._call("hold")

    def begin_worker(self, name: str, home: str = "") -> subprocess.Popen[str]:
        """`name` is what the peer knows a process by that is started again; `home` is one of several, of ours."""
        command = (
            [sys.executable, "-m", "tests.bench.postgres_worker", self.url, str(SLOTS), str(self.home / home)]
            if self.system is OURS
            else [*self._script(), "work", str(SLOTS)]
        )
        worker = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**self._environment(), "BENCH_WORKER": name},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.workers.append(worker)
        assert worker.stdout is not None
        if worker.stdout.readline().strip() != "ready":
            raise RuntimeError(f"a worker of {self.system.name} ended before it was ready")
        return worker

    def end_workers(self) -> list[dict[str, Any]]:
        """What each ran."""
        for worker in self.workers:
            worker.terminate()
        said = [worker.communicate(timeout=60)[0] for worker in self.workers]
        self.workers.clear()
        return [json.loads(lines.strip().splitlines()[-1]) for lines in said]

    def kill_workers(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.communicate()
        self.workers.clear()

    def _call(self, *arguments: str) -> None:
        subprocess.run([*self._script(), *arguments], env=self._environment(), check=True, capture_output=True)

    def _script(self) -> list[str]:
        return [self.python, str(PEERS / f"{self.system.name}_jobs.py")]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "BENCH_URL": self.url}


def measure(home: Path, *, quick: bool) -> Iterator[Figure]:
    del home  # the server's data lie where its own user can reach them
    jobs = 300 if quick else 2_000
    workers = (1, 2) if quick else (1, 2, 4)
    with postgres() as server:
        mine = {n: _rate(server, OURS, jobs, n) for n in workers}
        yield from _scaling(mine, jobs)
        best = max(mine.values())
        for peer in OTHERS:
            try:
                rates = {n: _rate(server, peer, jobs, n) for n in workers}
            except NotInstalled as error:
                print(f"  {peer.name} is left out: {error}", file=sys.stderr)
                continue
            theirs = max(rates, key=lambda n: rates[n])
            yield Figure(
                name=f"{jobs} no-op jobs, the best number of workers", value=best, unit="jobs/s",
                peer=f"{peer.name}, {'fenced' if peer.fenced else 'not fenced'}, {theirs} workers",
                peer_value=rates[theirs], goal=Goal(of="ratio", sense="least", bound=1.0) if peer.fenced else None,
            )  # fmt: skip
        if not quick:
            yield from _resuming(server)


def _scaling(rates: dict[int, float], jobs: int) -> Iterator[Figure]:
    for workers, rate in rates.items():
        yield Figure(
            name=f"{jobs} no-op jobs, {workers} worker processes", value=rate, unit="jobs/s", peer="1 worker process",
            peer_value=rates[1],
        )  # fmt: skip


def _rate(server: Server, system: System, jobs: int, workers: int) -> float:
    """From the first job's beginning to the last one's booking."""
    with _queue(server, system) as queue, psycopg.connect(queue.url, autocommit=True) as raw:
        for number in range(workers):
            queue.begin_worker(str(number))
        queue.enqueue(jobs)
        _wait(raw, system.left, 0)
        ended_s = time.monotonic()
        ran = [one for one in queue.end_workers() if one["jobs"]]
    assert sum(one["jobs"] for one in ran) == jobs, f"{system.name} ran {ran}"
    return jobs / (ended_s - min(one["first_s"] for one in ran))


def _resuming(server: Server) -> Iterator[Figure]:
    mine = _resume_s(server, OURS)
    alone = _resume_s(server, OURS, shared=False)
    yield Figure(
        name="kill -9 of a worker, each with a home of its own, until its job runs again", value=alone, unit="s",
        peer="the same, one home", peer_value=mine,
    )  # fmt: skip
    for peer in OTHERS:
        try:
            theirs = _resume_s(server, peer)
        except NotInstalled:
            continue
        yield Figure(
            name="kill -9 of a worker, which is started again, until its job runs again", value=mine, unit="s",
            peer=f"{peer.name}, its defaults" + ("" if theirs < WAIT_S else ": never"), peer_value=theirs,
        )  # fmt: skip


def _resume_s(server: Server, system: System, *, shared: bool = True) -> float:
    """At its defaults; `WAIT_S` where it does not come back. Not `shared`: each worker as on a machine of its own."""
    runs = "select count(*) from runs"
    with _queue(server, system) as queue, psycopg.connect(queue.url, autocommit=True) as raw:
        first = queue.begin_worker("first", "" if shared else "a")
        queue.hold()
        _wait(raw, runs, 1)
        queue.begin_worker("second", "" if shared else "b")
        time.sleep(1.0)  # it has looked for work once
        first.kill()
        killed_s = time.monotonic()
        queue.begin_worker("first", "" if shared else "c")  # as whoever supervises it does
        try:
            _wait(raw, runs, 2)
        except TimeoutError:
            return WAIT_S
        finally:
            queue.kill_workers()
        return time.monotonic() - killed_s


@contextmanager
def _queue(server: Server, system: System) -> Iterator[Queue]:
    python = sys.executable if system is OURS else _python_of(system)
    with tempfile.TemporaryDirectory(prefix="everkept-bench-") as home:
        queue = Queue(system, server.new_database(), python, Path(home))
        queue.prepare()
        try:
            yield queue
        finally:
            queue.kill_workers()


def _wait(raw: psycopg.Connection[Any], sql: str, wanted: int) -> None:
    """Raises TimeoutError."""
    until_s = time.monotonic() + WAIT_S
    while _value(raw, sql) != wanted:
        if time.monotonic() > until_s:
            raise TimeoutError(f"{sql}: not {wanted} within {WAIT_S:.0f} s")
        time.sleep(0.05)


def _value(raw: psycopg.Connection[Any], sql: str) -> int:
    row = raw.execute(sql.encode()).fetchone()
    assert row is not None
    return int(row[0])


def _python_of(system: System) -> str:
    """The peer's own environment, made the first time. Raises NotInstalled."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everkept-bench"
    place = cache / "-".join(package.replace("==", "-").replace("[binary]", "") for package in system.packages)
    python = place / "bin" / "python"
    if not (place / "made").exists():
        _install(place, system.packages)
        (place / "made").touch()
    return str(python)


def _install(place: Path, packages: Sequence[str]) -> None:
    """Raises NotInstalled."""
    try:
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True, capture_output=True)
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *packages], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise NotInstalled(str(error.stderr or error).strip().splitlines()[-1]) from error


def _write(url: str, jobs: int, *, hold: bool) -> None:
    store = Store(PostgresDatabase(url))
    store.open()
    try:
        store.write_now(_enqueue, jobs, hold)
    finally:
        store.close()


def _enqueue(conn: Connection, jobs: int, hold: bool) -> None:
    """Of twenty projects in turn, all due now."""
    projects = [ensure_project(conn, f"p{n}", bytes(32)).id for n in range(PROJECTS)]
    lanes = [ensure_lane(conn, project, 0) for project in projects]
    now, args = conn.now(), json.dumps({"hold": hold})
    schedule(conn, [
        Schedule(
            kind="bench", key=str(n), project=projects[n % PROJECTS], lane=lanes[n % PROJECTS], due_at_us=now, args=args
        )
        for n in range(jobs)
    ])  # fmt: skip
