"""Sending what hooks left on this machine to a server elsewhere. A record goes from the spool once its server has it.

A record that the server postpones or stumbles over waits, and those of its session behind it; no other session waits
for them. Transcripts are read here, where they lie, and their events are sent; what the server has already is not sent
again while this process lives, and does no harm if it is.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Protocol

import structlog

from everkept.api import views as v
from everkept.api.draining import RECORDS_AT_ONCE, Drained
from everkept.api.hook_records import RecordReader, Told
from everkept.api.intake import Taken
from everkept.api.session_order import SessionOrder
from everkept.api.transcripts import TranscriptReport, read_allowed
from everkept.capture.agents.keeping import redacted
from everkept.capture.agents.reading import Format, Reading
from everkept.capture.identity import Checkout
from everkept.capture.spool import HookRecord, Spool
from everkept.domain.session import AgentEvent, kept
from everkept.errors import EverkeptError, InvalidInput, http_status

BODY_CHARS_MAX: Final = 2_000_000
"""Of one request, but for a single record or event that is larger."""
EVENTS_MAX: Final = 1_000
"""The server's limit of one request."""
TRANSCRIPTS_REMEMBERED: Final = 8
STUMBLED_S: Final = 60.0
"""How long a session waits whose record the server stumbled over, until it is tried again."""
WAITS: Final = frozenset([401, 403, 404, 405, 408, 409, 425, 429])
"""Of the 4xx of a whole request, those that say nothing of what was sent: key, route and traffic can be mended."""

_log = structlog.get_logger("everkept.hooks")
Body = Mapping[str, Any]
_Ready = tuple[HookRecord, Body]


class TakesEvents(Protocol):
    """`POST /v1/events` of a server."""

    async def take_events(self, body: Body) -> v.Ingested:
        """The answer. Raises the class of the server's error, and Unavailable where it could not be asked."""
        ...


