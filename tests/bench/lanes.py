"""Simulate lanes: what a claim costs, and how long a tenant waits, with very many tenants in one store.

    python -m tests.bench.lanes [--tenants N] [--active N] [--claims N] [--postgres]

The statements are those of the engine over a real store; the workers are not there, and their time is a clock that the
simulation moves: every job takes one second of it. Times are of this thread's processor on SQLite; on PostgreSQL, where
the work is done in another process, they are of the clock and tell the load of the machine, too. On SQLite 100,000
tenants take half a minute, on PostgreSQL 20,000 take five.
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from sqlalchemy import text
from tests.bench.machine import describe_machine
from tests.bench.processes import temporary_home
from tests.bench.report import Figure, Goal, print_section

from everkept.domain.jobs import Done, Lease, Schedule
from everkept.ports.clock import VirtualClock
from everkept.store.claims import ClaimRequest, claim
from everkept.store.connection import Connection
from everkept.store.database import Database
from everkept.store.jobs import promote_due, schedule
from everkept.store.leases import finish
from everkept.store.store import Store

SLOTS = 16
"""Of all workers together."""
RUN_S = 1.0
KIND = "bench"
ROUNDS_ALONE = 3
"""For so long the large tenant has the workers to itself."""
FEW = 100
"""Tenants of the store that stands beside."""
PER_COMMIT = 200
"""As many jobs as a worker makes ready at a time."""

_PROJECTS = text(
    "insert into projects(workspace_id, name, settings, secret, created_at) values(1, :name, '{}', :secret, :now)"
)
_GROUPS = text("insert into lane_groups(project_id) select id from projects order by id")
_LANES = text("insert into lanes(group_id, subject_id) select id, 0 from lane_groups order by id")
_TENANTS = text("select g.project_id, l.id from lanes l join lane_groups g on g.id = l.group_id order by l.id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A project with one lane."""

    project: int
    lane: int


@dataclass(slots=True)
class Simulation:
    """One store, and as many slots as there are workers' hands."""

    store: Store
    clock: VirtualClock
    timer: Callable[[], int]
    tenants: list[Tenant]
    claims_ms: list[float] = field(default_factory=list)
    finishes_ms: list[float] = field(default_factory=list)
    promotes_ms: list[float] = field(default_factory=list)
    """Of each job that was made ready."""
    waits_s: list[float] = field(default_factory=list)
    """Of each job: since its lane could have begun it, which is when it was ready and the one before it had begun."""
    _free_since: dict[int, float] = field(default_factory=dict)
    _held: list[Lease] = field(default_factory=list)
    _jobs: int = 0

    def enqueue(self, tenants: list[Tenant], each: int) -> None:
        """`each` jobs for each, and all of them made ready."""
        self._free_since |= dict.fromkeys((t.lane for t in tenants), self.clock.monotonic_s())
        wishes = [self._wish(tenant) for _ in range(each) for tenant in tenants]
        for start in range(0, len(wishes), PER_COMMIT):
            self.store.write_now(schedule, wishes[start : start + PER_COMMIT])
        while self.store.write_now(self._promote):
            pass

    def _wish(self, tenant: Tenant) -> Schedule:
        self._jobs += 1
        now = self.clock.now_us()
        return Schedule(
            kind=KIND, key=str(self._jobs), project=tenant.project, lane=tenant.lane, due_at_us=now, args="{}"
        )

    def _promote(self, conn: Connection) -> int:
        begun = self.timer()
        promoted, _ = promote_due(conn, PER_COMMIT)
        if promoted:
            self.promotes_ms.append((self.timer() - begun) / 1e6 / promoted)
        return promoted

    def turn(self) -> list[Lease]:
        """Every slot's job ends, and each slot takes the next one; what was begun."""
        began = self.store.write_now(self._turn)
        now = self.clock.monotonic_s()
        for lease in began:
            self.waits_s.append(now - self._free_since[lease.lane])
            self._free_since[lease.lane] = now
        self.clock.advance(RUN_S)
        return list(began)

    def _turn(self, conn: Connection) -> list[Lease]:
        for lease in self._held:
            begun = self.timer()
            finish(conn, lease, Done(), RUN_S)
            self.finishes_ms.append((self.timer() - begun) / 1e6)
        self._held = [lease for _ in range(SLOTS) for lease in self._claim(conn)]
        return self._held

    def _claim(self, conn: Connection) -> list[Lease]:
        request = ClaimRequest(
            owner="bench", free=1, slots=SLOTS, lease_s=600.0, uses={"local": 1}, idle=False, estimates_s={KIND: RUN_S}
        )
        begun = self.timer()
        leases = claim(conn, request).leases
        if leases:
            self.claims_ms.append((self.timer() - begun) / 1e6)
        return leases


def simulate(store: Store, clock: VirtualClock, tenants: int, timer: Callable[[], int]) -> Simulation:
    """Over a store without projects, whose clock is `clock`."""
    return Simulation(store, clock, timer, store.write_now(_make_tenants, tenants))


def _open(place: Path | Database, tenants: int, timer: Callable[[], int]) -> Simulation:
    clock = VirtualClock()
    store = Store(place, clock=clock, threads=False)
    store.open()
    return simulate(store, clock, tenants, timer)


