"""Puts a reading together, line by line: one event for one thing, however many lines tell of it."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, Final

from everkept.capture.agents.drafts import CallDraft
from everkept.capture.agents.markers import is_ours
from everkept.capture.agents.reading import Line, Reading
from everkept.capture.agents.records import Record, bounded, load, time_us
from everkept.domain.session import AgentEvent, Kind, is_unique_by_itself, natural_key, shortened


class Taken(Enum):
    """What a line was good for; anything else is the reason why it was passed by."""

    USED = "used"
    MERGED = "merged"
    UNREADABLE = "unreadable"


Verdict = Taken | str
REASON_CHARS_MAX: Final = 80
KEY_ID_CHARS_MAX: Final = 128
_PLAIN = re.compile(r"[\x21-\x7e]+")
_TIMES: Final = ("timestamp", "time")


def strongest(*verdicts: Verdict) -> Verdict:
    """The verdict on a line that tells of several things; the first reason where it gave nothing."""
    for taken in (Taken.USED, Taken.MERGED):
        if taken in verdicts:
            return taken
    return verdicts[0] if verdicts else "nothing in it"


class ReadingBuilder:
    """Keeps the place (session, folder, model, time) that the lines have told so far, and the events by their keys."""

    def __init__(self, agent: str, path: Path, session: str) -> None:
        self.reading = Reading(agent=agent, path=path)
        self.session = session
        self.parent: str | None = None
        self.cwd: str | None = None
        self.branch: str | None = None
        self.model: str | None = None
        self.at_us: int | None = None
        self._events: list[AgentEvent | CallDraft] = []
        self._places: dict[str, int] = {}
        self._met: Counter[tuple[str, str]] = Counter()
        self._timed_lines: set[int] = set()

    def read(self, lines: Iterable[Line], take: Callable[[Record], Verdict]) -> Reading:
        """Every line through `take`, each counted exactly once. Raises OSError where the lines cannot be read on."""
        for line in lines:
            self.count(line, take)
        return self.finish()

    def count(self, line: Line, take: Callable[[Record], Verdict]) -> Verdict:
        """One line through `take`."""
        self.reading.lines += 1
        verdict = self._taken(line, take)
        self._account(line, verdict)
        return verdict

    def _taken(self, line: Line, take: Callable[[Record], Verdict]) -> Verdict:
        if not line.raw.strip():
            return "blank line"
        try:
            record = load(line.raw)
            if record is None:
                return Taken.UNREADABLE
            self.at_us = next((us for name in _TIMES if (us := time_us(record.get(name))) is not None), None)
            if self._is_repeated(line.raw):
                return "repeated line"
            return take(record)
        except RecursionError:  # nested deeper than we can follow
            return Taken.UNREADABLE

    def _is_repeated(self, raw: str) -> bool:
        """The same bytes with the same time: a line written twice, while equal lines without a time may be two."""
        if self.at_us is None:
            return False
        sign = hash(raw)
        repeated = sign in self._timed_lines
        self._timed_lines.add(sign)
        return repeated

    def _account(self, line: Line, verdict: Verdict) -> None:
        reading = self.reading
        match verdict:
            case Taken.USED:
                reading.used += 1
            case Taken.MERGED:
                reading.merged += 1
            case Taken.UNREADABLE:
                reading.unreadable.append((line.number, line.raw))
            case str(reason):
                reading.passed_by[reason[:REASON_CHARS_MAX]] += 1

    def enter(self, session: str) -> None:
        """The lines from here on belong to this session."""
        self.session = session or self.session

    def native(self, native_id: str) -> str:
        """An id fit for a natural key: with its session where it says little by itself, empty where there is none."""
        if not native_id:
            return ""
        own = native_id.removeprefix(f"{self.session}:")
        alone = own == native_id and is_unique_by_itself(native_id)
        if len(own) > KEY_ID_CHARS_MAX or not _PLAIN.fullmatch(own):
            own = hashlib.blake2b(own.encode(errors="replace"), digest_size=12).hexdigest()
        return own if alone else f"{self.session}:{own}"

    def add(
        self,
        kind: Kind,
        text: str = "",
        *,
        native: str = "",
        role: str = "",
        sign: str | None = None,
        channel: str = "",
        evidence: bool = True,
        **fields: Any,
    ) -> Verdict:
        """One event, or what completes one: the same native id, or without one the nth of its text in each channel.

        `sign` stands for the text in the key where the text may differ. Two channels of a file tell the same things.
        """
        key = self._key(native, role or kind, text if sign is None else sign, channel)
        evidence = evidence and not is_ours(text)
        event = self._event(kind, key, text=bounded(text), evidence=evidence, **fields)
        place = self._places.get(key)
        if place is None:
            self._append(key, event)
            return Taken.USED
        known = self._events[place]
        if isinstance(known, AgentEvent):
            self._events[place] = _completed(known, event)
        return Taken.MERGED

    def call(self, native: str, *, role: str = "tool", sign: str = "") -> tuple[CallDraft, Verdict]:
        """The draft of a call, new or known, and what the line is that tells of it."""
        key = self._key(native, role, sign, "")
        known = self._known(key)
        if isinstance(known, AgentEvent):  # the id of something that was no call
            key = f"{key}:call"
            known = self._known(key)
        if isinstance(known, CallDraft):
            return known, Taken.MERGED
        draft = CallDraft(event=self._event("tool", key))
        self._append(key, draft)
        return draft, Taken.USED

    def _known(self, key: str) -> AgentEvent | CallDraft | None:
        place = self._places.get(key)
        return None if place is None else self._events[place]

    def last_open(self, name: str) -> CallDraft | None:
        """The latest call of this name without a result, for results without an id."""
        return next((draft for draft in self._open() if not name or draft.name == name), None)

    def interrupt(self, rule: str) -> None:
        """A turn was stopped: what was under way in this session did not end by itself."""
        for draft in self._open():
            draft.ended = True
            draft.decide(1, "interrupted", rule)

    def _open(self) -> list[CallDraft]:
        """Calls of this session without a result, the latest first."""
        return [
            entry
            for entry in reversed(self._events)
            if isinstance(entry, CallDraft) and not entry.ended and entry.event.session == self.session
        ]

    def name_session(self, title: str) -> None:
        if title:
            self.reading.titles[self.session] = shortened(title, 500)

    def finish(self) -> Reading:
        self.reading.events = [e.finished() if isinstance(e, CallDraft) else e for e in self._events]
        return self.reading

    def _key(self, native: str, role: str, sign: str, channel: str) -> str:
        agent = self.reading.agent
        if native:
            return natural_key(agent, self.native(native))
        first = natural_key(agent, None, session=self.session, role=role, text=sign)
        nth = self._met[(channel, first)]
        self._met[(channel, first)] += 1
        return natural_key(agent, None, session=self.session, role=role, text=sign, nth=nth) if nth else first

    def _event(self, kind: Kind, key: str, **fields: Any) -> AgentEvent:
        place: dict[str, Any] = {
            "occurred_at_us": self.at_us,
            "parent": self.parent,
            "cwd": self.cwd,
            "branch": self.branch,
            "model": self.model,
        }
        return AgentEvent(
            kind=kind,
            agent=self.reading.agent,
            session=self.session,
            key=key,
            source="transcript",
            **{**place, **fields},
        )

    def _append(self, key: str, entry: AgentEvent | CallDraft) -> None:
        self._places[key] = len(self._events)
        self._events.append(entry)
        if self.session not in self.reading.sessions:
            self.reading.sessions.append(self.session)


def _completed(known: AgentEvent, other: AgentEvent) -> AgentEvent:
    """Both tellings of one event: the longer text, every field that either has, and the more cautious flags."""
    return replace(
        known,
        text=other.text if len(other.text) > len(known.text) else known.text,
        detail=known.detail or other.detail,
        occurred_at_us=known.occurred_at_us if known.occurred_at_us is not None else other.occurred_at_us,
        items=known.items or other.items,
        evidence=known.evidence and other.evidence,
        genuine=known.genuine and other.genuine,
        cwd=known.cwd or other.cwd,
        branch=known.branch or other.branch,
        model=known.model or other.model,
        extra={**other.extra, **known.extra},
    )
