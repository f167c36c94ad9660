"""A day of use in one thread, by a seed: what a power cut falls into.

Everything a client asks and is told goes into a record, at the instant at which it is told.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from everkept.api.base import Parts
from everkept.api.local import LocalService
from everkept.capture.messages import Given, check_messages
from everkept.config import Settings, load
from everkept.derive.kinds import job_kinds, periodic_tasks
from everkept.derive.tools import Tools
from everkept.domain.erase import EventTarget, ProjectTarget, StreamTarget, SubjectTarget, Target
from everkept.domain.ids import parse_row_id
from everkept.domain.jobs import Uses
from everkept.models.fakes import Scripted, ScriptedModel
from everkept.models.journaled import JournaledModel
from everkept.ports.clock import VirtualClock
from everkept.ports.faults import NoFaults
from everkept.ports.models import Question
from everkept.prove.record import Record
from everkept.recall.search import Searcher
from everkept.store.changes import acknowledge
from everkept.store.connection import Connection
from everkept.store.erase import erase
from everkept.store.journal import StoreJournal
from everkept.store.projects import DEFAULT_PROJECT, ProjectRow, ensure_project, find_project, find_subject
from everkept.store.store import Store
from everkept.store.streams import Append, Appended, append_events, find_thread, request_end
from everkept.work.maintenance import Maintenance
from everkept.work.runner import Runner

T = TypeVar("T")
Connect = Callable[[Path, bool], Any]
SECRET: Final = bytes(range(32))
SIDE: Final = "side"
SUBJECTS: Final = ("ana", "ben", "cho")
TOWNS: Final = ("Lisbon", "Berlin", "Osaka", "Quito", "Turin", "Leeds")
ROUNDS_MAX: Final = 3_000
LEASE_S: Final = 600.0
US: Final = 1_000_000


class House:
    """One process that has the store open: the real store, service and runner, one step at a time.

    One slot, so that no more than one paid reply is in flight.
    """

    def __init__(
        self, path: Path, clock: VirtualClock, *, model: bool, connect: Connect | None = None,
        replied: Callable[[Question, str], None] = lambda _question, _reply: None,
    ) -> None:  # fmt: skip
        self.clock = clock
        self.settings: Settings = load({"EVERKEPT_WORK__SLOTS": "1"}, path.parent)
        self.store = Store(path, clock=clock, threads=False, connect=connect)
        self.store.open()
        self._async = asyncio.Runner()
        self.store.write_now(ensure_project, DEFAULT_PROJECT, SECRET)
        self._replied = replied
        self.tools = Tools(model=self._journaled() if model else None, words=None, embedder=None)
        self.maintenance = Maintenance(self.store, periodic_tasks(self.settings), clock)
        pools: dict[Uses, str | None] = {"model": "fake"} if model else {}
        self.runner = Runner(
            self.store, job_kinds(self.settings), self.settings, self.tools, owner=f"house-{clock.now_us()}",
            clock=clock, faults=NoFaults(), pools=pools, maintenance=self.maintenance,
        )  # fmt: skip

    def close(self) -> None:
        self._async.close()
        self.store.close()

    def _journaled(self) -> JournaledModel:
        journal = StoreJournal(self.store, self.settings)
        return JournaledModel(
            ScriptedModel(self._reply), journal, NoFaults(), asks_max=self.settings.models.asks_max
        )  # fmt: skip

    def _reply(self, question: Question) -> Scripted:
        reply = '{"facts": []}' if question.step == "facts" else '{"summary": "They talked.", "learnings": []}'
        self._replied(question, reply)
        return reply

    def project(self, name: str) -> ProjectRow:
        found = self.store.read_now(find_project, name)
        assert found is not None, f"there is no project {name}"
        return found

    def service(self, project: str) -> LocalService:
        parts = Parts(
            store=self.store, settings=self.settings, clock=self.clock, tools=self.tools, searcher=_no_searcher,
            model_name="none",
        )  # fmt: skip
        return LocalService(parts, self.project(project))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._async.run(work)

    def work(self, seconds: float) -> None:
        """Time passes, then one round of the worker."""
        self.clock.advance(seconds)
        self.run(self._round())

    async def _round(self) -> int:
        await self.maintenance.step()
        started = await self.runner.step()
        await self.runner.drain_started()
        return started

    def drain(self) -> None:
        """Work until nothing waits any more, however far ahead it is due. Raises AssertionError if it never ends."""
        for _ in range(ROUNDS_MAX):
            if self.run(self._round()):
                continue
            due = self.store.read_now(_next_due)
            if due is None:
                return
            self.clock.advance(max(0.0, (due - self.clock.now_us()) / US) + 1.0)
        raise AssertionError(f"still busy after {ROUNDS_MAX} rounds")


def _no_searcher() -> Searcher:
    raise AssertionError("nothing is recalled here")


def _next_due(conn: Connection) -> int | None:
    """When the next job is due or its lease ends; None where all have ended."""
    row = conn.raw.execute(
        "select min(case state when 'leased' then lease_until else due_at end) from jobs"
        " where state in ('waiting', 'ready', 'leased')"
    ).fetchone()
    found: int | None = row[0]
    return found


@dataclass(slots=True)
class Known:
    """What the clients know of the store and build on."""

    keyed: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    """Project, thread, subject, key and text of what was said under a key."""
    facts: list[tuple[str, int, str]] = field(default_factory=list)
    acked: dict[str, int] = field(default_factory=lambda: {DEFAULT_PROJECT: 0, SIDE: 0})


class Mix:
    """Seeded use of a house. Each method is one thing that somebody does."""

    def __init__(self, path: Path, record: Record, seed: int, *, connect: Connect | None = None) -> None:
        self._path = path
        self._connect = connect
        self._chance = random.Random(seed)
        self._clock = VirtualClock(seed=seed)
        self.record = record
        self.model = self._chance.random() < 0.5
        self._said = 0
        self._projects = [DEFAULT_PROJECT, SIDE]
        self._known = Known()
        self.house = self._start()
        self.house.store.write_now(ensure_project, SIDE, SECRET)

    def _start(self) -> House:
        return House(self._path, self._clock, model=self.model, connect=self._connect, replied=self._paid)

    def _paid(self, question: Question, reply: str) -> None:
        self.record.told(self.record.asked("question", step=question.step), reply=reply)

    def close(self) -> None:
        self.house.close()

    @property
    def now_us(self) -> int:
        return self._clock.now_us()

    def known(self) -> Known:
        return copy.deepcopy(self._known)

    def go_on(self, record: Record, known: Known) -> None:
        """Start again on a store that was put in the place of the old one, with what was known of it."""
        self.record, self._known = record, known
        self.start_again()

    def live(self, steps: int) -> None:
        """So many things, one after another."""
        deeds = (
            (30, self.say), (12, self.end), (30, self.work), (6, self.remember), (3, self.forget),
            (4, self.acknowledge), (2, self.erase), (2, self.restart),
        )  # fmt: skip
        for _ in range(steps):
            self._chance.choices([deed for _, deed in deeds], [weight for weight, _ in deeds])[0]()

    def say(self) -> None:
        """Some clients at once, in one group of the writer: singles, batches, and replays of a key."""
        futures = []
        for _ in range(self._chance.choice((1, 1, 2, 4))):
            append, ask = self._repeat() if self._known.keyed and self._chance.random() < 0.15 else self._new()
            futures.append(self._submit(append, ask))
        self.house.store.writer.step()
        for future in futures:
            future.result()

    def say_alone(self) -> str:
        """One message, answered; its text."""
        text = self._text()
        append, ask = self._append(DEFAULT_PROJECT, "alone", "ana", [text], None)
        self._submit(append, ask)
        self.house.store.writer.step()
        return text

    def _submit(self, append: Append, ask: str) -> Future[list[Appended]]:
        """Hand it to the writer; the answer is written down as it leaves."""
        future = self.house.store.writer.submit(append_events, append)
        future.add_done_callback(lambda done: self._tell(ask, done))
        return future

    def _tell(self, ask: str, done: Future[list[Appended]]) -> None:
        if done.exception() is None:
            self.record.told(ask, seqs=[appended.seq for appended in done.result()])

    def _new(self) -> tuple[Append, str]:
        project, subject = self._chance.choice(self._projects), self._chance.choice(SUBJECTS)
        thread = f"{subject}-{self._chance.randrange(2)}"
        texts = [self._text() for _ in range(self._chance.choice((1, 1, 1, 3, 12)))]
        key = f"key-{self._said}" if self._chance.random() < 0.5 and len(texts) == 1 else None
        if key:
            self._known.keyed.append((project, thread, subject, key, texts[0]))
        return self._append(project, thread, subject, texts, key)

    def _repeat(self) -> tuple[Append, str]:
        project, thread, subject, key, text = self._chance.choice(self._known.keyed)
        return self._append(project, thread, subject, [text], key)

    def _append(
        self, project: str, thread: str, subject: str, texts: list[str], key: str | None
    ) -> tuple[Append, str]:  # fmt: skip
        given = [Given(role="user", content=text, key=key) for text in texts]
        messages = check_messages(given, thread=thread, key=None, secret=SECRET, now_us=self._clock.now_us())
        ask = self.record.asked(
            "append", project=project, thread=thread, subject=subject,
            messages=[{"key": f"{project}/{thread}/{key}" if key else None, "content": text} for text in texts],
        )  # fmt: skip
        append = Append(
            project=self.house.project(project).id, thread=thread, subject=subject, messages=messages,
            base=self.house.settings,
        )  # fmt: skip
        return append, ask

    def _text(self) -> str:
        """A sentence that nobody said before; some are long enough for several pages."""
        self._said += 1
        town = self._chance.choice(TOWNS)
        return f"I live in {town} now, said {self._said}. " + "And so on. " * self._chance.choice((0, 0, 3, 700))

    def end(self) -> None:
        project, thread = (
            self._chance.choice(self._projects),
            f"{self._chance.choice(SUBJECTS)}-{self._chance.randrange(2)}",
        )
        if self.house.store.read_now(find_thread, self.house.project(project).id, thread) is None:
            return
        ask = self.record.asked("end", project=project, thread=thread)
        self.house.store.write_now(request_end, self.house.project(project).id, thread, self.house.settings)
        self.record.told(ask)

    def work(self) -> None:
        for _ in range(self._chance.choice((1, 3, 8))):
            self.house.work(self._chance.choice((1.0, 1.0, 60.0, 1800.0)))

    def remember(self) -> None:
        project, subject, text = (
            self._chance.choice(self._projects),
            self._chance.choice(SUBJECTS),
            f"Note {self._text()[:60]}",
        )
        ask = self.record.asked("remember", project=project, subject=subject, text=text, key=None)
        stated = self.house.run(self.house.service(project).remember(text, subject=subject))
        number = parse_row_id("fct", stated.id)
        self._known.facts.append((project, number, text))
        self.record.told(ask, fact=number)

    def forget(self) -> None:
        if not self._known.facts:
            return
        project, fact, text = self._known.facts.pop(self._chance.randrange(len(self._known.facts)))
        ask = self.record.asked("forget", project=project, fact=fact, text=text, undo=False)
        self.house.run(self.house.service(project).forget(f"fct_{fact}"))
        self.record.told(ask)

    def acknowledge(self) -> None:
        project = self._chance.choice(self._projects)
        head = self.house.store.read_now(_head, self.house.project(project).id)
        upto = self._chance.randint(self._known.acked[project], head)
        ask = self.record.asked("ack", project=project, consumer="wiki", upto=upto)
        self.house.store.write_now(acknowledge, self.house.project(project).id, "wiki", upto)
        self._known.acked[project] = upto
        self.record.told(ask, cursor=upto)

    def erase(self) -> None:
        """One message, thread or subject. Facts of it are no longer spoken of by hand, as their numbers are gone."""
        project = self._chance.choice(self._projects)
        subject = self._chance.choice(SUBJECTS)
        thread = f"{subject}-{self._chance.randrange(2)}"
        kind = self._chance.choice(("event", "thread", "subject"))
        target, seq = self._target(kind, project, subject, thread)
        if target is None:
            return
        if kind == "subject":
            self._known.facts.clear()
        name = subject if kind == "subject" else thread
        ask = self.record.asked("erase", project=project, kind=kind, name=name, seq=seq)
        self.house.store.write_now(erase, self.house.project(project).id, target)
        self.record.told(ask)

    def _target(self, kind: str, project: str, subject: str, thread: str) -> tuple[Target | None, int | None]:
        number = self.house.project(project).id
        stream = self.house.store.read_now(find_thread, number, thread)
        if kind == "subject":
            found = self.house.store.read_now(find_subject, number, subject)
            return (None if found is None else SubjectTarget(subject=found)), None
        if stream is None:
            return None, None
        if kind == "thread":
            return StreamTarget(stream=stream.id), None
        seq = self._chance.randint(1, stream.last_seq)
        live = self.house.store.read_now(_is_live, stream.id, seq)
        return (EventTarget(stream=stream.id, seq=seq) if live else None), seq

    def erase_project(self, project: str) -> None:
        """The last thing that is done to it."""
        ask = self.record.asked("erase", project=project, kind="project", name=None, seq=None)
        self.house.store.write_now(erase, self.house.project(project).id, ProjectTarget())
        self.record.told(ask)
        self._projects.remove(project)
        self._known.keyed = [keyed for keyed in self._known.keyed if keyed[0] != project]
        self._known.facts = [fact for fact in self._known.facts if fact[0] != project]

    def restart(self) -> None:
        """The process ends and another begins; the log is moved into the file and removed."""
        self.house.close()
        self.start_again()

    def start_again(self) -> None:
        self._clock.advance(LEASE_S + 1)
        self.house = self._start()


def _head(conn: Connection, project: int) -> int:
    return int(conn.raw.execute("select change_seq from projects where id = ?", (project,)).fetchone()[0])


def _is_live(conn: Connection, stream: int, seq: int) -> bool:
    query = "select 1 from events where stream_id = ? and seq = ? and erased_at is null"
    return conn.raw.execute(query, (stream, seq)).fetchone() is not None