def _make_tenants(conn: Connection, tenants: int) -> list[Tenant]:
    now = conn.now()
    conn.many(_PROJECTS, ({"name": f"tenant-{n}", "secret": bytes(32), "now": now} for n in range(tenants)))
    conn.run(_GROUPS)
    conn.run(_LANES)
    return [Tenant(project=project, lane=lane) for project, lane in conn.rows(_TENANTS)]


def wait_of_the_active(simulation: Simulation, active: int) -> float:
    """In run times, the longest that anybody waits for a turn; worked to the end.

    One tenant with very many jobs has had all workers to itself; then `active` others come, with two jobs each.
    """
    large, *small = simulation.tenants[: active + 1]
    simulation.enqueue([large], SLOTS * 10)
    for _ in range(ROUNDS_ALONE):
        simulation.turn()
    simulation.waits_s.clear()
    simulation.enqueue(small, 2)
    while simulation.turn():
        pass
    assert len(simulation.waits_s) >= 2 * active
    return max(simulation.waits_s) / RUN_S


def turns_while_all_wait(simulation: Simulation, claims: int) -> float:
    """Every tenant waits with one job, and the first with 100: the most turns that one had among the first `claims`.

    More than 1 was another's turn.
    """
    simulation.enqueue(simulation.tenants[:1], 99)
    simulation.enqueue(simulation.tenants, 1)
    simulation.claims_ms.clear()
    simulation.finishes_ms.clear()
    began: dict[int, int] = {}
    while sum(began.values()) < claims:
        for lease in simulation.turn():
            began[lease.lane] = began.get(lease.lane, 0) + 1
    return max(began.values())


def measure(many: Simulation, few: Simulation, *, active: int, claims: int) -> Iterator[Figure]:
    bound = math.ceil(active / SLOTS) + 1
    yield Figure(
        name=f"longest wait, {active:,} of {len(many.tenants):,} tenants active",
        value=wait_of_the_active(many, active),
        unit="run times", peer=f"bound of G13: ⌈n/{SLOTS}⌉ + 1 with n = {active:,}", peer_value=bound,
        goal=Goal(of="ratio", sense="most", bound=1.0),
    )  # fmt: skip
    yield Figure(
        name=f"turns of the one with 100 jobs while all {len(many.tenants):,} wait",
        value=turns_while_all_wait(many, min(claims, len(many.tenants) - SLOTS)), unit="turns", peer="one each",
        peer_value=1, goal=Goal(of="value", sense="most", bound=1),
    )  # fmt: skip
    while len(few.claims_ms) < claims:
        few.enqueue(few.tenants, 10)
        while few.turn():
            pass
    yield from _costs(many, few)


def _costs(many: Simulation, few: Simulation) -> Iterator[Figure]:
    peer = f"{len(few.tenants):,} tenants"
    for name, of in (("a claim", "claims_ms"), ("a finish", "finishes_ms"), ("making a job ready", "promotes_ms")):
        for label, take in (("p50", median), ("p95", _p95)):
            here, there = take(getattr(many, of)), take(getattr(few, of))
            yield Figure(
                name=f"{name}, {len(many.tenants):,} tenants, {label}", value=here, unit="ms", peer=peer,
                peer_value=there,
            )  # fmt: skip


def _p95(taken: list[float]) -> float:
    return quantiles(taken, n=20)[-1]


def run(home: Path, *, tenants: int, active: int, claims: int, postgres: bool) -> list[Figure]:
    timer = time.perf_counter_ns if postgres else time.thread_time_ns
    many = _open(_place(home / "many.db", postgres=postgres), tenants, timer)
    few = _open(_place(home / "few.db", postgres=postgres), FEW, timer)
    try:
        return list(measure(many, few, active=active, claims=claims))
    finally:
        many.store.close()
        few.store.close()


def _place(file: Path, *, postgres: bool) -> Any:
    if not postgres:
        return file
    from tests.postgres import new_database  # it starts a server

    from everkept.store.postgres import PostgresDatabase

    return PostgresDatabase(new_database())


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.lanes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tenants", type=int, default=100_000, metavar="N", help="projects in the store")
    parser.add_argument("--active", type=int, default=2_000, metavar="N", help="of these, how many have work at a time")
    parser.add_argument("--claims", type=int, default=2_000, metavar="N", help="measured while all have work")
    parser.add_argument(
        "--postgres", action="store_true", help="on PostgreSQL: EVERKEPT_TEST_POSTGRES_URL, or the wheel's"
    )
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the store and the server go with it
    with temporary_home(Path.cwd()) as home:
        print(", ".join(f"{name} {value}" for name, value in describe_machine(home).items()))
        start, spent = time.perf_counter(), time.process_time()
        figures = run(home, tenants=given.tenants, active=given.active, claims=given.claims, postgres=given.postgres)
        print_section(f"Lanes on {'PostgreSQL' if given.postgres else 'SQLite'}", figures)
        print(f"\n{time.perf_counter() - start:.0f} s, {time.process_time() - spent:.0f} s of a processor")


if __name__ == "__main__":
    main()
