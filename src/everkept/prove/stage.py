"""Where scenarios play: a real store in one thread on a virtual clock, and the record of what its client was told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from everkept.api.base import Parts
from everkept.api.local import LocalService
from everkept.api.views import MessageIn
from everkept.capture.messages import Given, check_messages
from everkept.config import Settings, load
from everkept.derive.kinds import job_kinds, periodic_tasks
from everkept.derive.tools import Tools
from everkept.domain.erase import EventTarget, ProjectTarget, StreamTarget, SubjectTarget, Target
from everkept.domain.ids import parse_row_id, row_id
from everkept.domain.jobs import Uses
from everkept.errors import EverkeptError
from everkept.models.journaled import JournaledModel
from everkept.ports.clock import VirtualClock
from everkept.ports.faults import Faults, NoFaults
from everkept.prove.grounds import place_of
from everkept.prove.record import Record
from everkept.prove.script import HashedEmbedder, HashedWords, RecordedModel
from everkept.recall.rank import Weights
from everkept.recall.search import Searcher
from everkept.store.connection import Connection
from everkept.store.dialect import spelled
from everkept.store.erase import erase
from everkept.store.journal import StoreJournal
from everkept.store.pauses import list_pauses, resume
from everkept.store.projects import DEFAULT_PROJECT, ensure_project, find_project, find_subject
from everkept.store.sqlite import choose_driver, open_file
from everkept.store.store import Store
from everkept.store.streams import Append, append_events, get_thread, projects_embedded_otherwise, reopen_chunk
from everkept.work.maintenance import Maintenance
from everkept.work.runner import Runner

T = TypeVar("T")
START_US = 1_750_000_000_000_000
SECRET = bytes(range(32))
ROUNDS_MAX = 500
DAY_S = 86_400.0
RECORD = "record.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Who plays: with a model and an embedder or without, under which settings."""

    model: bool = True
    embedder: str | None = "fake:hashed"
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Environment variables."""


def connect_unsynced(path: Path, read_only: bool) -> Any:  # noqa: FBT001  (the store's own signature)
    """A connection that does not wait for the disk: a kill loses no page that the system has."""
    raw = open_file(choose_driver(), path, read_only=read_only)
    raw.execute("pragma synchronous = off")
    return raw


FOUNDER = "founder"


class Stage:
    """One client and one worker of a store in `folder`; whoever plays here may be killed at any statement."""

    def __init__(
        self, folder: Path, cast: Cast, *, start_us: int = START_US, faults: Faults | None = None, synced: bool = False,
        owner: str = "player",
    ) -> None:  # fmt: skip
        self.folder = folder
        self.cast = cast
        self.record = Record(folder / RECORD)
        self.clock = VirtualClock(start_us)
        self.settings: Settings = load(cast.settings, folder)
        self._faults = faults or NoFaults()
        self._owner = owner
        self._async = asyncio.Runner()
        self.store = Store(
            place_of(folder), clock=self.clock, faults=self._faults, threads=False,
            connect=None if synced else connect_unsynced,
        )  # fmt: skip
        self.store.open()
        if self.read(find_project, DEFAULT_PROJECT) is None:
            self.write(ensure_project, DEFAULT_PROJECT, SECRET)
        self.tools = self._make_tools()
        self.runner = self.make_runner(owner)

    @property
    def preparing(self) -> bool:
        """Whether this is the undisturbed part, from which every run starts."""
        return self._owner == FOUNDER

    def close(self) -> None:
        self._async.close()
        self.store.close()
        self.record.close()

    # ---- parts

    def _make_tools(self) -> Tools:
        model = None
        if self.cast.model:
            journal = StoreJournal(self.store, self.settings)
            model = JournaledModel(
                RecordedModel(self.record), journal, self._faults, asks_max=self.settings.models.asks_max
            )
        embedder = None if self.cast.embedder is None else HashedEmbedder(self.cast.embedder)
        return Tools(model=model, words=None if embedder is None else HashedWords(), embedder=embedder)

    def make_runner(self, owner: str) -> Runner:
        pools: dict[Uses, str | None] = {
            "local": None,
            "model": None if self.tools.model is None else self.tools.model.model.pool,
            "embedder": None if self.tools.embedder is None else self.tools.embedder.pool,
        }
        self.maintenance = Maintenance(self.store, periodic_tasks(self.settings), self.clock)
        return Runner(
            self.store, job_kinds(self.settings), self.settings, self.tools, owner=owner, clock=self.clock,
            faults=self._faults, pools=pools, maintenance=self.maintenance,
        )  # fmt: skip

    def service(self, project: str = DEFAULT_PROJECT) -> LocalService:
        row = self.read(find_project, project)
        assert row is not None
        parts = Parts(
            store=self.store, settings=self.settings, clock=self.clock, tools=self.tools,
            searcher=lambda: Searcher(self.tools.words, Weights()),
            model_name="none" if self.tools.model is None else self.tools.model.model.name,
        )  # fmt: skip
        return LocalService(parts, row)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._async.run(work)

    def write(self, function: Callable[..., T], *args: Any) -> T:
        return self.store.write_now(function, *args)

    def read(self, function: Callable[..., T], *args: Any) -> T:
        return self.store.read_now(function, *args)

    def value(self, sql: str, *params: Any) -> Any:
        """The first value of a query."""
        row = self.read(lambda conn: conn.raw.execute(*_as_asked(conn, sql, params)).fetchone())
        return None if row is None else row[0]

    def project_id(self, project: str = DEFAULT_PROJECT) -> int:
        row = self.read(find_project, project)
        assert row is not None
        return row.id

    # ---- what a client does: asked, done, told

    def asking(self, verb: str, work: Callable[[], T], answer: Callable[[T], dict[str, Any]], **what: Any) -> T:
        """Write down what is asked, do it, write down the answer; a refusal is written down and raised."""
        ask = self.record.asked(verb, **what)
        try:
            result = work()
        except EverkeptError as error:
            self.record.refused(ask, error.code)
            raise
        self.record.told(ask, **answer(result))
        return result

    def add(
        self, thread: str, *texts: str, subject: str = "ana", key: str | None = None, project: str = DEFAULT_PROJECT,
        evidence: bool = True, name: str | None = None,
    ) -> list[str]:  # fmt: skip
        """Append one batch through the API; the ids of the events. Each text has a key of its own where `key` is."""
        keys = [None if key is None else f"{key}-{n}" for n in range(len(texts))]
        messages = [
            MessageIn(role="user", name=name, content=t, key=k, evidence=evidence)
            for t, k in zip(texts, keys, strict=True)
        ]
        done = self.asking(
            "append", lambda: self.run(self.service(project).append(thread, messages, subject=subject)),
            lambda found: {"seqs": [r.seq for r in found.receipts]},
            project=project, thread=thread, subject=subject,
            messages=[{"key": k, "name": name, "content": t} for k, t in zip(keys, texts, strict=True)],
        )  # fmt: skip
        return [r.event_id for r in done.receipts]

    def add_together(self, *said: tuple[str, str, str], subject: str = "ana") -> None:
        """Appends of several clients that share a group: (thread, text, key) each."""
        project = self.read(find_project, DEFAULT_PROJECT)
        assert project is not None
        asks, futures = [], []
        for thread, content, key in said:
            messages = check_messages(
                [Given(role="user", content=content, key=key)], thread=thread, key=None, secret=project.secret,
                now_us=self.clock.now_us(),
            )  # fmt: skip
            append = Append(project=project.id, thread=thread, subject=subject, messages=messages, base=self.settings)
            asks.append(self.record.asked(
                "append", project=project.name, thread=thread, subject=subject,
                messages=[{"key": key, "content": content}],
            ))  # fmt: skip
            futures.append(self.store.writer.submit(append_events, append))
        self.store.writer.step()
        for ask, future in zip(asks, futures, strict=True):
            self.record.told(ask, seqs=[a.seq for a in future.result()])

    def create(self, thread: str, subject: str = "ana", project: str = DEFAULT_PROJECT) -> None:
        self.asking(
            "create", lambda: self.run(self.service(project).create_thread(thread, subject)), lambda _: {},
            project=project, thread=thread, subject=subject,
        )  # fmt: skip

    def end(self, thread: str, project: str = DEFAULT_PROJECT) -> None:
        self.asking(
            "end", lambda: self.run(self.service(project).end_thread(thread)), lambda _: {}, project=project,
            thread=thread,
        )  # fmt: skip

    def remember(
        self, text: str, *, predicate: str | None = None, thing: str | None = None, subject: str = "ana",
        key: str | None = None, pinned: bool = False, project: str = DEFAULT_PROJECT,
    ) -> int:  # fmt: skip
        """The fact's number."""
        done = self.asking(
            "remember",
            lambda: self.run(self.service(project).remember(
                text, subject=subject, predicate=predicate, object=thing, key=key, pinned=pinned)),
            lambda fact: {"fact": parse_row_id("fct", fact.id)},
            project=project, subject=subject, text=text, key=key,
        )  # fmt: skip
        return parse_row_id("fct", done.id)

    def forget(self, fact: int, *, undo: bool = False, project: str = DEFAULT_PROJECT) -> None:
        self.asking(
            "forget", lambda: self.run(self.service(project).forget(row_id("fct", fact), undo=undo)), lambda _: {},
            project=project, fact=fact, text=self.value("select text from facts where id = ?", fact), undo=undo,
        )  # fmt: skip

    def erase(self, kind: str, name: str | None = None, seq: int | None = None, project: str = DEFAULT_PROJECT) -> None:
        """`name`: of the thread (of an event too) or of the subject."""
        target = self._target(kind, name, seq, self.project_id(project))
        number = self.project_id(project)
        self.asking(
            "erase", lambda: self.write(erase, number, target), lambda found: {"erasure": found.id},
            project=project, kind=kind, name=name, seq=seq,
        )  # fmt: skip

    def _target(self, kind: str, name: str | None, seq: int | None, project: int) -> Target:
        match kind:
            case "event":
                assert seq is not None
                return EventTarget(stream=self.read(get_thread, project, name).id, seq=seq)
            case "thread":
                return StreamTarget(stream=self.read(get_thread, project, name).id)
            case "subject":
                subject = self.read(find_subject, project, name)
                assert subject is not None
                return SubjectTarget(subject=subject)
            case _:
                return ProjectTarget()

    def ack(self, consumer: str, upto: int, project: str = DEFAULT_PROJECT) -> None:
        """What it was given."""

        async def read_and_ack() -> int:
            await self.service(project).changes(consumer=consumer)
            return await self.service(project).ack(consumer, upto)

        self.asking(
            "ack", lambda: self.run(read_and_ack()), lambda cursor: {"cursor": cursor},
            project=project, consumer=consumer, upto=upto,
        )  # fmt: skip

    def rename(self, project: str, new: str) -> None:
        self.asking(
            "rename", lambda: self.run(self.service().update_project(project, new_name=new)), lambda _: {},
            project=project, new=new,
        )  # fmt: skip

    def change(self, what: str, work: Callable[[], object], *, sql: str, after: Any) -> None:
        """Any other command: `sql` gives one value, which is `after` once the command has happened."""
        self.asking("change", work, lambda _: {}, what=what, sql=sql, before=self.value(sql), after=after)

    def reprocess(self, project: str = DEFAULT_PROJECT, **selection: Any) -> None:
        self.asking(
            "reprocess", lambda: self.run(self.service(project).reprocess(**selection)), lambda _: {}, project=project
        )

    def send_again(self) -> None:
        """As a client does that had no answer: what it gave a key is sent again, until it is told."""
        for ask in self.record.read().of("append"):
            keys: Sequence[str | None] = [m["key"] for m in ask.what["messages"]]
            project = ask.what["project"]
            if ask.told is not None or not all(keys) or self.read(find_project, project) is None:
                continue
            messages = [
                MessageIn(role="user", name=m.get("name"), content=m["content"], key=m["key"])
                for m in ask.what["messages"]
            ]
            thread, subject = ask.what["thread"], ask.what["subject"]
            done = self.run(self.service(project).append(thread, messages, subject=subject))
            self.record.told(ask.id, seqs=[r.seq for r in done.receipts])

    # ---- what a worker does

    def step(self) -> int:
        """One round of the worker, to the end of what it started; jobs started."""

        async def go() -> int:
            started = await self.runner.step()
            await self.runner.drain_started()
            return started

        return self.run(go())

    def work(self) -> int:
        """Work what is due now; jobs run."""
        done = 0
        for _ in range(ROUNDS_MAX):
            started = self.step()
            done += started
            if not started:
                return done
        raise AssertionError(f"still busy after {ROUNDS_MAX} rounds")

    def maintain(self) -> int:
        """One round of the backstops; rows repaired."""
        return self.run(self.maintenance.step())

    def resume_all(self) -> None:
        """What a hand does that finds a pause which nobody ended."""
        for each in self.read(list_pauses):
            self.write(resume, each.what, each.name)

    def embed_again(self) -> None:
        """What a worker does at its start: vectors of another embedder than today's are made again."""
        label = self.tools.embedder_label
        for project in self.read(projects_embedded_otherwise, label):
            while self.write(reopen_chunk, project, label):
                pass

    def drain(self, *, idle_s: float = 0.0) -> None:
        """Work until nothing waits, moving the clock to whatever is due next; `idle_s` longer after that."""
        for _ in range(ROUNDS_MAX):
            self.maintain()
            if self.work():
                continue
            due_us = self.value(_NEXT_DUE)
            if due_us is None and not self.value(_FORGOTTEN):
                break
            # A job that is due and not claimed waits for a provider's circuit, or for its serial key.
            ahead_s = DAY_S if due_us is None else max(60.0, (due_us - self.clock.now_us()) / 1e6 + 0.001)
            self.clock.advance(ahead_s)
        else:
            raise AssertionError(f"not drained after {ROUNDS_MAX} rounds: {self.value(_WAITING)}")
        if idle_s:
            self.clock.advance(idle_s)
            self.maintain()


def _as_asked(conn: Connection, sql: str, params: tuple[Any, ...]) -> tuple[str, tuple[Any, ...] | None]:
    """A query in the notation that both databases read, with `?` for what is given, as the driver gets it."""
    if conn.dialect.name == "sqlite":
        return spelled(sql, conn.dialect), params
    return spelled(sql.replace("%", "%%").replace("?", "%s") if params else sql, conn.dialect), params or None


_NEXT_DUE = """
select min(case state when 'leased' then lease_until else due_at end) from jobs
where state in ('waiting', 'ready', 'leased')"""
_WAITING = """
select list_of(what) from (
  select kind || ' ' || key || ' ' || state as what from jobs where state not in ('done', 'dead')) as waiting"""
_FORGOTTEN = """
select 1 from streams s where s.covered_seq < s.last_seq and s.erased_at is null
  and s.last_recorded_at + 86400000000 > coalesce((
    select last_start_at from periodic where name = 'sweep_abandoned'), 0)
  and not exists (select 1 from jobs j where j.kind = 'open_window' and j.key = cast(s.id as text)
    and j.state in ('waiting', 'ready', 'leased', 'dead'))"""
"""Threads that nothing but the sweep for abandoned ones will find."""
