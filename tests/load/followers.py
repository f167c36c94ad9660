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
import sys
from collections.abc import Iterator, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from pathlib import Path

from everkept import AsyncMemory, Inbox

ACK_EVERY = 200
"""Once a page of `follow`: what a death leaves unacknowledged is up to a page."""
DEATHS = 2
"""Of each that dies; starting a process again takes longer than some thousand changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What reached one consumer, in the order of its effects, and how often it died."""

    consumer: str
    told: list[int]
    deaths: int


async def follow_all(
    url: str, folder: Path, *, consumers: int, dying: int, changes: int, deaths: int = DEATHS
) -> list[Followed]:
    """Let `consumers` follow to the change `changes`, all at once, `dying` of them over `deaths` lives and one more."""
    async with asyncio.TaskGroup() as group:
        living = [
            group.create_task(_live(url, folder, f"consumer-{n}", changes, _lives(n, changes, deaths * (n < dying))))
            for n in range(consumers)
        ]
    return [each.result() for each in living]


def _lives(number: int, changes: int, deaths: int) -> list[int]:
    """After how many steps each life ends, three a change: within the first half of the changes. 0: it lives on."""
    chance = random.Random(number)
    return [*(chance.randint(1, 3 * changes // (2 * deaths)) for _ in range(deaths)), 0]


async def _live(url: str, folder: Path, consumer: str, up_to: int, lives: Sequence[int]) -> Followed:
    """Start it again each time that it died."""
    database = folder / f"{consumer}.db"
    for dies_after in lives:
        words = [url, consumer, str(database), str(up_to), str(dies_after)]
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.load.followers", *words)
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert code == (-signal.SIGKILL if dies_after else 0), f"{consumer} ended with {code}"
    return Followed(consumer=consumer, told=list(_told(database)), deaths=len(lives) - 1)


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
        own.execute("pragma journal_mode = wal")  # a rollback journal is a file made and deleted for each effect
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