class RemoteDrain:
    """Empties one home's spool into a server."""

    def __init__(
        self, spool: Spool, server: TakesEvents, *, clock: Callable[[], float] = time.monotonic
    ) -> None:  # fmt: skip
        self._spool = spool
        self._server = server
        self._reader = RecordReader(self)
        self._batch: list[_Ready] = []
        """Read and not sent yet."""
        self._order = SessionOrder(clock)
        self._sent: dict[Path, dict[str, int]] = {}
        """{transcript: {key: what the event was like}}, those read last at the end."""
        self._drained = Drained()

    async def some(self, limit: int = RECORDS_AT_ONCE) -> Drained:
        """Send the oldest records. Raises EverkeptError where the server cannot take them now: they wait on."""
        self._batch.clear()
        self._drained = drained = Drained()
        self._order.release()
        while drained.handled < limit and (found := await self._look(limit - drained.handled)):
            await self._send(found)
        if drained.records < limit:
            self._reader.forget_transcript()
        drained.waiting |= self._order.waiting
        return drained

    async def _look(self, limit: int) -> list[HookRecord]:
        without = {*self._order.waiting, *self._drained.refused}
        return await asyncio.to_thread(self._spool.records, limit, without=without)

    async def _send(self, records: Sequence[HookRecord]) -> None:
        size = 0
        for record in records:
            if self._order.is_behind(record):
                continue
            try:
                body = _record_body(record, await self._reader.read(record))
            except InvalidInput as error:
                await self._set_aside(record.name, error.message)
                continue
            self._drained.note(self._reader.reports)
            chars = len(json.dumps(body))
            if size + chars > BODY_CHARS_MAX or len(self._batch) == RECORDS_AT_ONCE:
                await self._flush()
            size = chars if not self._batch else size + chars
            self._batch.append((record, body))
        await self._flush()

    # -- records

    async def _flush(self) -> None:
        batch, self._batch = self._batch, []
        await self._send_records(batch)

    async def _send_records(self, batch: Sequence[_Ready]) -> None:
        """What is refused as a whole is sent in halves, to find what is at fault."""
        batch = [one for one in batch if not self._order.is_behind(one[0])]
        if not batch:
            return
        try:
            answer = await self._server.take_events({"records": [body for _, body in batch]})
        except EverkeptError as error:
            if not _is_about_what_was_sent(error):
                raise
            if len(batch) > 1:
                await self._send_records(batch[: len(batch) // 2])
                await self._send_records(batch[len(batch) // 2 :])
            elif _is_refusal(error):
                await self._set_aside(batch[0][0].name, error.message)
            else:
                self._hold(batch[0][0], error.message)
            return
        told = {one.name: one for one in answer.records or ()}
        for record, _ in batch:
            if record.name in told:
                await self._heard(record, told[record.name])
            else:
                self._order.hold(record, "the server gave no answer for it", 0.0)

    async def _heard(self, record: HookRecord, told: v.RecordTaken) -> None:
        if told.postponed is not None:
            self._order.hold(record, told.postponed.message, told.postponed.retry_after_s)
        elif told.refused is not None:
            await self._set_aside(record.name, f"{told.refused.code}: {told.refused.message}")
        else:
            self._drained.taken.add(_taken(told.taken or ()))
            self._drained.records += 1
            await asyncio.to_thread(self._spool.done, [record.name])

    async def _set_aside(self, name: str, why: str) -> None:
        self._drained.refused[name] = why
        await asyncio.to_thread(self._spool.set_aside, name, why)

    def _hold(self, record: HookRecord, why: str) -> None:
        if self._order.hold(record, why, STUMBLED_S):
            _log.warning(
                "the server fails at a record, which waits with those of its session", record=record.name, why=why
            )

    # -- transcripts (`TakesTranscripts`)

    async def take(
        self, format_: Format | None, path: Path, *, again: bool = False, ended: bool = True,
        checkout: Checkout | None = None,
    ) -> TranscriptReport:  # fmt: skip
        """Read a transcript here and send what was not sent before, after the records before it."""
        await self._flush()
        assert format_ is not None
        try:
            reading, left_out = await asyncio.to_thread(read_allowed, format_, path, checkout, home=self._spool.home)
        except OSError as error:
            return TranscriptReport(path=path, agent=format_.agent, reading=None, taken=Taken(),
                                    skipped_because=f"cannot be read: {error.strerror or error}")  # fmt: skip
        taken = await self._send_transcript(path, reading, checkout, ended=ended)
        return TranscriptReport(path=path, agent=format_.agent, reading=reading, taken=taken, left_out=left_out)

    async def _send_transcript(self, path: Path, reading: Reading, checkout: Checkout | None, *, ended: bool) -> Taken:
        sent = self._sent.pop(path, {})
        self._sent[path] = sent
        while len(self._sent) > TRANSCRIPTS_REMEMBERED:
            del self._sent[next(iter(self._sent))]
        marked = [(event, hash(kept(event))) for event in reading.events]
        new = [(event, mark) for event, mark in marked if sent.get(event.key) != mark]
        if ended and not new:  # that it has ended is news, too
            new = marked[-1:]
        about = {"checkout": checkout_body(checkout), "origin": "import", "titles": plain(reading.titles)}
        whole = Taken()
        while new:
            piece = _first_piece([event_body(event) for event, _ in new[:EVENTS_MAX]])
            last = len(piece) == len(new)
            whole.add(await self._send_events(piece, {**about, "ended": ended and last}))
            sent |= {event.key: mark for event, mark in new[: len(piece)]}
            del new[: len(piece)]
        return whole

    async def _send_events(self, events: Sequence[Body], about: Body) -> Taken:
        """An event that is refused is told of and passed by: it stays in its transcript."""
        try:
            answer = await self._server.take_events({"events": list(events), **about})
        except EverkeptError as error:
            if not _is_about_what_was_sent(error):
                raise
            if len(events) == 1:
                _log.warning("an event of a transcript is not taken in", key=events[0]["key"], why=error.message)
                return Taken()
            half = len(events) // 2
            whole = await self._send_events(events[:half], {**about, "ended": False})
            whole.add(await self._send_events(events[half:], about))
            return whole
        return _taken(answer.taken or ())


def _is_about_what_was_sent(error: EverkeptError) -> bool:
    """A refusal, or a server that stumbles over it; any other error leaves all to a later try."""
    return _is_refusal(error) or _status(error) == 500


def _is_refusal(error: EverkeptError) -> bool:
    """Whether the server will never take what was sent."""
    status = _status(error)
    return 400 <= status < 500 and status not in WAITS


def _status(error: EverkeptError) -> int:
    return int(error.details.get("status") or http_status(error.code))


def _record_body(record: HookRecord, told: Told) -> Body:
    if told.offer is not None:
        return {"name": record.name, "record": plain(record.fields)}
    events = [event_body(event) for event in told.events]
    return {"name": record.name, "events": events, "checkout": checkout_body(told.checkout)}


def event_body(event: AgentEvent) -> Body:
    """Without secrets: they do not leave this machine."""
    fields = {name: value for name, value in asdict(redacted(event)).items() if value not in (None, "", (), {})}
    found: Body = plain(fields)
    return found


def checkout_body(checkout: Checkout | None) -> Body | None:
    return None if checkout is None else {k: v for k, v in plain(asdict(checkout)).items() if v is not None}


def plain(value: Any) -> Any:
    """As JSON that every server reads: lone surrogates are replaced."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _taken(sessions: Sequence[v.SessionTaken]) -> Taken:
    whole = Taken()
    for one in sessions:
        projects = {one.project: one.found_by}
        whole.add(Taken(stored=one.stored, revised=one.revised, known=one.known, projects=projects))
    return whole


def _first_piece(events: list[Body]) -> list[Body]:
    """As many as fit into one request; at least one."""
    size = 0
    for place, event in enumerate(events):
        size += len(json.dumps(event))
        if size > BODY_CHARS_MAX and place:
            return events[:place]
    return events
