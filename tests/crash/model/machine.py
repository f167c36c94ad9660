"""The state machine: what clients, workers, providers, clocks and disks may do, one step at a time.

After each step safety is checked; at the end the faults stop, time passes, and everything must drain.
"""

from __future__ import annotations

import atexit
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.crash.model.oracle import Batch, Consumer, Message, Oracle, must
from tests.crash.model.process import Process, Worker, words_of
from tests.crash.model.provider import WEATHERS
from tests.crash.model.safety import Safety
from tests.crash.model.trouble import Killed
from tests.factories import open_store, settings_of

from everkept.capture.messages import Given, check_messages
from everkept.config import Settings
from everkept.domain.erase import EventTarget, StreamTarget, SubjectTarget, Target
from everkept.errors import KeyConflict, LeaseLost, NotFound, StoreFull, StoreUnavailable, SubjectConflict
from everkept.ports.clock import VirtualClock
from everkept.ports.faults import POINTS
from everkept.store.changes import acknowledge, find_cursor, lease_consumer, read_changes
from everkept.store.erase import erase
from everkept.store.facts import retire_by_hand
from everkept.store.jobs import discard_by_hand, release_by_hand, retry_by_hand
from everkept.store.projects import ensure_project, find_subject, update_project
from everkept.store.reprocess import Selection, reprocess_chunk
from everkept.store.settle import arm_chunk
from everkept.store.streams import Append, append_events, create_thread, find_thread, request_end, set_thread_settings
from everkept.store.writer import Writer

T = TypeVar("T")
SECRET = bytes(range(32))
PROJECTS = ("default", "other")
SUBJECTS = ("ana", "ben")
FULL_EVERY = 12
"""Steps between two looks at all contents."""
HOPS_MAX = 600
HOUR_S = 3600.0
STARTS = ("I live in Place ", "I like Place ", "I like Place ", "I live in Place ", "I work at Place ", "I like Place ")

project_names = st.sampled_from(("default", "default", "other"))
subject_names = st.sampled_from(SUBJECTS)
thread_numbers = st.integers(0, 2)
workers = st.integers(1, 3)
picks = st.integers(0, 1000)


class _Unknown:
    """No answer, or one that tells nothing: what was asked may be done or not."""


UNKNOWN = _Unknown()
REFUSALS = (KeyConflict, SubjectConflict, NotFound, LeaseLost)


