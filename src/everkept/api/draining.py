"""Taking in what hooks left in the spool: committed first, then taken away. A crash between the two repeats it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from everkept.api.base import Parts
from everkept.api.contexts import Contexts
from everkept.api.hook_records import RecordReader
from everkept.api.intake import Intake, Taken
from everkept.api.transcripts import TranscriptImport, TranscriptReport
from everkept.capture.identity import Checkout
from everkept.capture.spool import HookRecord, Spool
from everkept.domain.ids import parse_row_id
from everkept.errors import EverkeptError, InvalidInput, NotFound
from everkept.store.aliases import find_by_signs

RECORDS_AT_ONCE = 100


@dataclass(slots=True, kw_only=True)
class Drained:
    """What one look at the spool came to."""

    records: int = 0
    taken: Taken = field(default_factory=Taken)
    transcripts: int = 0
    """Files that were read."""
    refused: dict[str, str] = field(default_factory=dict)
    """{record: why it was set aside}."""

    @property
    def handled(self) -> int:
        """How many records are out of the spool."""
        return self.records + len(self.refused)

    def add(self, other: Drained) -> None:
        self.records += other.records
        self.transcripts += other.transcripts
        self.taken.add(other.taken)
        self.refused |= other.refused

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

    @property
    def ended(self) -> dict[str, Checkout]:
        """{scope key: where} of what has ended; whoever takes note takes it out."""
        return self._reader.ended

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
            except EverkeptError:
                raise
            except Exception as error:  # noqa: BLE001  (one record that nobody foresaw must not hold up all others)
                drained.refused[record.name] = repr(error)
                await asyncio.to_thread(self._spool.set_aside, record.name, repr(error))
                continue
            drained.records += 1
            await asyncio.to_thread(self._spool.done, [record.name])
        if drained.records < limit:
            self._reader.forget_transcript()
        return drained

    async def _one(self, record: HookRecord, drained: Drained) -> None:
        told = await self._reader.read(record)
        drained.note(self._reader.reports)
        if told.offer is not None:
            await self._shown(told.offer, told.checkout)
        else:
            drained.taken.add(await self._intake.take(told.events, checkout=told.checkout))

    async def _shown(self, offer: str, checkout: Checkout | None) -> None:
        found = None if checkout is None else await self._store.read(find_by_signs, checkout.signs())
        if found is not None:
            await self._contexts.shown(found.project.name, parse_row_id("off", offer))


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
