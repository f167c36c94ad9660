"""What clients say, under which keys and settings, and what they are told."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule
from tests.crash.model.asking import (
    SECRET,
    UNKNOWN,
    Asking,
    Unknown,
    picks,
    project_names,
    subject_names,
    thread_numbers,
)
from tests.crash.model.oracle import Batch, Message, must
from tests.crash.model.trouble import Killed

from everkept.capture.messages import Given, check_messages
from everkept.errors import KeyConflict, NotFound, StoreUnavailable, SubjectConflict
from everkept.store.projects import update_project
from everkept.store.settle import arm_chunk
from everkept.store.streams import Append, append_events, create_thread, find_thread, request_end, set_thread_settings
from everkept.store.writer import Writer

STARTS = ("I live in Place ", "I like Place ", "I like Place ", "I live in Place ", "I work at Place ", "I like Place ")


class Saying(Asking):
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
        if isinstance(answer, Unknown):
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
        if isinstance(answer, Unknown):
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
        must(isinstance(answer, Unknown), "G2", f"{batch.key} was taken with another body")

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
        must(isinstance(answer, Unknown), "G15", f"{thread} of {subject} took a message of eve")

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
            lost = [b.key for b, a in zip(batches, answers, strict=True) if isinstance(a, Unknown)]
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
        if isinstance(answer, Unknown) or not new:
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


def _touch(conn: Any) -> int:
    """Another caller's command between two appends."""
    return int(conn.raw.execute("update counters set value = value where name = 'virtual'").rowcount)
