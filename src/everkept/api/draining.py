"""Taking in what hooks left in the spool: committed first, then taken away. A crash between the two repeats it.

Where a record names a transcript and ends a turn, a stretch or a session, the transcript is read too: it has what hooks
cannot tell, and natural keys make the two one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from everkept.api.base import Parts
from everkept.api.contexts import Contexts
from everkept.api.intake import Intake, Taken
from everkept.api.transcripts import TranscriptImport
from everkept.capture.agents.formats import FORMATS
from everkept.capture.agents.hook_payload import events_of
from everkept.capture.identity import Checkout, checkout_of, with_root
from everkept.capture.spool import HookRecord, Spool
from everkept.domain.ids import parse_row_id
from everkept.domain.session import AgentEvent, Kind, natural_key
from everkept.errors import EverkeptError, InvalidInput, NotFound
from everkept.hook.hook_script import scope_key
from everkept.store.aliases import find_by_signs

RECORDS_AT_ONCE: Final = 100
_Mark = tuple[Path, int, int]
"""(path, size, ns of its last change) of a file."""
READ_AFTER: Final[frozenset[Kind]] = frozenset({"turn_end", "compaction", "clear", "session_end", "subagent_end"})


@dataclass(slots=True, kw_only=True)
class Drained:
    """What one look at the spool came to."""

    records: int = 0
    taken: Taken = field(default_factory=Taken)
    transcripts: int = 0
    """Files that were read."""
    refused: dict[str, str] = field(default_factory=dict)
    """{record: why it was set aside}."""


class Drain:
    """Empties one home's spool into the store. Several may work on the same spool: keys make it harmless."""

    def __init__(self, parts: Parts, spool: Spool) -> None:
        self._spool = spool
        self._store = parts.store
        self._intake = Intake(parts)
        self._transcripts = TranscriptImport(parts)
        self._contexts = Contexts(parts)
        self._checkouts: dict[tuple[str, ...], Checkout] = {}
        self.ended: dict[str, Checkout] = {}
        """{scope key: where} of what has ended since somebody last took note."""
        self._heard: tuple[_Mark | None, Sequence[AgentEvent]] | None = None
        """The transcript that was read last, while there are records."""

    async def some(self, limit: int = RECORDS_AT_ONCE) -> Drained:
        """Take the oldest records in. Raises EverkeptError where the store cannot take them now: they wait on."""
        drained = Drained()
        for record in await asyncio.to_thread(self._spool.records, limit):
            try:
                await self._one(record, drained)
            except (InvalidInput, NotFound) as error:
                drained.refused[record.name] = error.message
                await asyncio.to_thread(self._spool.set_aside, record.name, error.message)
                continue
            drained.records += 1
            await asyncio.to_thread(self._spool.done, [record.name])
        if drained.records < limit:
            self._heard = None
        return drained

    async def _one(self, record: HookRecord, drained: Drained) -> None:
        """The transcript first: it has what came before the end that the record tells of."""
        fields = record.fields
        checkout = await self._checkout(fields)
        if "offer" in fields:
            await self._shown(fields, checkout)
            return
        events = await asyncio.to_thread(events_of, {**fields, "name": record.name})
        path = await asyncio.to_thread(_transcript_of, fields)
        told: Sequence[AgentEvent] = ()
        if any(e.kind in READ_AFTER for e in events):
            if checkout is not None:
                self.ended[scope_key(fields)] = checkout
            if path is not None:
                told = await self._read(path, events, checkout, drained)
        events = [beside_transcript(event, told, has_one=path is not None) for event in events]
        drained.taken.add(await self._intake.take(events, checkout=checkout))

    async def _shown(self, fields: Mapping[str, Any], checkout: Checkout | None) -> None:
        found = None if checkout is None else await self._store.read(find_by_signs, checkout.signs())
        if found is not None:
            await self._contexts.shown(found.project.name, parse_row_id("off", str(fields["offer"])))

    async def _read(
        self, path: Path, events: Sequence[AgentEvent], checkout: Checkout | None, drained: Drained
    ) -> Sequence[AgentEvent]:
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
            drained.transcripts += 1
            drained.taken.add(report.taken)
            self._heard = (mark, report.reading.events)
        return [e for e in self._heard[1] if e.session == events[0].session]

    async def _checkout(self, fields: Mapping[str, Any]) -> Checkout | None:
        place = fields.get("place")
        cwd = fields.get("cwd")
        found = checkout_of(place if isinstance(place, dict) else {}, cwd if isinstance(cwd, str) else None)
        if found is None:
            return None
        key = (*(value for _, value in found.signs()), found.branch or "")
        if key not in self._checkouts:
            self._checkouts[key] = await asyncio.to_thread(with_root, found)
        return self._checkouts[key]


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
    return path if path.is_file() else None


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


async def drain_all(drain: Drain, *, within_s: float) -> Drained:
    """Drain until nothing waits or the time is over: what every local door does before it answers."""
    whole = Drained()
    try:
        async with asyncio.timeout(within_s):
            while (some := await drain.some()).records:
                whole.records += some.records
                whole.transcripts += some.transcripts
                whole.taken.add(some.taken)
                whole.refused |= some.refused
    except TimeoutError:
        pass
    except EverkeptError as error:
        whole.refused[""] = error.message
    return whole
