"""A consumer that is far behind: what its pages cost, what it costs others as it catches up, and pruning beside it."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.bench.report import Figure
from tests.load.outbox import PER_COMMIT, fill_outbox
from tests.stubs.real_server import serving

from everkept import AsyncMemory, CursorExpired, Memory
from everkept.store.changes import prune_changes
from everkept.store.store import Store

FAR = "far"
IN_TURN = 10
"""Appends with the one that catches up held, then as many while it goes on."""
SETTLED_S = 0.02
"""After this a question for changes waits at the server."""
ANSWER_S = 30.0
PAGES = 30
PRUNED = 20 * PER_COMMIT


def measure(home: Path, *, changes: int, rounds: int) -> Iterator[Figure]:
    words = f"{changes:,} changes behind"
    written_s = fill_outbox(home, changes)
    yield from _pages(home, changes, words)
    with serving(home) as (_, url):
        found = asyncio.run(_beside_others(url, home, changes, rounds))
    peer = "nobody catching up"
    for name, alone, beside in (
        ("an append", found.held.appends_ms, found.going.appends_ms),
        ("from a commit to a consumer with nothing behind it", found.held.heard_ms, found.going.heard_ms),
    ):
        yield Figure(
            name=f"{name} while another catches up, p50", value=median(beside), unit="ms", peer=peer,
            peer_value=median(alone),
        )  # fmt: skip
    yield Figure(
        name=f"catching up from {words}, with an effect each", value=found.caught_up, unit="/s",
        peer="writing them", peer_value=changes / written_s,
    )  # fmt: skip
    yield from _pruning(home, written_ms=1000 * written_s * PER_COMMIT / changes)


def _pages(home: Path, changes: int, words: str) -> Iterator[Figure]:
    """Of a consumer that has everything before it, and of one that is nearly there, in turn."""
    near: list[float] = []
    far: list[float] = []
    scan: list[float] = []
    with Memory.open(home, worker=False) as memory:
        for _ in range(PAGES):
            for taken, after, kinds in ((near, changes - 200, None), (far, 0, None), (scan, 0, ["page"])):
                begun = time.perf_counter()
                memory.changes(after=after, limit=200, kinds=kinds)
                taken.append(1000 * (time.perf_counter() - begun))
    for name, taken in (("a page of 200", far), ("a look for a kind that never comes", scan)):
        yield Figure(
            name=f"{name}, {words}", value=median(taken), unit="ms", peer="200 behind", peer_value=median(near)
        )


@dataclass(slots=True)
class _Times:
    appends_ms: list[float] = field(default_factory=list)
    heard_ms: list[float] = field(default_factory=list)
    """From the answer to an append, which leaves after its commit; 0 where the consumer was first."""


@dataclass(slots=True)
class _Found:
    held: _Times = field(default_factory=_Times)
    going: _Times = field(default_factory=_Times)
    caught_up: float = 0.0
    """Changes a second, with nothing else to do."""


async def _beside_others(url: str, home: Path, changes: int, rounds: int) -> _Found:
    """The same appends and the same near consumer, in turn with the far one held (SIGSTOP) and going on."""
    found = _Found()
    async with AsyncMemory.connect(url) as memory, _far(url, home, changes) as far:
        while not await _cursor(memory):
            await _append(memory, _Times(), changes)  # warms up
        for _ in range(rounds):
            for times, told in ((found.held, signal.SIGSTOP), (found.going, signal.SIGCONT)):
                far.send_signal(told)
                await _append(memory, times, changes)
        cursor = await _cursor(memory)
        assert cursor < changes, "it had caught up before the rounds were over"
        begun = time.perf_counter()
        assert await far.wait() == 0
        found.caught_up = (changes - cursor) / (time.perf_counter() - begun)
    return found


async def _append(memory: AsyncMemory, times: _Times, after: int) -> None:
    """One after the other, each heard of by who waits for it already."""
    for n in range(IN_TURN):
        after = (await memory.changes(after=after, limit=1000)).next_after
        waiting = asyncio.create_task(memory.changes(after=after, kinds=["messages"], wait_s=ANSWER_S))
        await asyncio.sleep(SETTLED_S)
        begun = time.perf_counter()
        await memory.add(f"Hello {n}.", thread="bench", subject="ana")
        answered = time.perf_counter()
        assert (await waiting).changes
        times.appends_ms.append(1000 * (answered - begun))
        times.heard_ms.append(1000 * (time.perf_counter() - answered))


async def _cursor(memory: AsyncMemory) -> int:
    return next((each.cursor for each in await memory.consumers() if each.name == FAR), 0)


@asynccontextmanager
async def _far(url: str, home: Path, changes: int) -> AsyncIterator[asyncio.subprocess.Process]:
    words = [url, FAR, str(home / "far.db"), str(changes), "0"]
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.load.followers", *words)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _pruning(home: Path, *, written_ms: float) -> Iterator[Figure]:
    """It waits for no consumer: one that is behind what is kept is told so."""
    with Memory.open(home, worker=False) as memory:
        memory.replay(FAR, 0)
    store = Store(home / "everkept.db", threads=False)
    store.open()
    taken = []
    for _ in range(PRUNED // PER_COMMIT):
        begun = time.perf_counter()
        assert store.write_now(prune_changes, 0.0, PER_COMMIT) == PER_COMMIT
        taken.append(1000 * (time.perf_counter() - begun))
    store.close()
    with Memory.open(home, worker=False) as memory:
        assert _oldest_kept(memory) == PRUNED + 1, "a consumer behind what is kept was not told"
    yield Figure(
        name=f"pruning {PER_COMMIT} changes that a consumer has not read", value=median(taken), unit="ms",
        peer="writing them", peer_value=written_ms,
    )  # fmt: skip


def _oldest_kept(memory: Memory) -> int | None:
    """As a consumer behind it is told; None: it is not behind."""
    try:
        memory.changes(consumer=FAR)
    except CursorExpired as told:
        return int(told.details["oldest"])
    return None
