"""What happens in the projects, and to the process: words, erases, merges, time, work and deaths."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule
from tests.crash.model.deliveries.clients import (
    PROJECTS,
    SECRET,
    SUBJECTS,
    Clients,
    Unknown,
    picks,
    projects,
)
from tests.crash.model.oracle import must

from everkept.capture.messages import Given, check_messages
from everkept.domain.erase import EventTarget, StreamTarget
from everkept.errors import Conflict, NotFound, Unavailable
from everkept.store.erase import erase
from everkept.store.merge import begin_merge
from everkept.store.streams import Append, append_events

workers = st.integers(1, 2)


class Happenings(Clients):
    @rule(project=projects, subject=st.sampled_from(SUBJECTS), n=st.integers(0, 1), size=st.integers(1, 3))
    def say(self, project: str, subject: str, n: int, size: int) -> None:
        self.count("say")
        number = self.number(project)
        given = [Given(role="user", content=f"I like Place zq{self.steps:05d}x {k} in {project}.") for k in range(size)]
        messages = check_messages(
            given, thread=f"{subject}-{n}", key=None, secret=SECRET, now_us=self.clock.now_us()
        )  # fmt: skip
        batch = Append(project=number, thread=f"{subject}-{n}", subject=subject, messages=messages, base=self.settings)
        try:
            answer: Any = self.ask(append_events, batch)
        except (Unavailable, Conflict):  # its thread is on its way here, or is another subject's since a merge
            self.tally["say.refused"] += 1
            return
        if not isinstance(answer, Unknown):
            for each in answer:
                self.said[each.stream] = max(self.said.get(each.stream, 0), each.seq)

    @rule(pick=picks, whole=st.booleans())
    def erase(self, pick: int, whole: bool) -> None:
        rows = self.office.rows(
            "select s.project_id, e.stream_id, e.seq from events e join streams s on s.id = e.stream_id"
            " where e.erased_at is null and s.erased_at is null order by 2, 3"
        )
        if not rows:
            return
        self.count("erase")
        project, stream, seq = rows[pick % len(rows)]
        target = StreamTarget(stream=stream) if whole else EventTarget(stream=stream, seq=seq)
        try:
            self.ask_of(project, erase, target)
        except Conflict:
            must(self._is_merging(project), "G10", f"nothing of project {project} could be erased")
            self.tally["erase.refused"] += 1
        except NotFound:
            return

    @rule(source=st.sampled_from(("other", "third")), into=st.sampled_from(PROJECTS))
    def merge(self, source: str, into: str) -> None:
        self.count("merge")
        one, other = self.numbers[source], self.number(into)
        was_merged, busy = one in self.merged, self._is_merging(one) or self._is_merging(other)
        erasing = self.office.value("select count(*) from erasures where done_at is null")
        try:
            self.ask(begin_merge, source, into)
        except Conflict:
            must(was_merged or one == other or busy or bool(erasing), "G12", f"{source} cannot be merged into {into}")
            self.tally["merge.refused"] += 1
            return
        self._note_merges()

    def _is_merging(self, project: int) -> bool:
        return bool(self.office.value(
            "select count(*) from merges where done_at is null and ? in (source_id, target_id)", project))  # fmt: skip

    def _note_merges(self) -> None:
        for source, target in self.office.rows("select id, merged_into from projects where merged_into is not null"):
            if source not in self.merged:
                self.tally["merge.begun"] += 1
                self.merged[source] = target
                self.lineage[target] |= self.lineage[source]
        for source in self.merged:  # those that were merged into one that was merged itself mean the last one
            while self.merged[source] in self.merged:
                self.merged[source] = self.merged[self.merged[source]]

    # ---- time, work, and what goes wrong

    @rule(seconds=st.sampled_from((5.0, 30.0, 61.0, 130.0, 4000.0)))
    def tick(self, seconds: float) -> None:
        self.count("tick")
        self.clock.advance(seconds)
        self.office.settle()

    @rule(number=workers, calls=st.sampled_from((1, 2, 5, None, None)))
    def work(self, number: int, calls: int | None) -> None:
        """One round of a worker: erases and merges go on by so many chunks."""
        self.count("work")
        self.office.look_for_work(self.office.worker(number), calls)

    @rule(number=workers, calls=st.sampled_from((1, 3, 9, None)))
    def move(self, number: int, calls: int | None) -> None:
        self.count("move")
        self.office.move(self.office.worker(number), calls)

    @rule(polite=st.booleans())
    def restart(self, polite: bool) -> None:
        self.count("restart")
        if polite:
            self.office.stop_senders()
            if not self.office.dead:
                self.office.stop_and_start()
                self.receivers.hanging.clear()
        else:
            self.office.die()

    @rule(kind=st.sampled_from(("kill", "kill", "full")), statements=st.integers(1, 40))
    def arm_trouble(self, kind: str, statements: int) -> None:
        """The process dies, or the disk is full, at a statement that is not far."""
        self.count("arm_trouble")
        self.office.trouble.arm(kind, statements)
