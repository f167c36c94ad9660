"""Taking in what hooks left in the spool: committed first, then taken away. A crash between the two repeats it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import structlog

from everkept.api.base import Parts
from everkept.api.contexts import Contexts
from everkept.api.hook_records import RecordReader
from everkept.api.intake import Intake, Taken
from everkept.api.transcripts import TranscriptImport, TranscriptReport
from everkept.capture.identity import Checkout
from everkept.capture.spool import HookRecord, Spool, is_of_machine
from everkept.domain.ids import parse_row_id
from everkept.errors import EverkeptError, InvalidInput, NotFound, Unavailable
from everkept.store.sessions import quiet_transcripts

RECORDS_AT_ONCE = 100

_log = structlog.get_logger("everkept.hooks")


@dataclass(slots=True, kw_only=True)
class Drained:
    """What one look at the spool came to."""

    records: int = 0
    taken: Taken = field(default_factory=Taken)
    transcripts: int = 0
    """Files that were read."""
    refused: dict[str, str] = field(default_factory=dict)
    """{record: why it was set aside}."""
    waiting: dict[str, str] = field(default_factory=dict)
    """{record: what the machine could not do for it}: it is tried again at the next look, and holds up no other."""

    @property
    def handled(self) -> int:
        """How many records are out of the spool."""
        return self.records + len(self.refused)

    def add(self, other: Drained) -> None:
        self.records += other.records
        self.transcripts += other.transcripts
        self.taken.add(other.taken)
        self.refused |= other.refused
        self.waiting = other.waiting

    def note(self, reports: list[TranscriptReport]) -> None:
        """Count the transcripts that were read, and empty the list."""
        while reports:
            self.transcripts += 1
            self.taken.add(reports.pop().taken)


class Drain:
    """Empties one home's spool into the store. Several may work on the same spool: keys make it harmless."""

    def __init__(self, parts: Parts, spool: Spool) -> None:
        self._spool = spool
        self._store = parts.store
        self._intake = Intake(parts)
        self._reader = RecordReader(TranscriptImport(parts))
        self._contexts = Contexts(parts)
        self._waiting: dict[str, str] = {}

    @property
    def ended(self) -> dict[str, Checkout]:
        """{scope key: where} of what has ended; whoever takes note takes it out."""
        return self._reader.ended

    async def some(self, limit: int = RECORDS_AT_ONCE) -> Drained:
        """Take the oldest records in. Raises EverkeptError where the store cannot take them now: they wait on."""
        drained = Drained()
        for record in await self._look(limit + len(self._waiting), drained):
            try:
                await self._one(record, drained)
                await asyncio.to_thread(self._spool.done, [record.name])
            except (InvalidInput, NotFound) as error:
                await self._refuse(record.name, error.message, drained)
            except EverkeptError:
                raise
            except OSError as error:
                await self._fail(record.name, error, drained)
            except Exception as error:  # noqa: BLE001  (one record that nobody foresaw must not hold up all others)
                await self._refuse(record.name, repr(error), drained)
            else:
                drained.records += 1
        if drained.records < limit:
            self._reader.forget_transcript()
        self._tell_waiting(drained.waiting)
        return drained

    async def _look(self, limit: int, drained: Drained) -> list[HookRecord]:
        try:
            found = await asyncio.to_thread(self._spool.records, limit)
        except OSError as error:
            raise Unavailable(f"the spool of hooks cannot be read now: {error}") from error
        drained.waiting |= self._spool.unread
        return found

    async def _refuse(self, name: str, why: str, drained: Drained) -> None:
        try:
            await asyncio.to_thread(self._spool.set_aside, name, why)
        except OSError as error:
            drained.waiting[name] = f"{why}; it cannot be set aside: {error}"
        else:
            drained.refused[name] = why

    async def _fail(self, name: str, error: OSError, drained: Drained) -> None:
        if is_of_machine(error):
            drained.waiting[name] = str(error)
        else:
            await self._refuse(name, repr(error), drained)

    def _tell_waiting(self, waiting: dict[str, str]) -> None:
        """Once for each reason, however often it is tried."""
        for name, why in waiting.items():
            if self._waiting.get(name) != why:
                _log.warning("a hook's record waits: the machine could not take it in", record=name, why=why)
        self._waiting = waiting

    async def _one(self, record: HookRecord, drained: Drained) -> None:
        told = await self._reader.read(record)
        drained.note(self._reader.reports)
        if told.offer is not None:
            await self._contexts.shown(parse_row_id("off", told.offer))
        else:
            taken = await self._intake.take(told.events, checkout=told.checkout, transcript=told.transcript)
            drained.taken.add(taken)

    async def read_quiet(self) -> Drained:
        """Read on in the transcripts of sessions that fell silent: what a killed agent did last stands there alone."""
        drained = Drained()
        for one in await self._store.read(quiet_transcripts):
            try:
                await self._reader.read_quiet(one)
            except EverkeptError:
                raise
            except Exception as error:  # noqa: BLE001  (one file that nobody foresaw must not hold up all others)
                _log.warning("a transcript cannot be read on", agent=one.agent, why=repr(error))
        drained.note(self._reader.reports)
        return drained


async def drain_all(drain: Drain, *, within_s: float) -> Drained:
    """Drain until nothing waits or the time is over: what every local door does before it answers."""
    whole = Drained()
    try:
        async with asyncio.timeout(within_s):
            while True:
                some = await drain.some()
                whole.add(some)
                if not (some.records or some.refused):  # what is refused is set aside, and holds up nobody
                    break
    except TimeoutError:
        pass
    except EverkeptError as error:
        whole.refused[""] = error.message
    return whole