@cache
def template() -> tuple[Path, Settings]:
    """(an empty database file with both projects, settings), made once."""
    home = Path(tempfile.mkdtemp(prefix="everkept-model-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    path = home / "empty.db"
    store = open_store(path, VirtualClock())
    for name in PROJECTS:
        store.write_now(ensure_project, name, SECRET, {})
    store.close()
    settings = settings_of(
        home, window__events_max=5, work__slots=3, work__lease_s=60, work__heartbeat_s=15, models__permits_max=4
    )
    return path, settings


class Model(RuleBasedStateMachine):
    tally: ClassVar[Counter[str]] = Counter()
    """What really happened, over all runs of this process."""

    def __init__(self) -> None:
        super().__init__()
        empty, self.base = template()
        self.directory = Path(tempfile.mkdtemp(prefix="run-", dir=empty.parent))
        path = self.directory / "everkept.db"
        shutil.copy(empty, path)
        self.clock = VirtualClock()
        self.oracle = Oracle()
        self.process = Process(path, self.clock, self.base, self.oracle, self.tally)
        self.numbers = {
            name: number for name, number in self.process.rows("select name, id from projects") if name in PROJECTS
        }
        self.safety = Safety(self.process, self.oracle, self.numbers, self.tally)
        self.steps = 0
        self.said = 0
        self.batches_made = 0

    # ---- asking the store, as a client

    def ask(self, function: Callable[..., T], *args: Any) -> T | _Unknown:
        """The answer; raises what is a definite refusal; UNKNOWN where the process or the disk failed."""
        store = self.process.store
        try:
            return store.write_now(function, *args)
        except Killed:
            self.process.die()
        except REFUSALS:
            raise
        except StoreFull:
            self.tally["told.full"] += 1
        except (StoreUnavailable, RuntimeError):
            self.tally["told.failed"] += 1
        return UNKNOWN

    def revive(self) -> None:
        if self.process.dead:
            self.process.restart()

    def count(self, what: str) -> None:
        self.tally[f"rule.{what}"] += 1

    # ---- saying things

    def make(
        self, project: str, subject: str, thread: str, size: int, *, keyed: bool, kind: int, late_s: float = 0.0,
        evidence: bool = True, tokens: int | None = None,
    ) -> Batch:  # fmt: skip
        self.batches_made += 1
        messages = []
        for n in range(size):
            self.said += 1
            word = f"zq{self.said:05d}x"
            start = STARTS[(kind + n) % len(STARTS)]
            messages.append(Message(
                project=project, thread=thread, subject=subject, word=word, text=f"{start}{word} these days.",
                evidence=evidence, occurred_us=self.clock.now_us() - int(late_s * 1e6) - self.said,
            ))  # fmt: skip
        key = f"batch-{self.batches_made}" if keyed else None
        return Batch(project=project, thread=thread, subject=subject, key=key, tokens=tokens, messages=messages)

    def wish(self, batch: Batch, *, other_body: bool = False) -> Append:
        given = [
            Given(
                role="user", content=m.text + (" No: elsewhere." if other_body else ""), evidence=m.evidence,
                tokens=batch.tokens, occurred_at=datetime.fromtimestamp(0, UTC) + timedelta(microseconds=m.occurred_us),
            )
            for m in batch.messages
        ]  # fmt: skip
        messages = check_messages(given, thread=batch.thread, key=batch.key, secret=SECRET, now_us=self.clock.now_us())
        return Append(
            project=self.numbers[batch.project], thread=batch.thread, subject=batch.subject, messages=messages,
            base=self.base,
        )  # fmt: skip

    def memory_on(self, project: str, thread: str) -> bool:
        row = self.process.rows(
            "select p.settings, s.settings from projects p left join streams s on s.project_id = p.id and s.name = ?"
            " and s.erased_at is null where p.id = ?", thread, self.numbers[project],
        )[0]  # fmt: skip
        settings = {**json.loads(row[0]), **json.loads(row[1] or "{}")}
        return bool(settings.get("memory.enabled", True))

    def send(self, batch: Batch) -> None:
        """The first time."""
        on = self.memory_on(batch.project, batch.thread)
        for message in batch.messages:
            message.said_while_off = not on
        answer = self.ask(append_events, self.wish(batch))
        self.settle_send(batch, answer)

    def settle_send(self, batch: Batch, answer: Any) -> None:
        if isinstance(answer, _Unknown):
            self.revive()
            told = self.look_for(batch)
            self.tally["append.unknown_kept" if told else "append.unknown_lost"] += 1
            if not told:
                return
        else:
            must(
                not any(a.replayed for a in answer), "G2", f"{batch.key} was answered as a replay at its first sending"
            )
            told = [((a.stream, a.seq), a.recorded_at) for a in answer]
            self.tally["append.stored"] += 1
        self.oracle.accepted(batch, told)
        for message in batch.messages[:1]:
            self.safety.is_found(message)

    def look_for(self, batch: Batch) -> list[Any]:
        """After a lost answer: the whole batch is there, or nothing of it."""
        told = []
        for message in batch.messages:
            told += [((s, q), at) for s, q, at in self.process.rows(
                "select stream_id, seq, recorded_at from events where project_id = ? and content = ?",
                self.numbers[batch.project], message.text)]  # fmt: skip
        must(len(told) in (0, len(batch.messages)), "G1", f"{len(told)} of {len(batch.messages)} messages were kept")
        return told

    @rule(
        project=project_names, subject=subject_names, n=thread_numbers, size=st.integers(1, 4), keyed=st.booleans(),
        kind=st.integers(0, 5), late_s=st.sampled_from((0.0, 0.0, 600.0, 90_000.0)),
    )  # fmt: skip
    def append(
        self, project: str, subject: str, n: int, size: int, keyed: bool, kind: int, late_s: float
    ) -> None:  # fmt: skip
        self.count("append")
        self.send(self.make(project, subject, f"{subject}-{n}", size, keyed=keyed, kind=kind, late_s=late_s))

    @rule(subject=subject_names, n=thread_numbers, what=st.sampled_from(("no_evidence", "long", "full")))
    def append_odd(self, subject: str, n: int, what: str) -> None:
        """A recalled context, a message over the limit of a window, a batch that fills windows."""
        self.count("append_odd")
        self.send(self.make(
            "default", subject, f"{subject}-{n}", 11 if what == "full" else 1, keyed=True, kind=0,
            evidence=what != "no_evidence", tokens=30_000 if what == "long" else None,
        ))  # fmt: skip

    @rule(pick=picks)
    def replay(self, pick: int) -> None:
        self.count("replay")
        batch = self.pick_batch(pick)
        if batch is None:
            return
        answer: Any = self.ask(append_events, self.wish(batch))
        if isinstance(answer, _Unknown):
            return
        must(all(a.replayed for a in answer), "G2", f"a replay of {batch.key} stored something")
        self.oracle.replayed(batch, [((a.stream, a.seq), a.recorded_at) for a in answer])
        self.tally["replay.erased" if any(m.erased for m in batch.messages) else "replay.same"] += 1

    @rule(pick=picks)
    def reuse_key(self, pick: int) -> None:
        """The same key with another body."""
        self.count("reuse_key")
        batch = self.pick_batch(pick)
        if batch is None or any(m.erased for m in batch.messages):
            return
        try:
            answer = self.ask(append_events, self.wish(batch, other_body=True))
        except KeyConflict:
            self.tally["told.409"] += 1
            return
        must(isinstance(answer, _Unknown), "G2", f"{batch.key} was taken with another body")

    def pick_batch(self, pick: int) -> Batch | None:
        keyed = [b for b in self.oracle.batches if b.key is not None]
        return keyed[pick % len(keyed)] if keyed else None

    @rule(subject=subject_names, n=thread_numbers)
    def append_for_another(self, subject: str, n: int) -> None:
        """To a thread that belongs to somebody else."""
        self.count("append_for_another")
        thread = f"{subject}-{n}"
        if self.process.store.read_now(find_thread, self.numbers["default"], thread) is None:
            return
        batch = self.make("default", "eve", thread, 1, keyed=False, kind=0)
        try:
            answer = self.ask(append_events, self.wish(batch))
        except SubjectConflict:
            self.tally["told.other_subject"] += 1
            return
        must(isinstance(answer, _Unknown), "G15", f"{thread} of {subject} took a message of eve")

    @rule(
        sizes=st.lists(st.integers(1, 2), min_size=2, max_size=3), subject=subject_names, between=st.booleans(),
        trouble=st.sampled_from((None, "full", "full", "kill")), at=st.integers(1, 25),
    )  # fmt: skip
    def append_together(
        self, sizes: list[int], subject: str, between: bool, trouble: str | None, at: int
    ) -> None:  # fmt: skip
        """Several clients in one group of the writer; the disk may be full in the middle of it."""
        self.count("append_together")
        writer: Writer = self.process.store.writer
        batches = [
            self.make("default", subject, f"{subject}-{n}", size, keyed=True, kind=n) for n, size in enumerate(sizes)
        ]
        for batch in batches:
            on = self.memory_on(batch.project, batch.thread)
            for message in batch.messages:
                message.said_while_off = not on
        if trouble is not None:
            self.process.trouble.arm(trouble, at)
        futures = []
        for batch in batches:
            futures.append(writer.submit(append_events, self.wish(batch)))
            if between:
                writer.submit(_touch)
        try:
            while writer.step():
                pass
        except Killed:
            self.process.die()
        spared = self.process.trouble.spared_control
        self.process.trouble.calm()
        answers = [self._answer(future) for future in futures]
        if spared and not self.process.dead:
            self.tally["group.full_inside"] += 1
            lost = [b.key for b, a in zip(batches, answers, strict=True) if isinstance(a, _Unknown)]
            must(not lost, "G1", f"the disk was full once inside a group, and {lost} were not run again alone")
        self.revive()
        for batch, answer in zip(batches, answers, strict=True):
            self.settle_send(batch, answer)

    def _answer(self, future: Any) -> Any:
        if not future.done():
            return UNKNOWN
        error = future.exception()
        if error is None:
            return future.result()
        must(isinstance(error, StoreUnavailable | RuntimeError), "G1", f"an append was answered {error!r}")
        return UNKNOWN

    @rule(project=project_names, subject=subject_names, n=st.integers(0, 4))
    def create(self, project: str, subject: str, n: int) -> None:
        """A new thread pulls the armed timers of its siblings forward, to five minutes from now at the latest."""
        self.count("create_thread")
        number, thread = self.numbers[project], f"{subject}-{n}"
        new = self.process.store.read_now(find_thread, number, thread) is None
        answer = self.ask(create_thread, number, thread, subject, "{}", self.base)
        if isinstance(answer, _Unknown) or not new:
            return
        limit = self.clock.now_us() + int(self.base.window.sibling_pull_s * 1e6)
        late = self.process.rows(
            "select j.key, j.due_at from jobs j join streams s on j.key = cast(s.id as text)"
            " where j.kind = 'open_window' and j.state in ('waiting', 'ready') and s.subject_id = ?"
            " and s.covered_seq < s.last_seq and j.due_at > ?",
            answer.subject, limit,
        )  # fmt: skip
        must(not late, "G3", f"the timers {late} were not pulled to {limit}")
        self.tally["pulled"] += 1

    @rule(project=project_names, subject=subject_names, n=thread_numbers)
    def end(self, project: str, subject: str, n: int) -> None:
        self.count("end")
        try:
            self.ask(request_end, self.numbers[project], f"{subject}-{n}", self.base)
        except NotFound:
            return

    # ---- settings

    @rule(project=project_names, what=st.sampled_from(("off", "on", "idle_null", "idle")))
    def set_project(self, project: str, what: str) -> None:
        self.count("set_project")
        choices: dict[str, dict[str, Any]] = {
            "off": {"memory.enabled": False}, "on": {}, "idle_null": {"window.idle_s": None},
            "idle": {"window.idle_s": 600},
        }  # fmt: skip

        def change(conn: Any) -> None:
            update_project(conn, project, None, choices[what])
            arm_chunk(conn, self.numbers[project], self.base, 0)

        self.ask(change)

    @rule(subject=subject_names, n=thread_numbers, what=st.sampled_from(("off", "on", "idle_null", "none")))
    def set_thread(self, subject: str, n: int, what: str) -> None:
        self.count("set_thread")
        settings = {
            "off": '{"memory.enabled": false}', "on": '{"memory.enabled": true}',
            "idle_null": '{"window.idle_s": null}', "none": "{}",
        }[what]  # fmt: skip
        try:
            self.ask(set_thread_settings, self.numbers["default"], f"{subject}-{n}", settings, self.base)
        except NotFound:
            return

    # ---- time and weather

    @rule(seconds=st.sampled_from((1.0, 5.0, 20.0, 61.0, 100.0, 400.0)), beating=st.booleans())
    def tick(self, seconds: float, beating: bool) -> None:
        """Time passes; the workers' hearts beat meanwhile, or all of them are frozen."""
        self.count("tick")
        self.pass_time(seconds, beating=beating)

    @rule(hours=st.sampled_from((0.6, 0.6, 5.0, 30.0)))
    def long_pause(self, hours: float) -> None:
        """Nobody runs anything for so long, but the provider answers or times out."""
        self.count("long_pause")
        self.pass_time(hours * HOUR_S, beating=False)

    def pass_time(self, seconds: float, *, beating: bool) -> None:
        step = 10.0 if beating else seconds
        while seconds > 0 and not self.process.dead:
            self.clock.advance(min(step, seconds))
            seconds -= step
            if beating:
                for worker in self.process.living:
                    self.process.beat(worker)
        if not self.process.dead:
            self.process.settle()

    @rule(seconds=st.sampled_from((-3600.0, -70.0, -5.0, 5.0, 70.0, 3600.0)))
    def step_wall(self, seconds: float) -> None:
        """Somebody sets the clock."""
        self.count("step_wall")
        self.clock.step_wall(seconds)
        if seconds < 0:
            self.oracle.clock_set_back()

    @rule(weather=st.sampled_from(("fine", "fine", "late", "late", *WEATHERS)))
    def change_weather(self, weather: str) -> None:
        self.count("weather")
        self.process.provider.weather = weather

    @rule(pick=picks, calls=st.sampled_from((0, 1, None)))
    def answer_late(self, pick: int, calls: int | None) -> None:
        """A question that hung is answered, whatever became of who asked; the worker may be frozen since."""
        late = self.process.provider.late
        if not late:
            return
        self.count("answer_late")
        waiting, _ = late[pick % len(late)]
        if not waiting.done():
            waiting.set_result(None)
        self.process.settle()
        for worker in self.process.living:
            self.process.move(worker, calls)

    # ---- workers

    @rule(number=workers, calls=st.sampled_from((0, 1, 2, 4, 8, None, None, None)))
    def work(self, number: int, calls: int | None) -> None:
        """One round of a worker: promote, claim, start; its jobs then do so many store calls."""
        self.count("work")
        self.process.look_for_work(self.process.worker(number), calls)

    @rule(number=workers, calls=st.sampled_from((1, 2, 3, 6, None)))
    def move(self, number: int, calls: int | None) -> None:
        """A worker does some more of what it has begun, without looking at anything new."""
        self.count("move")
        self.process.move(self.process.worker(number), calls)

    @rule(number=workers)
    def work_on(self, number: int) -> None:
        """A worker as it is when all is well: rounds until nothing is due."""
        self.count("work_on")
        worker = self.process.worker(number)
        for _ in range(8):
            if not worker.alive or not self.process.look_for_work(worker, None):
                return

    @rule(number=workers, weather=st.sampled_from(("fine", "fine", "late", "refusal", "garbage", "error", "down")))
    def live(self, number: int, weather: str) -> None:
        """Half an hour in which a worker does all that comes up, in this weather."""
        self.count("live")
        self.process.provider.weather = weather
        worker = self.process.worker(number)
        for seconds in (1000.0, 900.0, 61.0):
            self.clock.advance(seconds)
            self.process.settle()
            self.process.beat(worker)
            self.process.maintain(worker)
            for _ in range(8):
                if not worker.alive or not self.process.look_for_work(worker, None):
                    break

    @rule(number=workers)
    def beat(self, number: int) -> None:
        self.count("beat")
        self.process.beat(self.process.worker(number))

    @rule(number=workers)
    def kill_worker(self, number: int) -> None:
        """Between two calls; the others and the store go on."""
        self.count("kill_worker")
        worker = self.process.worker(number)
        self.tally["killed.busy"] += bool(worker.tasks)
        worker.kill()
        self.process.settle()

    @rule(number=workers)
    def sweep(self, number: int) -> None:
        self.count("sweep")
        self.process.maintain(self.process.worker(number))

    @rule(polite=st.booleans())
    def restart(self, polite: bool) -> None:
        self.count("restart")
        if polite:
            self.process.stop_and_start()
        else:
            self.process.restart()

    @rule(kind=st.sampled_from(("kill", "kill", "full")), statements=st.integers(1, 60))
    def arm_trouble(self, kind: str, statements: int) -> None:
        """The process dies, or the disk is full, at a statement that is not far."""
        self.count("arm_trouble")
        self.process.trouble.arm(kind, statements)

    @rule(kind=st.sampled_from(("kill", "fail")), point=st.sampled_from(POINTS))
    def arm_point(self, kind: str, point: str) -> None:
        self.count("arm_point")
        self.process.trouble.arm_point(kind, point)

    # ---- by hand

    @rule(pick=picks)
    def retry_dead(self, pick: int) -> None:
        dead = self.process.rows("select id, project_id from jobs where state = 'dead' order by id")
        if not dead:
            return
        self.count("retry_by_hand")
        job, project = dead[pick % len(dead)]
        if self.ask(retry_by_hand, project, job) is True or (self.process.job(job) or ("",))[0] != "dead":
            self.oracle.unreported[job] = 0
            self.oracle.hand_retries += 1
            self.tally["hand.retried"] += 1

    @rule(pick=picks, discard=st.booleans())
    def take_lease(self, pick: int, discard: bool) -> None:
        """A hand ends a lease, or gives up the job with it: the old holder is refused."""
        leased = self.process.rows("select id, project_id, fence, kind from jobs where state = 'leased' order by id")
        leased = [row for row in leased if row[3] != "erase_scope" or not discard]
        if not leased:
            return
        self.count("take_lease")
        job, project, fence, kind = leased[pick % len(leased)]
        discard = discard and kind in ("summarise_episode", "extract_facts")
        if discard:
            self.ask(discard_by_hand, project, job, "by hand")
        else:
            self.ask(release_by_hand, project, job)
        self.revive()
        row = self.process.job(job)
        assert row is not None
        if row[3] != fence:
            lease = self.oracle.leases.get(job)
            if lease is not None:
                lease.taken = True
            self.oracle.unreported[job] = 0 if discard else max(0, self.oracle.unreported[job] - 1)
            self.oracle.fences[job] = row[3]
            self.tally["hand.discarded" if discard else "hand.released"] += 1

    @rule(project=project_names, fresh=st.booleans(), include_skipped=st.booleans())
    def reprocess(self, project: str, fresh: bool, include_skipped: bool) -> None:
        self.count("reprocess")
        selection = Selection(
            project=self.numbers[project], stream=None, subject=None, since=None, until=None,
            include_skipped=include_skipped, fresh=fresh, model=self.process.provider.name,
        )  # fmt: skip
        mine = [m for m in self.oracle.messages.values() if m.project == project]
        if include_skipped:
            for message in mine:
                message.maybe_captured = True
            self.oracle.ask_afresh(words_of(mine))
        if fresh:
            self.oracle.ask_afresh(words_of(mine))
        self.ask(reprocess_chunk, selection, None)
        self.revive()
        # What was given up before is taken up again where its job is scheduled once more.
        for (job,) in self.process.rows("select id from jobs where state = 'waiting' and crashes = 0"):
            if self.oracle.unreported[job] and job not in self.oracle.leases:
                self.oracle.unreported[job] = 0

    @rule(pick=picks, undo=st.booleans())
    def forget(self, pick: int, undo: bool) -> None:
        """Retire one fact by hand, or bring it back."""
        facts = self.process.rows(
            "select f.id, f.project_id, f.text, f.retired_by_hand from facts f join subjects u on u.id = f.subject_id"
            " where u.erased_at is null and f.retired_by_hand = ? order by f.id", int(undo),
        )  # fmt: skip
        if not facts:
            return
        self.count("forget")
        fact, project, text, _ = facts[pick % len(facts)]
        word = text.split()[-1].rstrip(".")
        self.ask(retire_by_hand, project, fact, None if undo else "by hand")
        self.revive()
        by_hand = self.process.value("select retired_by_hand from facts where id = ?", fact)
        if by_hand:
            self.oracle.forgotten.add(word)
        else:
            self.oracle.forgotten.discard(word)
        self.tally["undone" if undo else "forgotten"] += 1

    # ---- erasing

    @rule(pick=picks)
    def erase_event(self, pick: int) -> None:
        messages = [m for m in self.oracle.messages.values() if not m.erased]
        if not messages:
            return
        self.count("erase_event")
        message = messages[pick % len(messages)]
        assert message.place is not None
        stream, seq = message.place
        self.erase(message.project, EventTarget(stream=stream, seq=seq), [message])

    @rule(pick=picks)
    def erase_thread(self, pick: int) -> None:
        streams = [s for s in self.oracle.logs if s not in self.oracle.erased_streams]
        if not streams:
            return
        self.count("erase_thread")
        stream = streams[pick % len(streams)]
        project, _ = self.oracle.owner[stream]
        self.erase(project, StreamTarget(stream=stream), self.oracle.logs[stream])

    @rule(project=project_names, subject=subject_names)
    def erase_subject(self, project: str, subject: str) -> None:
        number = self.process.store.read_now(find_subject, self.numbers[project], subject)
        if number is None:
            return
        self.count("erase_subject")
        self.erase(project, SubjectTarget(subject=number), self.oracle.of_subject(project, subject))

    @rule(pick=picks)
    def erase_elsewhere(self, pick: int) -> None:
        """A message of the other project: there is no such thing here (G15)."""
        other = [m for m in self.oracle.messages.values() if m.project == "other" and not m.erased]
        if not other:
            return
        self.count("erase_elsewhere")
        message = other[pick % len(other)]
        assert message.place is not None
        try:
            answer = self.ask(
                erase, self.numbers["default"], EventTarget(stream=message.place[0], seq=message.place[1])
            )
        except NotFound:
            self.tally["foreign.erase_refused"] += 1
            return
        must(isinstance(answer, _Unknown), "G15", f"default erased {message.word} of other")

    def erase(self, project: str, target: Target, messages: list[Message]) -> None:
        number = self.numbers[project]
        in_flight = bool(self.process.rows("select 1 from jobs where state = 'leased' and project_id = ?", number))
        try:
            answer = self.ask(erase, number, target)
        except NotFound:
            return  # it went with what it was part of
        self.revive()
        if isinstance(answer, _Unknown) and not self._is_erased(target):
            return
        self.tally["erased.in_flight"] += in_flight
        self.tally[f"erased.{type(target).__name__}"] += 1
        subjects = {m.subject for m in messages}
        touched = [m for s in subjects for m in self.oracle.of_subject(project, s)]
        self.oracle.ask_afresh(words_of(touched))
        self.oracle.erase(messages)
        if not isinstance(target, EventTarget):
            self.oracle.erased_streams |= {m.place[0] for m in messages if m.place is not None}
        self._leases_end(number)
        self.safety.is_not_found(messages[:4])

    def _is_erased(self, target: Target) -> bool:
        match target:
            case EventTarget(stream=stream, seq=seq):
                sql, params = "select erased_at from events where stream_id = ? and seq = ?", (stream, seq)
            case StreamTarget(stream=stream):
                sql, params = "select erased_at from streams where id = ?", (stream,)  # type: ignore[assignment]
            case SubjectTarget(subject=subject):
                sql, params = "select erased_at from subjects where id = ?", (subject,)  # type: ignore[assignment]
            case _:
                raise AssertionError(target)
        return self.process.value(sql, *params) is not None

    def _leases_end(self, project: int) -> None:
        """Work that may have read what is erased may be refused; what was taken from it is refused for certain."""
        now = {job: (state, fence, crashes) for job, state, fence, crashes in self.process.rows(
            "select id, state, fence, crashes from jobs")}  # fmt: skip
        for job, lease in list(self.oracle.leases.items()):
            if lease.project != project:
                continue
            lease.erased_beside = True
            if job not in now or now[job][0] != "leased" or now[job][1] != lease.fence:
                lease.taken = True
        for job, (state, fence, _) in now.items():
            if fence > self.oracle.fences.get(job, fence):
                self.oracle.fences[job] = fence
                self.oracle.unreported[job] = 0 if state == "discarded" else max(0, self.oracle.unreported[job] - 1)

    # ---- consumers (G11)

    @rule(name=st.sampled_from(("wiki", "hook")), owner=st.sampled_from(("a", "b")), limit=st.integers(1, 12))
    def consume(self, name: str, owner: str, limit: int) -> None:
        """Lease the consumer and read what follows its cursor."""
        self.count("consume")
        known = self.oracle.consumers.setdefault(("default", name), Consumer())
        number = self.numbers["default"]
        fence = self.ask(lease_consumer, number, name, owner, 60.0)
        if isinstance(fence, _Unknown):
            return
        if fence is None:
            self.tally["consumer.busy"] += 1
            return
        self.consumer_fences[name, owner] = fence
        cursor = self.process.store.read_now(find_cursor, number, name)
        must(cursor == known.cursor, "G11", f"{name} acknowledged {known.cursor}, its cursor is {cursor}")
        rows, head = self.process.store.read_now(read_changes, number, cursor, limit)
        seqs = [r[0] for r in rows]
        must(seqs == list(range(cursor + 1, cursor + 1 + len(rows))), "G11", f"after {cursor} {name} was given {seqs}")
        must(len(rows) == min(limit, head - cursor), "G11", f"{name} was given {len(rows)} changes of {head - cursor}")
        for seq, kind, *_ in rows:
            before = known.seen.setdefault(seq, (kind, ""))
            must(before[0] == kind, "G11", f"change {seq} was {before[0]}, and is {kind} when offered again")
            self.tally["change.offered_again"] += seq <= known.offered
        known.offered = max(known.offered, seqs[-1] if seqs else cursor)

    @rule(
        name=st.sampled_from(("wiki", "hook")), owner=st.sampled_from(("a", "b")),
        part=st.sampled_from(("all", "some", "old", "beyond")), pick=picks,
    )  # fmt: skip
    def acknowledge(self, name: str, owner: str, part: str, pick: int) -> None:
        """All of what was offered, a part of it, an old place again, or what does not exist."""
        fence = self.consumer_fences.get((name, owner))
        known = self.oracle.consumers.get(("default", name))
        if fence is None or known is None:
            return
        self.count("acknowledge")
        number = self.numbers["default"]
        head = self.process.value("select change_seq from projects where id = ?", number)
        upto = {
            "all": known.offered, "some": known.cursor + pick % max(1, known.offered - known.cursor + 1),
            "old": pick % max(1, known.cursor), "beyond": head + 1 + pick,
        }[part]  # fmt: skip
        held = self.process.rows(
            "select 1 from consumers where project_id = ? and name = ? and fence = ? and lease_until > ?",
            number, name, fence, self.clock.now_us(),
        )  # fmt: skip
        try:
            answer = self.ask(acknowledge, number, name, upto, fence)
        except NotFound:
            must(upto > head, "G11", f"{upto} of {head} could not be acknowledged")
            self.tally["ack.beyond_refused"] += 1
            answer = known.cursor
        except LeaseLost:
            must(not held, "G11", f"{name}/{owner} holds its lease and was refused")
            self.tally["ack.refused"] += 1
            answer = known.cursor
        else:
            must(upto <= head or isinstance(answer, _Unknown), "G11", f"{name} acknowledged {upto} of {head}")
        self.revive()
        cursor = self.process.value(
            "select cursor from consumers where project_id = ? and name = ?", number, name
        )  # fmt: skip
        if isinstance(answer, _Unknown):
            must(cursor in (known.cursor, max(known.cursor, upto)), "G11", f"the cursor of {name} is {cursor}")
        elif held and upto <= head:
            must(cursor == max(known.cursor, upto), "G11", f"{name} acknowledged {upto}, its cursor is {cursor}")
            self.tally[f"ack.{part}"] += 1
        else:
            must(cursor == known.cursor, "G11", f"the cursor of {name} moved from {known.cursor} to {cursor}")
        known.cursor = cursor

    @property
    def consumer_fences(self) -> dict[tuple[str, str], int]:
        if not hasattr(self, "_fences"):
            self._fences: dict[tuple[str, str], int] = {}
        return self._fences

    # ---- after each step

    @invariant()
    def safe(self) -> None:
        self.revive()
        self.nothing_was_seen()
        if self.steps:
            self.safety.quick()
        self.steps += 1
        self.tally["steps"] += 1
        if self.steps % FULL_EVERY == 0:
            self.safety.full()

    def nothing_was_seen(self) -> None:
        """What was found inside a worker's task, whose runner has booked it as any failure."""
        if self.process.violations:
            raise self.process.violations[0]

    # ---- at the end

    def teardown(self) -> None:
        try:
            if not self._failed():
                self.drain()
                self.tally["runs"] += 1
        finally:
            self.process.close()
            shutil.rmtree(self.directory, ignore_errors=True)

    def _failed(self) -> bool:
        return sys.exc_info()[0] is not None

    def drain(self) -> None:
        """The faults stop, time passes: every receipt becomes final, and nothing is left over."""
        self.process.trouble.calm()
        self.revive()
        self.process.provider.weather = "fine"
        for waiting, _ in list(self.process.provider.late):
            if not waiting.done():
                waiting.set_result(None)
        self.process.settle()
        for worker in self.process.living:  # whoever was frozen comes back, and tries to finish
            self.process.move(worker, None)
        self.safety.quick()
        worker = self.process.worker(1)
        self._until_quiet(worker)
        self.nothing_was_seen()
        self.clock.advance(25 * HOUR_S)  # the sweep for abandoned threads is the last that has anything to do
        self._until_quiet(worker)
        self.safety.quick()
        self.safety.full()
        self.nothing_was_seen()
        self._everything_is_final()
        self.safety.not_in_the_file()

    def _until_quiet(self, worker: Worker) -> None:
        for _ in range(HOPS_MAX):
            self.process.beat(worker)
            self.process.maintain(worker)
            while self.process.look_for_work(worker, None):
                pass
            busy, following = self.process.rows(
                "select count(*), min(case when lease_until > ? then lease_until when due_at > ? then due_at end)"
                " from jobs where state in ('waiting', 'ready', 'leased')", *[self.clock.now_us()] * 2,
            )[0]  # fmt: skip
            if not busy:
                return
            wait_s = 5.0 if following is None else max(1.0, (following - self.clock.now_us()) / 1e6 + 0.001)
            self.clock.advance(wait_s)
        left = self.process.rows(
            "select kind, key, state, error from jobs where state not in ('done', 'dead', 'discarded')"
        )
        must(False, "G3", f"still busy after {HOPS_MAX} looks: {left}")

    def _everything_is_final(self) -> None:
        for stream, n, covered, settings, of_project in self.process.rows(
            "select s.id, s.last_seq, s.covered_seq, s.settings, p.settings from streams s"
            " join projects p on p.id = s.project_id where s.erased_at is null"
        ):
            now = {"memory.enabled": True, "window.idle_s": 0, **json.loads(of_project), **json.loads(settings)}
            if not now["memory.enabled"] or now["window.idle_s"] is not None:
                dead = self.process.rows("select 1 from jobs where kind = 'open_window' and key = ? and state = 'dead'",
                                         str(stream))  # fmt: skip
                must(n == covered or bool(dead), "G5", f"stream {stream} is covered through {covered} of {n} for ever")
        for project in PROJECTS:
            for message, receipt in self.safety.receipts(project):
                waits = receipt.state in ("accepted", "searchable", "embedded")
                if waits and not message.erased:
                    must("idle_s is null" in (receipt.reason or ""), "G3", f"{message.word} never ends: {receipt}")
                self.tally[f"final.{receipt.state}"] += 1
        left = self.process.rows("select kind, subject_id, stream_id, seq from erasures where done_at is null")
        must(not left, "G10", f"the erases {left} never end")
        open_pairs = self.process.rows(
            "select v.subject_id from verdicts v where v.verdict is null and not exists (select 1 from jobs j"
            " where j.kind = 'judge_conflicts' and j.key = cast(v.subject_id as text) and j.state = 'dead')"
        )
        must(not open_pairs, "G9", f"conflicts of {open_pairs} wait for ever")


def _touch(conn: Any) -> int:
    """Another caller's command between two appends."""
    return int(conn.raw.execute("update counters set value = value where name = 'virtual'").rowcount)
