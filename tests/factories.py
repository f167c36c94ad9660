"""A small world for tests: a real store under a virtual clock, everything in one thread, one step at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from everkept.capture.messages import Given, check_messages
from everkept.config import Settings, load
from everkept.derive.kinds import KINDS, periodic_tasks
from everkept.derive.tools import Tools
from everkept.domain.jobs import JobPolicy, Lease, Outcome, Schedule, Uses
from everkept.models.fakes import Script, ScriptedModel
from everkept.models.journaled import JournaledModel
from everkept.ports.clock import VirtualClock
from everkept.ports.faults import Faults, NoFaults
from everkept.ports.models import Question
from everkept.store.claims import Claimed, ClaimRequest, claim
from everkept.store.connection import Connection
from everkept.store.database import Database
from everkept.store.jobs import promote_due, schedule
from everkept.store.journal import StoreJournal
from everkept.store.lanes import ensure_lane
from everkept.store.leases import finish
from everkept.store.projects import ProjectRow, ensure_project, ensure_subject, update_project
from everkept.store.sqlite import choose_driver, open_file
from everkept.store.store import Store
from everkept.store.streams import (
    Append,
    Appended,
    append_events,
    create_thread,
    get_thread,
    request_end,
    set_thread_settings,
)
from everkept.work.job import Finished, JobContext, JobKind
from everkept.work.maintenance import Maintenance, PeriodicTask
from everkept.work.runner import Runner

T = TypeVar("T")


class _Heard:
    """A driver's connection that notes each statement it is given."""

    def __init__(self, raw: Any, said: list[str]) -> None:
        self._raw = raw
        self._said = said

    def execute(self, sql: str, *values: Any) -> Any:
        self._said.append(sql)
        return self._raw.execute(sql, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


@contextmanager
def listening_to(conn: Connection) -> Iterator[list[str]]:
    """The statements that are executed on the connection meanwhile."""
    said: list[str] = []
    raw = conn.raw
    conn.raw = _Heard(raw, said)
    try:
        yield said
    finally:
        conn.raw = raw


SECRET = bytes(range(32))
MINUTE_S = 60.0
HOUR_S = 3600.0
US = 1_000_000
ROUNDS_MAX = 2_000
EVERYTHING: dict[Uses, int] = {"local": 99, "model": 99, "embedder": 99}


def settings_of(home: Path, **overrides: object) -> Settings:
    """Defaults but for `group__name=value`."""
    return load({f"EVERKEPT_{key.upper()}": _env(value) for key, value in overrides.items()}, home)


def _env(value: object) -> str:
    return (
        {None: "null", True: "true", False: "false"}.get(value, str(value))
        if isinstance(value, bool | None)
        else str(value)
    )


Connect = Callable[[Path, bool], Any]


def connect_unsynced(path: Path, read_only: bool) -> Any:
    """A driver connection that does not wait for the disk: no test of these loses power."""
    raw = open_file(choose_driver(), path, read_only=read_only)
    raw.execute("pragma synchronous = off")
    return raw


def open_store(
    path: Path | Database, clock: VirtualClock, *, faults: Faults | None = None, connect: Connect = connect_unsynced
) -> Store:
    """A new store in the caller's thread."""
    store = Store(path, clock=clock, threads=False, faults=faults, connect=connect)
    store.open()
    return store


def plain_reply(question: Question) -> dict[str, Any]:
    """A reply that is right and says little."""
    match question.step:
        case "facts":
            return {"facts": []}
        case "conflicts":
            return {
                "verdicts": [{"pair": n, "verdict": "new"} for n in range(1, 21) if f'"pair": {n}' in question.user]
                or [{"pair": 1, "verdict": "new"}]
            }
        case _:
            return {"summary": "They talked.", "learnings": []}


class World:
    """One project, its clock, a model or none, and as many workers as are asked for."""

    def __init__(
        self,
        store: Store,
        home: Path,
        clock: VirtualClock,
        *,
        script: Script | None = None,
        faults: Faults | None = None,
        project: str = "default",
        project_settings: Mapping[str, Any] | None = None,
        **overrides: object,
    ) -> None:
        self.store = store
        self.clock = clock
        self.faults = faults or NoFaults()
        self.settings = settings_of(home, **overrides)
        self.model = None if script is None else ScriptedModel(script)
        self.project: ProjectRow = store.write_now(ensure_project, project, SECRET, project_settings)
        self._async = asyncio.Runner()
        self._runners: dict[str, Runner] = {}

    def close(self) -> None:
        self._async.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._async.run(work)

    @property
    def file(self) -> Path:
        """Of a store in a file."""
        assert self.store.path is not None
        return self.store.path

    def write(self, function: Callable[..., T], *args: Any) -> T:
        return self.store.write_now(function, *args)

    def read(self, function: Callable[..., T], *args: Any) -> T:
        return self.store.read_now(function, *args)

    # ---- saying things

    def add(
        self,
        thread: str,
        *texts: str,
        subject: str | None = "ana",
        key: str | None = None,
        role: str = "user",
        tokens: int | None = None,
        evidence: bool = True,
    ) -> list[Appended]:
        """Append one batch; what became of each message."""
        batch = self.batch(thread, *texts, subject=subject, key=key, role=role, tokens=tokens, evidence=evidence)
        return self.run(self.store.write_item(append_events, batch))

    def batch(
        self,
        thread: str,
        *texts: str,
        subject: str | None = "ana",
        key: str | None = None,
        role: str = "user",
        tokens: int | None = None,
        evidence: bool = True,
    ) -> Append:
        given = [Given(role=role, content=text, tokens=tokens, evidence=evidence) for text in texts]
        messages = check_messages(given, thread=thread, key=key, secret=self.project.secret, now_us=self.clock.now_us())
        return Append(project=self.project.id, thread=thread, subject=subject, messages=messages, base=self.settings)

    def create(self, thread: str, subject: str = "ana", settings: str = "{}") -> int:
        """A thread without messages; its number."""
        return self.write(create_thread, self.project.id, thread, subject, settings, self.settings).id

    def end(self, thread: str) -> tuple[bool, str]:
        return self.write(request_end, self.project.id, thread, self.settings)

    def set_thread(self, thread: str, settings: str) -> None:
        """`settings`: a JSON object of flat keys."""
        self.write(set_thread_settings, self.project.id, thread, settings, self.settings)

    def set_project(self, **settings: object) -> None:
        """`group__name=value`."""
        flat = {key.replace("__", "."): value for key, value in settings.items()}
        self.project = self.write(update_project, self.project.name, None, flat)

    # ---- time and work

    def tick(self, seconds: float) -> None:
        """Time passes; nobody works."""
        self.clock.advance(seconds)

    def runner(
        self,
        name: str = "w1",
        *,
        kinds: Mapping[str, JobKind[Any]] | None = None,
        pools: Mapping[Uses, str | None] | None = None,
        tasks: list[PeriodicTask] | None = None,
    ) -> Runner:
        """The worker of this name, made at its first mention."""
        if name not in self._runners:
            journaled = (
                None
                if self.model is None
                else JournaledModel(
                    self.model,
                    StoreJournal(self.store, self.settings),
                    self.faults,
                    asks_max=self.settings.models.asks_max,
                )
            )
            known: dict[Uses, str | None] = {"model": None if self.model is None else self.model.pool}
            self._runners[name] = Runner(
                self.store,
                KINDS if kinds is None else kinds,
                self.settings,
                Tools(model=journaled, words=None, embedder=None),
                owner=name,
                clock=self.clock,
                faults=self.faults,
                pools=known if pools is None else pools,
                maintenance=Maintenance(
                    self.store, periodic_tasks(self.settings) if tasks is None else tasks, self.clock
                ),
            )
        return self._runners[name]

    def runners(self, count: int, **kw: Any) -> list[Runner]:
        return [self.runner(f"w{n}", **kw) for n in range(1, count + 1)]

    def step(self, *names: str) -> int:
        """One round of each worker named (or the first), to the end of what it started; jobs started."""

        async def go() -> int:
            started = 0
            for name in names or ("w1",):
                started += await self.runner(name).step()
            for name in names or ("w1",):
                await self.runner(name).drain_started()
            return started

        return self.run(go())

    def maintain(self, name: str = "w1") -> int:
        """One round of the backstops; rows repaired."""
        return self.run(self.runner(name)._maintenance.step())

    def run_until_idle(self, *names: str) -> int:
        """Work what is due now, without moving the clock; jobs run."""
        done = 0
        for _ in range(ROUNDS_MAX):
            started = self.step(*names)
            done += started
            if not started:
                return done
        raise AssertionError(f"still busy after {ROUNDS_MAX} rounds")

    def live(self, seconds: float, *, every: float = 5.0, maintain: bool = True) -> int:
        """Time passes and the workers work, as in a process that is up; jobs run."""
        done, left = 0, seconds
        while left > 0:
            self.clock.advance(min(every, left))
            left -= every
            if maintain:
                self.maintain()
            done += self.run_until_idle()
        return done

    # ---- jobs by hand

    def lane(self, subject: str = "ana") -> int:
        def make(conn: Any) -> int:
            return ensure_lane(conn, self.project.id, ensure_subject(conn, self.project.id, subject))

        return self.write(make)

    def wish(
        self, key: str, *, due_in: float = 0.0, lane: int | None = None, kind: str = "work", **kw: Any
    ) -> Schedule:
        return Schedule(
            kind=kind,
            key=key,
            project=self.project.id,
            lane=self.lane() if lane is None else lane,
            due_at_us=self.clock.now_us() + int(due_in * US),
            **kw,
        )

    def schedule(
        self, key: str, *, due_in: float = 0.0, lane: int | None = None, kind: str = "work", **kw: Any
    ) -> None:
        self.write(schedule, [self.wish(key, due_in=due_in, lane=lane, kind=kind, **kw)])

    def promote(self, limit: int = 10_000) -> int:
        return self.write(promote_due, limit)[0]

    def claim(
        self,
        owner: str = "w1",
        *,
        free: int = 1,
        slots: int = 4,
        lease_s: float = 600.0,
        uses: dict[Uses, int] | None = None,
        idle: bool = True,
        estimates_s: dict[str, float] | None = None,
    ) -> list[Lease]:
        """Promote what is due, then claim."""
        return self.claimed(
            owner, free=free, slots=slots, lease_s=lease_s, uses=uses, idle=idle, estimates_s=estimates_s
        ).leases

    def claimed(
        self,
        owner: str = "w1",
        *,
        free: int = 1,
        slots: int = 4,
        lease_s: float = 600.0,
        uses: dict[Uses, int] | None = None,
        idle: bool = True,
        estimates_s: dict[str, float] | None = None,
    ) -> Claimed:
        self.promote()
        return self.write(
            claim,
            ClaimRequest(
                owner=owner,
                free=free,
                slots=slots,
                lease_s=lease_s,
                uses=EVERYTHING if uses is None else uses,
                idle=idle,
                estimates_s=estimates_s or {},
            ),
        )

    def finish(self, lease: Lease, outcome: Outcome, ran_s: float = 0.1) -> str:
        return self.write(finish, lease, outcome, ran_s)

    # ---- looking

    def rows(self, sql: str, *params: object) -> list[tuple[Any, ...]]:
        return self.read(lambda conn: conn.raw.execute(sql, params).fetchall())

    def value(self, sql: str, *params: object) -> Any:
        rows = self.rows(sql, *params)
        return rows[0][0] if rows else None

    def do(self, sql: str, *params: object) -> None:
        """Change the database behind the engine's back."""
        self.write(lambda conn: conn.raw.execute(sql, params))

    def job(self, key: str, kind: str = "work") -> dict[str, Any]:
        """The job's row, times as seconds from now."""

        def load_(conn: Any) -> dict[str, Any]:
            cursor = conn.raw.execute("select * from jobs where kind = ? and key = ?", (kind, key))
            row = cursor.fetchone()
            assert row is not None, f"there is no job {kind} {key}"
            return dict(zip([c[0] for c in cursor.description], row, strict=True))

        row = self.read(load_)
        now = self.clock.now_us()
        for name in ("due_at", "first_due_at", "lease_until", "finished_at"):
            row[name] = None if row[name] is None else (row[name] - now) / US
        return row

    def states(self, kind: str | None = None) -> dict[str, str]:
        """{key: state} of one kind, or {"kind key": state} of all."""
        if kind is not None:
            return dict(self.rows("select key, state from jobs where kind = ? order by id", kind))
        return dict(self.rows("select kind || ' ' || key, state from jobs order by id"))

    def windows(self, thread: str | None = None) -> list[tuple[int, int]]:
        """(start_seq, end_seq) of a thread's windows, or of all, oldest first."""
        if thread is None:
            return self.rows("select start_seq, end_seq from windows order by stream_id, start_seq")
        return self.rows(
            "select start_seq, end_seq from windows where stream_id = ? order by start_seq", self.stream(thread)
        )

    def stream(self, thread: str) -> int:
        return self.read(get_thread, self.project.id, thread).id

    def counter(self, name: str) -> int:
        return int(self.value("select value from counters where name = ?", name) or 0)

    def repaired(self, task: str) -> int:
        return int(self.value("select rows_repaired from periodic where name = ?", task) or 0)


async def _noop(args: Any, ctx: JobContext) -> Finished:
    return await ctx.finish(lambda _conn: None)


def kind_of(
    run: Callable[[Any, JobContext], Coroutine[Any, Any, Outcome | Finished]] = _noop,
    *,
    name: str = "work",
    attempts_max: int = 4,
    timeout_s: float = 60.0,
) -> dict[str, JobKind[Any]]:
    """One kind of job around a function."""
    policy = JobPolicy(attempts_max=attempts_max, timeout_s=timeout_s, estimate_s=0.1)
    return {name: JobKind(name=name, policy=policy, read_args=lambda args: args, run=run)}


def assert_lanes_count_right(world: World) -> None:
    """What lanes and projects say is running and ready is what the jobs say."""
    counted = """
      select l.id, l.running, l.ready_local, l.ready_model, l.ready_embedder,
        (select count(*) from jobs j where j.lane_id = l.id and j.state = 'leased'),
        (select count(*) from jobs j where j.lane_id = l.id and j.state = 'ready' and j.uses = 'local'),
        (select count(*) from jobs j where j.lane_id = l.id and j.state = 'ready' and j.uses = 'model'),
        (select count(*) from jobs j where j.lane_id = l.id and j.state = 'ready' and j.uses = 'embedder')
      from lanes l"""
    for lane, *counts in world.rows(counted):
        assert counts[:4] == counts[4:], f"lane {lane} counts wrong"
    summed = """
      select g.id, g.running, g.ready_local, g.ready_model, g.ready_embedder,
        sum(l.running), sum(l.ready_local), sum(l.ready_model), sum(l.ready_embedder)
      from lane_groups g join lanes l on l.group_id = g.id group by g.id"""
    for group, *counts in world.rows(summed):
        assert counts[:4] == counts[4:], f"project {group} counts wrong"
