"""What replicas cost that have nothing to do: statements a minute, and whether each periodic task ran once for all.

Real `everkept worker` processes over one PostgreSQL, counted by pg_stat_statements.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from tests.bench.postgres_server import Server, postgres
from tests.bench.processes import ROOT
from tests.bench.report import Figure, Goal

SETTLE_S = 20.0
_CALLS = """
select coalesce(sum(calls), 0) from pg_stat_statements
where dbid = (select oid from pg_database where datname = current_database())"""
_WORKERS = "select count(*) from workers"
# The row of a task has its last start alone, so each start is written down.
_NOTE_STARTS = """
create table starts(name text not null, at timestamptz not null default clock_timestamp());
create function note_start() returns trigger language plpgsql as $$
begin insert into starts(name) values(new.name); return new; end $$;
create trigger note_start after update on periodic for each row
  when (new.last_start_at is distinct from old.last_start_at) execute function note_start();
grant insert on starts to public;
"""
_OFTEN = """
select coalesce(max(n * every_us / 1e6 / %s), 0) from (
  select name, count(*) as n from starts group by name) as s join periodic using (name) where n > 1"""


def measure(home: Path, *, quick: bool) -> Iterator[Figure]:
    watched_s = 30.0 if quick else 120.0
    with postgres() as server:
        per_minute, often = {}, {}
        for replicas in (1, 4) if quick else (1, 4, 16):
            per_minute[replicas], often[replicas] = _watch(server, home / str(replicas), replicas, watched_s)
    for replicas, statements in per_minute.items():
        yield Figure(
            name=f"{replicas} idle workers, statements a minute", value=statements, unit="statements/min",
            peer="1 idle worker", peer_value=per_minute[1],
        )  # fmt: skip
    for replicas, starts in often.items():
        yield Figure(
            name=f"{replicas} idle workers: starts of a periodic task in its interval, the most of any", value=starts,
            unit="starts", peer="one, and one at the edge", peer_value=1 + 5 / watched_s * 2,
            goal=Goal(of="ratio", sense="most", bound=1.0),
        )  # fmt: skip


def _watch(server: Server, home: Path, replicas: int, watched_s: float) -> tuple[float, float]:
    """(statements a minute, the most starts of any periodic task in its interval)."""
    url = server.new_memory()
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute(_NOTE_STARTS)
        with _workers(url, home, replicas):
            until_s = time.monotonic() + 300
            while _value(raw, _WORKERS) < replicas and time.monotonic() < until_s:
                time.sleep(0.5)
            time.sleep(SETTLE_S)
            raw.execute("truncate starts")
            before, start = _value(raw, _CALLS), time.monotonic()
            time.sleep(watched_s)
            took_s = time.monotonic() - start
            statements = _value(raw, _CALLS) - before
            often = _value(raw, _OFTEN % took_s)
    return statements * 60 / took_s, often


@contextmanager
def _workers(url: str, home: Path, replicas: int) -> Iterator[None]:
    keep = {k: v for k, v in os.environ.items() if not k.startswith("EVERKEPT_") and not k.endswith("_API_KEY")}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "everkept", "worker"], cwd=ROOT, stderr=subprocess.DEVNULL,
            env={**keep, "EVERKEPT_HOME": str(home / str(n)), "EVERKEPT_DATABASE_URL": url},
        )
        for n in range(replicas)
    ]  # fmt: skip
    try:
        yield
    finally:
        for worker in started:
            worker.terminate()
        for worker in started:
            try:
                worker.wait(60)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()


def _value(raw: psycopg.Connection[Any], sql: str) -> float:
    row = raw.execute(sql.encode()).fetchone()
    assert row is not None
    return float(row[0])
