"""After the storm: the work runs out, and what is left is held against what everybody had been told."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from everkept.prove.checks import check_drained
from everkept.prove.record import Record
from everkept.prove.storm.broker import Broker, Publisher, not_published
from everkept.prove.storm.clients import Client
from everkept.prove.storm.databases import ThrownAway
from everkept.prove.storm.followers import Inbox, Rival
from everkept.prove.storm.model import StormyModel
from everkept.prove.storm.processes import STOP_MAX_S
from everkept.prove.storm.strikes import Crew
from everkept.prove.storm.ways import Lost, PlainHttp
from everkept.store.sqlite import choose_driver

T = TypeVar("T")
DRAIN_MAX_S: Final = 300.0
FOLLOW_MAX_S: Final = 60.0
LOOKED_FOR: Final = 20
"""Messages of each client that are looked for by recall."""
AGAIN_S: Final = 0.5
_REFUSED: Final = re.compile(rb"finish refused: the lease was lost")
_INTERNAL: Final = b'"error_class": "internal"'
_REPLIES: Final = """
select request_hash, asked, replied_at, rejected_because is not null, work || ' ' || step from replies"""
_UNCOUNTED: Final = re.compile(rb"a refused finish could not be counted")


@dataclass(slots=True, kw_only=True)
class Aftermath:
    """`settle` fills in what was found."""

    database: ThrownAway
    record: Record
    crew: Crew
    clients: Sequence[Client]
    inboxes: Sequence[Inbox]
    rivals: Sequence[Rival]
    model: StormyModel | None
    broker: Broker | None
    publisher: Publisher | None
    deaths: int
    chance: random.Random
    violations: list[str] = field(default_factory=list)
    looked_for: int = 0
    refused_finishes: int = 0

    def settle(self, ask: PlainHttp) -> None:
        """Wait for all work, stop the processes, check."""
        self.violations += [wrong for client in self.clients for wrong in client.wrong()]
        if self.publisher is not None:
            self.violations += self.publisher.not_once(self.database)
        self._end_threads()
        self.violations += self._drain(ask)
        for client in self.clients:
            try:
                self.violations += self._look_for(client)
            except RuntimeError as error:
                self.violations.append(str(error))
            client.close()
        newest = dict(self.database.rows("select name, change_seq from projects"))
        self.violations += self._follow_to_the_end(newest)
        if self.broker is not None:
            self.violations += not_published(self.broker, newest)
        for program in self.crew.all:
            if not program.stop():
                self.violations.append(f"G7: {program.name} did not end within {STOP_MAX_S:.0f} s of being told to")
        self.violations += self._refused()
        self.violations += self._inside()
        self.violations += self._checked()

    # ---- the work

    def _end_threads(self) -> None:
        for client in self.clients:
            for thread in sorted(client.threads()):
                until_answered(partial(client.way.end, thread))

    def _drain(self, ask: PlainHttp) -> Iterator[str]:
        end = time.monotonic() + DRAIN_MAX_S
        while True:
            status = until_answered(lambda: ask.ask("GET", "status"))
            waiting = int(status["backlog_due"]) + int(status["backlog_armed"])
            running = sum(worker["running"] for worker in status["workers"])
            if not waiting + running or time.monotonic() > end:
                break
            time.sleep(AGAIN_S)
        if waiting + running:
            yield f"G7: {waiting} jobs wait and {running} run {DRAIN_MAX_S:.0f} s after the storm"
        yield from (f"G7: a job was given up: {item}" for item in status["given_up"])

    def _look_for(self, client: Client) -> Iterator[str]:
        """Final receipts, and messages that recall finds: a sample of what was acknowledged and not erased.

        Raises RuntimeError where the client is refused what it asks.
        """
        sample = self.chance.sample(client.kept, min(LOOKED_FOR, len(client.kept)))
        self.looked_for += len(sample)
        for told in sample:
            text = self.chance.choice(told.texts)
            if not client.finds(told, text):
                yield f"G4: {text[:40]!r} of {told.thread} is not found at the end"
            event, _ = told.places[0]
            state = until_answered(partial(client.way.receipt, event))
            if state != "remembered":
                yield f"G3: the receipt of {event} in {told.thread} is {state} at the end"

    def _follow_to_the_end(self, newest: dict[str, int]) -> Iterator[str]:
        for inbox, rival in zip(self.inboxes, self.rivals[::2], strict=True):
            last = newest[inbox.project]
            end = time.monotonic() + FOLLOW_MAX_S
            while inbox.last < last and time.monotonic() < end:
                if not rival.step(dies=0.0):
                    time.sleep(AGAIN_S)
            yield from inbox.violations
            if inbox.last != last:
                yield f"G11: the follower of {inbox.project} was given {inbox.last} of its {last} changes"

    # ---- what is left

    def _refused(self) -> Iterator[str]:
        """What the workers logged as refused is what is counted, but for those killed between the one and the other."""
        logged = sum(_occurrences(_REFUSED, program.log) for program in self.crew.all)
        lost = sum(_occurrences(_UNCOUNTED, program.log) for program in self.crew.all)
        rows = self.database.rows("select value from counters where name = 'refused_finishes'")
        self.refused_finishes = int(rows[0][0]) if rows else 0
        if lost or not logged - self.deaths <= self.refused_finishes <= logged:
            yield f"G6: {logged} refused finishes were logged, {self.refused_finishes} counted, {lost} given up"

    def _inside(self) -> Iterator[str]:
        """Jobs that failed for no reason that the storm gives."""
        for program in self.crew.all:
            for line in program.log.read_bytes().splitlines():
                if _INTERNAL in line:
                    yield f"G14: {program.name} met an error of its own: {line.decode(errors='replace')[:400]}"

    def _checked(self) -> list[str]:
        contents = self.database.contents()
        ahead_us = self.database.ahead_us_min()
        found = check_drained(contents, self.record, deaths=self.deaths)
        if isinstance(contents, Path):
            raw = choose_driver().module.connect(str(contents), isolation_level=None)
        else:
            raw = contents
        with closing(raw):
            return [*map(str, found), *(_paid_twice(raw, self.model, ahead_us) if self.model is not None else ())]


def _occurrences(words: re.Pattern[bytes], log: Path) -> int:
    return len(words.findall(log.read_bytes()))


def _paid_twice(raw: Any, model: StormyModel, ahead_us: int) -> Iterator[str]:
    """Questions that were asked again after a reply that could be used had been committed, or more often than the
    journal counts over all the times that it was asked for a better one."""
    asked_at: dict[bytes, list[int]] = {}
    for question, at_us in model.asked_at_us:
        asked_at.setdefault(question, []).append(at_us)
    counted: dict[bytes, tuple[str, int]] = {}
    for question, asked, replied_at, rejected, what in raw.execute(_REPLIES).fetchall():
        _, before = counted.get(bytes(question), ("", 0))
        counted[bytes(question)] = what, before + asked
        is_answered = replied_at is not None and not rejected
        after = [at + ahead_us - replied_at for at in asked_at.get(bytes(question), ()) if is_answered]
        if late := [f"{us / 1e6:.3f} s" for us in after if us > 0]:
            early = [f"{-us / 1e6:.3f} s" for us in after if us <= 0]
            yield (
                f"G8: {what} was asked again {', '.join(late)} after its reply was committed, and {', '.join(early)}"
                f" before; the journal counts {asked}"
            )
    for question, (what, asked) in counted.items():
        if (times := len(asked_at.get(question, ()))) > asked:
            yield f"G8: {what} was asked {times} times, the journal counts {asked}"


def until_answered(ask: Callable[[], T]) -> T:
    """Raises RuntimeError where no answer comes though the storm is over."""
    end = time.monotonic() + DRAIN_MAX_S
    while time.monotonic() < end:
        with suppress(Lost):
            return ask()
        time.sleep(AGAIN_S)
    raise RuntimeError("the servers do not answer though nobody strikes them any more")
