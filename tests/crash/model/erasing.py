"""What is erased, and what that does to work in flight."""

from __future__ import annotations

from hypothesis.stateful import rule
from tests.crash.model.asking import (
    Asking,
    Unknown,
    picks,
    project_names,
    subject_names,
)
from tests.crash.model.oracle import Message, must
from tests.crash.model.process import words_of

from everkept.domain.erase import EventTarget, StreamTarget, SubjectTarget, Target
from everkept.errors import NotFound
from everkept.store.erase import erase
from everkept.store.projects import find_subject


class Erasing(Asking):
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
        must(isinstance(answer, Unknown), "G15", f"default erased {message.word} of other")

    def erase(self, project: str, target: Target, messages: list[Message]) -> None:
        number = self.numbers[project]
        in_flight = bool(self.process.rows("select 1 from jobs where state = 'leased' and project_id = ?", number))
        try:
            answer = self.ask(erase, number, target)
        except NotFound:
            return  # it went with what it was part of
        self.revive()
        if isinstance(answer, Unknown) and not self._is_erased(target):
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
