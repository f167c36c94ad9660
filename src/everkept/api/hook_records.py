"""What a hook's record tells: on the machine whose files it names, or of a machine that is elsewhere.

Where a record names a transcript and ends a turn, a stretch or a session, the transcript is read too: it has what hooks
cannot tell, and natural keys make the two one. Only `RecordReader` opens files, and only a machine's own spool is read
with it; `told_from_afar` looks at nothing but the record.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from everkept.api.transcripts import TranscriptReport
from everkept.capture.agents.formats import FORMATS
from everkept.capture.agents.hook_payload import events_of, session_of
from everkept.capture.agents.reading import Format
from everkept.capture.identity import Checkout, checkout_of, look_at, with_root
from everkept.capture.spool import HookRecord
from everkept.domain.session import AgentEvent, Kind, natural_key
from everkept.errors import InvalidInput
from everkept.hook.hook_script import scope_key
from everkept.store.sessions import QuietTranscript

_Mark = tuple[Path, int, int]
"""(path, size, ns of its last change) of a file."""
READ_AFTER: Final[frozenset[Kind]] = frozenset({"turn_end", "compaction", "clear", "session_end", "subagent_end"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One record: events to take in, or an offer that was shown."""

    events: Sequence[AgentEvent] = ()
    checkout: Checkout | None = None
    offer: str | None = None
    transcript: Path | None = None
    """The file of this machine that tells of its session."""


class TakesTranscripts(Protocol):
    """Reads a transcript and takes its events in (`TranscriptImport`, or one that sends them)."""

    async def take(
        self, format_: Format | None, path: Path, *, again: bool = False, ended: bool = True,
        checkout: Checkout | None = None,
    ) -> TranscriptReport: ...  # fmt: skip


class RecordReader:
    """Reads the records of this machine's spool, and the transcripts that they name."""

    def __init__(self, transcripts: TakesTranscripts) -> None:
        self._transcripts = transcripts
        self._checkouts: dict[tuple[str, ...], Checkout] = {}
        self._heard: tuple[_Mark | None, Sequence[AgentEvent]] | None = None
        """The transcript that was read last, while there are records."""
        self.ended: dict[str, Checkout] = {}
        """{scope key: where} of what has ended since somebody last took note."""
        self.reports: list[TranscriptReport] = []
        """Of the transcripts that were read since somebody last took note."""

    async def read(self, record: HookRecord) -> Told:
        """The transcript is taken in first: it has what came before the end that the record tells of.

        Raises what taking it in raises, and InvalidInput.
        """
        fields = record.fields
        checkout = await self._checkout(fields)
        if "offer" in fields:
            return Told(checkout=checkout, offer=str(fields["offer"]))
        events, path = await asyncio.to_thread(lambda: (_events(record.name, fields), _transcript_of(fields)))
        told: Sequence[AgentEvent] = ()
        if any(e.kind in READ_AFTER for e in events):
            if checkout is not None:
                self.ended[scope_key(fields)] = checkout
            if path is not None:
                told = await self._read(path, events, checkout)
        return Told(
            events=[beside_transcript(event, told, has_one=path is not None) for event in events], checkout=checkout,
            transcript=path,
        )  # fmt: skip

    async def read_quiet(self, quiet: QuietTranscript) -> None:
        """The transcript of a session that fell silent, if it has grown: no hook tells of the end of a killed agent.

        It may go on: idleness ends it.
        """
        path = Path(quiet.path)
        if quiet.agent in FORMATS and await asyncio.to_thread(path.is_file):
            place = None if quiet.worktree is None else await asyncio.to_thread(look_at, Path(quiet.worktree))
            report = await self._transcripts.take(FORMATS[quiet.agent], path, ended=False, checkout=place)
            if report.reading is not None:
                self.reports.append(report)

    def forget_transcript(self) -> None:
        """Nothing more is to be read for now."""
        self._heard = None

    async def _read(self, path: Path, events: Sequence[AgentEvent], checkout: Checkout | None) -> Sequence[AgentEvent]:
        """What the transcript tells of the session. One that cannot be read is read at the next end, or by an import.

        It is read once as long as it does not grow, but at the session's end: then all of it is to be digested.
        """
        ended = any(e.kind == "session_end" for e in events)
        mark = await asyncio.to_thread(_mark_of, path)
        if ended or self._heard is None or self._heard[0] != mark:
            report = await self._transcripts.take(
                FORMATS[events[0].agent], path, ended=ended, checkout=checkout, again=True
            )
            if report.reading is None:
                return ()
            self.reports.append(report)
            self._heard = (mark, report.reading.events)
        return [e for e in self._heard[1] if e.session == events[0].session]

    async def _checkout(self, fields: Mapping[str, Any]) -> Checkout | None:
        found = told_place(fields)
        if found is None:
            return None
        key = (*(value for _, value in found.signs()), found.branch or "")
        if key not in self._checkouts:
            self._checkouts[key] = await asyncio.to_thread(with_root, found)
        return self._checkouts[key]


