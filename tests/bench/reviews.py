"""Reviews: what a look costs where nothing is to be done, how long 1,000 waiting sessions take with a slow model, and
how long a small project waits beside a large one (G12, G13)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.report import Figure, Goal

from everkept.bootstrap import open_application
from everkept.capture.agents.keeping import prepare, session_mark
from everkept.config import Settings, load
from everkept.derive import digest_session, open_window, review_session, schedule_reviews
from everkept.derive.tools import Tools
from everkept.domain.jobs import Done, JobPolicy, Outcome
from everkept.domain.session import AgentEvent, ToolCall, natural_key
from everkept.models.journaled import JournaledModel
from everkept.ports.clock import SystemClock
from everkept.ports.faults import NoFaults
from everkept.ports.models import Question, RawReply
from everkept.store.connection import Connection
from everkept.store.journal import StoreJournal
from everkept.store.projects import ProjectRow, ensure_project
from everkept.store.review_jobs import wake_scheduler
from everkept.store.review_schedule import look_for_sessions, sweep_reviews
from everkept.store.sessions import SessionBatch, SessionHeader, append_session
from everkept.store.store import Store
from everkept.work.job import JobContext, JobKind
from everkept.work.maintenance import Maintenance
from everkept.work.runner import Runner

SLOTS = 8
STUB_S = 0.05
AGENT = "bench-agent"


async def _pass_by(_args: object, _ctx: JobContext) -> Outcome:
    return Done()


PASSED_BY = {
    name: JobKind(name=name, policy=JobPolicy(attempts_max=1, timeout_s=60), read_args=dict, run=_pass_by)
    for name in ("schedule_reviews", "embed_passages", "embed_words")
}
"""What is not measured: it is booked as done."""


class StubModel:
    """Proposes nothing, 50 ms after it was asked."""

    name = "stub:reviews"
    pool = "stub"

    def __init__(self) -> None:
        self.asked: list[tuple[str, float]] = []
        """(the question, when), in order."""

    async def ask(self, question: Question) -> RawReply:
        self.asked.append((question.user, time.monotonic()))
        await asyncio.sleep(STUB_S)
        return RawReply(text='{"proposals": []}', tokens_in=1, tokens_out=1, usd=0.0)

    def estimate_usd(self, tokens_in: int, tokens_out: int) -> float:
        return 0.0

    async def close(self) -> None:
        return None


@dataclass(slots=True)
class _Bench:
    """A store with many projects, whose sessions one worker digests and then reviews."""

    store: Store
    settings: Settings
    model: StubModel = field(default_factory=StubModel)

    def runner(self, *, reviews: bool) -> Runner:
        modules = (schedule_reviews, review_session) if reviews else (open_window, digest_session)
        kinds = {**PASSED_BY, **{module.KIND.name: module.KIND for module in modules}}
        clock = SystemClock()
        model = JournaledModel(self.model, StoreJournal(self.store, self.settings), NoFaults(), asks_max=1)
        runner = Runner(
            self.store, kinds, self.settings,
            Tools(model=model if reviews else None, words=None, embedder=None), owner="bench", clock=clock,
            faults=NoFaults(), pools={"local": None, "model": self.model.pool, "embedder": None},
            maintenance=Maintenance(self.store, [], clock),
        )  # fmt: skip
        self.store.on_due = runner.notify
        return runner

    async def work(self, *, reviews: bool, until: Callable[[Connection], bool]) -> float:
        """Seconds until it is so."""
        runner = self.runner(reviews=reviews)
        start = time.monotonic()
        working = asyncio.create_task(runner.run())
        while not await self.store.read(until):  # noqa: ASYNC110  (what is waited for is in the store)
            await asyncio.sleep(0.02)
        seconds = time.monotonic() - start
        runner.stop(60.0)
        await working
        return seconds


def measure(home: Path, *, quick: bool) -> Iterator[Figure]:
    yield from asyncio.run(_idle(home / "idle", 1_000 if quick else 10_000))
    yield from asyncio.run(_waiting(home / "waiting", projects=20, sessions=5 if quick else 50))
    yield from asyncio.run(_fairness(home / "fair", large=40 if quick else 200, small=20))


async def _open(home: Path, **rules: object) -> _Bench:
    given = {"interval_seconds": 1, "age_min_s": 0, "duration_min_s": 0, "observations_min": 0, "sessions_max": 50}
    settings = load({
        "EVERKEPT_HOME": str(home), "EVERKEPT_WORK__SLOTS": str(SLOTS),
        **{f"EVERKEPT_REVIEW__SCHEDULER__{name.upper()}": str(value) for name, value in {**given, **rules}.items()},
    }, home)  # fmt: skip
    await (await open_application(settings, worker=False)).close()  # makes the home and the schema
    store = Store(home / "everkept.db")
    store.open()
    return _Bench(store, settings)


# ---- nothing to do


async def _idle(home: Path, projects: int) -> Iterator[Figure]:
    bench = await _open(home)
    store = bench.store
    ids: list[int] = []
    for start in range(0, projects, 200):
        names = [f"p{n}" for n in range(start, min(start + 200, projects))]
        ids += await store.write(lambda conn, made: [ensure_project(conn, n, bytes(32)).id for n in made], names)
    rounds = [await _timed(store, sweep_reviews, bench.settings, 0, 100) for _ in range(21)]
    look_s, floor_s = [], []
    for project in ids[:500]:  # in turn, so that both meet the same load
        look_s.append(await _timed(store, look_for_sessions, project, bench.settings))
        floor_s.append(await _timed(store, _touch, project))
    store.close()
    return iter([
        Figure(
            name=f"backstop over {projects:,} idle projects", value=1000 * _median(rounds), unit="ms",
            peer="one durable row", peer_value=1000 * _median(floor_s), goal=Goal(of="value", sense="most", bound=20),
        ),
        Figure(
            name="wake-ups with nothing to do", value=1 / _median(look_s), unit="projects/s",
            peer="one durable row", peer_value=1 / _median(floor_s), goal=Goal(of="ratio", sense="least", bound=0.2),
        ),
    ])  # fmt: skip


def _touch(conn: Connection, project: int) -> None:
    conn.raw.execute("update review_states set woke_at = ? where project_id = ?", (conn.now(), project))


async def _timed(store: Store, function: Callable[..., object], *args: object) -> float:
    start = time.perf_counter()
    await store.write(function, *args)
    return time.perf_counter() - start


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


# ---- much to do


async def _waiting(home: Path, *, projects: int, sessions: int) -> Iterator[Figure]:
    bench = await _open(home)
    for number in range(projects):
        await _tell(bench, f"p{number}", sessions)
    await _digest(bench, projects * sessions)
    took_s = await bench.work(reviews=True, until=lambda conn: _count(conn, "reviewed") == projects * sessions)
    bench.store.close()
    total = projects * sessions
    return iter([Figure(
        name=f"{total:,} sessions of {projects} projects reviewed, model of 50 ms", value=took_s, unit="s",
        peer=f"the model alone, {SLOTS} at once", peer_value=total * STUB_S / SLOTS,
    )])  # fmt: skip


async def _fairness(home: Path, *, large: int, small: int) -> Iterator[Figure]:
    """Twenty projects with one session each wake beside one with hundreds: how long the last of them waits."""
    bench = await _open(home)
    await _tell(bench, "large", large)
    for number in range(small):
        await _tell(bench, f"small-{number}", 1)
    await _digest(bench, large + small)
    small_ones = "and project_id in (select id from projects where name like 'small-%')"
    await bench.work(reviews=True, until=lambda conn: _count(conn, "reviewed", small_ones) == small)
    first = bench.model.asked[0][1]
    waits = [at - first for question, at in bench.model.asked if "small-" in question]
    bench.store.close()
    return iter([Figure(
        name=f"longest wait of {small} projects of one session beside one of {large}", value=max(waits), unit="s",
        peer="all before them, one after another", peer_value=large * STUB_S,
        goal=Goal(of="ratio", sense="most", bound=0.5),
    )])  # fmt: skip


async def _tell(bench: _Bench, project: str, sessions: int) -> None:
    row: ProjectRow = await bench.store.write(ensure_project, project, bytes(range(32)))
    for number in range(sessions):
        await bench.store.write(append_session, _session(bench, row, f"{project}-{number}"))


def _session(bench: _Bench, project: ProjectRow, native: str) -> SessionBatch:
    def event(kind: Any, id_: str, text: str = "", **more: Any) -> AgentEvent:
        return AgentEvent(kind=kind, agent=AGENT, session=native, key=natural_key(AGENT, f"{native}-{id_}"),
                          source="hook", text=text, **more)  # fmt: skip

    failed = ToolCall(name="Bash", family="shell", command="npm test", outcome="failed", exit_code=1,
                      output="Error: this workspace is run with pnpm")  # fmt: skip
    edited = ToolCall(name="Edit", family="edit", paths=("a.py",), changes=(("a.py", "edited"),), outcome="ok")
    events = [
        event("prompt", "p", f"Mend {native}"), event("tool", "c", tool=failed), event("tool", "e", tool=edited),
        event("said", "s", f"{native} is mended."),
    ]  # fmt: skip
    header = SessionHeader(agent=AGENT, native=native, origin="hook", worktree=f"/code/{native}", branch="main")
    now_us = int(time.time() * 1e6)
    return SessionBatch(
        project=project.id, header=header, events=prepare(events, secret=project.secret, now_us=now_us),
        base=bench.settings, mark=session_mark(AGENT, native, project.secret), ended=True,
    )  # fmt: skip


async def _digest(bench: _Bench, sessions: int) -> None:
    """All are digested by a worker that knows no reviews; afterwards each project's scheduler is woken."""
    await bench.work(reviews=False, until=lambda conn: _count(conn, "waiting") == sessions)

    def wake(conn: Connection) -> None:
        for (project,) in conn.raw.execute("select id from projects").fetchall():
            wake_scheduler(conn, project)

    await bench.store.write(wake)


def _count(conn: Connection, state: str, more: str = "") -> int:
    row = conn.raw.execute(f"select count(*) from generations where state = ? {more}", (state,)).fetchone()
    return int(row[0])
