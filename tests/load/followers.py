"""Consumers as processes of their own, some of which die at random moments; what reached each is in its own database.

    python -m tests.load.followers URL CONSUMER DATABASE UP_TO DIES_AFTER    # one of them, in one life; 0: it lives on

A consumer that dies kills itself (SIGKILL): before the effect, inside the transaction of effect and mark, or between
that and the acknowledgement. Whoever started it starts it again.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from pathlib import Path

from everkept import AsyncMemory, Inbox
from everkept.store.changes import NewChange, record_changes
from everkept.store.store import Store

ACK_EVERY = 50
PER_COMMIT = 500
DEATHS = 2
"""Of each that dies; starting a process again takes longer than a thousand changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What reached one consumer, in the order of its effects, and how often it died."""

    consumer: str
    told: list[int]
    deaths: int


def fill_outbox(store: Store, project: int, changes: int) -> None:
    """So many changes, as other commits would have left them."""
    for begun in range(0, changes, PER_COMMIT):
        some = range(begun, min(changes, begun + PER_COMMIT))
        store.write_now(record_changes, project, [NewChange(kind="fact.added", ref=f"fct_{n}") for n in some])


def follow_all(url: str, folder: Path, *, consumers: int, dying: int, changes: int, seed: int = 1) -> list[Followed]:
    """Let `consumers` follow to the change `changes`, `dying` of them over many lives."""
    waiting = [_Consumer(url, folder, n, up_to=changes, seed=seed, dies=n < dying) for n in range(consumers)]
    for each in waiting:
        each.begin()
    try:
        return [each.end() for each in waiting]
    finally:
        for each in waiting:
            each.kill()


class _Consumer:
    def __init__(self, url: str, folder: Path, number: int, *, up_to: int, seed: int, dies: bool) -> None:
        self._url, self._up_to = url, up_to
        self._name = f"consumer-{number}"
        self._database = folder / f"{self._name}.db"
        chance = random.Random(f"{seed} {number}")
        self._deaths = [chance.randint(1, 3 * up_to // 4) for _ in range(DEATHS if dies else 0)]
        """After how many steps of each life: three a change."""
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        self._process = subprocess.Popen([
            sys.executable, "-m", "tests.load.followers", self._url, self._name, str(self._database),
            str(self._up_to), str(self._deaths.pop() if self._deaths else 0),
        ])  # fmt: skip

    def end(self) -> Followed:
        """Wait, and start it again each time that it died."""
        assert self._process is not None
        deaths = 0
        while code := self._process.wait():
            assert code == -signal.SIGKILL, f"{self._name} ended with {code}"
            deaths += 1
            self.begin()
        return Followed(consumer=self._name, told=list(_told(self._database)), deaths=deaths)

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def _told(database: Path) -> Iterator[int]:
    with closing(sqlite3.connect(database)) as own:
        for (seq,) in own.execute("select seq from told order by rowid"):
            yield seq


async def follow(url: str, consumer: str, database: Path, up_to: int, dies_after: int) -> None:
    """One life: until the change `up_to`, or death."""
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        if steps == dies_after:
            os.kill(os.getpid(), signal.SIGKILL)

    with closing(sqlite3.connect(database)) as own:
        own.execute("pragma synchronous = off")
        own.execute("create table if not exists told(seq integer)")
        inbox = Inbox(own)
        async with AsyncMemory.connect(url) as memory:
            following = memory.follow(consumer, ack_every=ACK_EVERY, owner=consumer)
            async with aclosing(aiter(following)) as changes:
                async for change in changes:
                    step()
                    with inbox.once(change) as new:
                        if new:
                            own.execute("insert into told values(?)", (change.seq,))
                        step()
                    step()
                    if change.seq == up_to:
                        break
            await memory.ack(consumer, up_to)


def main(words: Sequence[str]) -> None:
    url, consumer, database, up_to, dies_after = words
    asyncio.run(follow(url, consumer, Path(database), int(up_to), int(dies_after)))


if __name__ == "__main__":
    main(sys.argv[1:])