def told_from_afar(name: str, fields: Mapping[str, Any]) -> Told:
    """A record of another machine: nothing that it names is looked at here. `name` is its delivery key."""
    checkout = told_place(fields)
    if "offer" in fields:
        return Told(checkout=checkout, offer=str(fields["offer"]))
    events = _events(name, fields)
    return Told(events=[beside_transcript(event, (), has_one=False) for event in events], checkout=checkout)


def _events(name: str, fields: Mapping[str, Any]) -> list[AgentEvent]:
    """Raises InvalidInput where the record's time is none that a hook wrote, and where it tells nothing of anybody."""
    at_ns = fields.get("at_ns", 0)
    if not isinstance(at_ns, int) or not 0 <= at_ns < 2**63:
        raise InvalidInput("at_ns is not nanoseconds since 1970", field="at_ns")
    payload = fields.get("payload")
    if not (isinstance(payload, dict) and payload) and not session_of(fields)[1]:
        raise InvalidInput("the hook was given no JSON object, and what it was given names no session", field="payload")
    return events_of({**fields, "name": name})


def told_place(fields: Mapping[str, Any]) -> Checkout | None:
    """Where a record says that it was written; nothing is looked at."""
    place = fields.get("place")
    cwd = fields.get("cwd")
    return checkout_of(place if isinstance(place, dict) else {}, cwd if isinstance(cwd, str) else None)


def _mark_of(path: Path) -> _Mark | None:
    """Changes where the file does; None where it is gone."""
    try:
        found = path.stat()
    except OSError:
        return None
    return path, found.st_size, found.st_mtime_ns


def _transcript_of(fields: Mapping[str, Any]) -> Path | None:
    """The file that the record names, where it is there and we can read its kind."""
    payload = fields.get("payload")
    told = payload.get("transcript_path") if isinstance(payload, dict) else None
    if fields.get("agent") not in FORMATS or not isinstance(told, str) or not told or "\0" in told:
        return None
    path = Path(told).expanduser()
    return path if os.path.isfile(path) else None  # a name that no disk takes is no file


def beside_transcript(event: AgentEvent, told: Sequence[AgentEvent], *, has_one: bool) -> AgentEvent:
    """A hook's event so that nothing is kept twice: `told` is what its session's transcript tells, if it was read.

    Hooks give no ids to prompts and boundaries. What the transcript tells decides how often the same words were typed;
    without one their time does. A session starts up once; an end is known by the last that was said before it.
    """
    match event.kind:
        case "prompt" if not has_one:
            return replace(event, key=f"{event.key}@{event.occurred_at_us}")
        case "session_start" if event.detail == "startup":
            return replace(event, key=natural_key(event.agent, f"{event.session}:startup"))
        case "turn_end" if said := _last_words(event, told):
            text = "" if _same(said.text, event.text) else event.text
            return replace(event, text=text, key=f"{said.key}:turn_end:{event.detail}")
        case "session_end" if told:
            return replace(event, key=f"{told[-1].key}:session_end:{event.detail}")
    return event


def _last_words(end: AgentEvent, told: Sequence[AgentEvent]) -> AgentEvent | None:
    """Those that end this turn, else the last there are."""
    said = [e for e in reversed(told) if e.kind == "said"]
    return next((e for e in said if _same(e.text, end.text)), next(iter(said), None))


def _same(one: str, other: str) -> bool:
    return one.split() == other.split()
