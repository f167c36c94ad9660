"""Taking in what hooks left in the spool: committed first, then taken away. A crash between the two repeats it.

A record that cannot go now (the machine could not, or its project's events come too fast) waits, and those of its
session behind it: no other session waits for them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import structlog

from everkept.api.base import Parts
from everkept.api.contexts import Contexts
from everkept.api.hook_records import RecordReader
from everkept.api.intake import Intake, Taken
from everkept.api.session_order import SessionOrder
from everkept.api.transcripts import TranscriptImport, TranscriptReport
from everkept.capture.identity import Checkout
from everkept.capture.spool import HookRecord, Spool, is_of_machine
from everkept.domain.ids import parse_row_id
from everkept.errors import EverkeptError, InvalidInput, NotFound, RateLimited, Unavailable
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
    """{record: why it waits}: what could not be done for it, or for one of its session before it."""

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
        self._order = SessionOrder()
        self._told: dict[str, str] = {}
        """{record: why it waited when that was last logged}."""

    @property
    def ended(self) -> dict[str, Checkout]:
        """{scope key: where} of what has ended; whoever takes note takes it out."""
        return self._reader.ended

    async def some(self, limit: int = RECORDS_AT_ONCE, *, before: str | None = None) -> Drained:
        """Take the oldest records in; with `before`, only those that came before that one.

        Raises EverkeptError where the store cannot take them now: they wait on.
        """
        drained = Drained()
        self._order.release()
        more = True
        while more and (left := limit - drained.handled) > 0:
            found = await self._look(left, drained, before)
            more = len(found) == left
            for record in found:
                if not self._order.is_behind(record):
                    await self._take_in(record, drained)
        if drained.records < limit:
            self._reader.forget_transcript()
        drained.waiting |= self._order.waiting
        self._told = {name: why for name, why in self._told.items() if name in drained.waiting}
        return drained

    async def _look(self, limit: int, drained: Drained, before: str | None) -> list[HookRecord]:
        without = {*self._order.waiting, *drained.refused}
        try:
            found = await asyncio.to_thread(self._spool.records, limit, without=without, before=before)
        except OSError as error:
            raise Unavailable(f"the spool of hooks cannot be read now: {error}") from error
        drained.waiting |= self._spool.unread
        return found

    async def _take_in(self, record: HookRecord, drained: Drained) -> None:
        try:
            await self._one(record, drained)
            await asyncio.to_thread(self._spool.done, [record.name])
        except RateLimited as error:
            self._order.hold(record, error.message, error.retry_after_s or 0.0)
        except (InvalidInput, NotFound) as error:
            await self._refuse(record, error.message, drained)
        except EverkeptError:
            raise
        except OSError as error:
            if is_of_machine(error):
                self._wait(record, str(error))
            else:
                await self._refuse(record, repr(error), drained)
        except Exception as error:  # noqa: BLE001  (one record that nobody foresaw must not hold up all others)
            await self._refuse(record, repr(error), drained)
        else:
            drained.records += 1

    async def _refuse(self, record: HookRecord, why: str, drained: Drained) -> None:
        try:
            await asyncio.to_thread(self._spool.set_aside, record.name, why)
        except OSError as error:
            self._wait(record, f"{why}; it cannot be set aside: {error}")
        else:
            drained.refused[record.name] = why

    def _wait(self, record: HookRecord, why: str) -> None:
        """Until the next look; told once for each reason, however often it is tried."""
        self._order.hold(record, why, 0.0)
        if self._told.get(record.name) != why:
            self._told[record.name] = why
            _log.warning("a hook's record waits: the machine could not take it in", record=record.name, why=why)

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


async def drain_all(drain: Drain, *, within_s: float, before: str | None = None) -> Drained:
    """Drain until nothing waits or the time is over: what every local door does before it answers."""
    whole = Drained()
    try:
        async with asyncio.timeout(within_s):
            while True:
                some = await drain.some(before=before)
                whole.add(some)
                if some.handled < RECORDS_AT_ONCE:  # what is refused is set aside, and holds up nobody
                    break
    except TimeoutError:
        pass
    except EverkeptError as error:
        whole.refused[""] = error.message
    return whole
