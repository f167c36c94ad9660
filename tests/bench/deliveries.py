"""Deliveries: changes through one consumer and ten, one far behind, webhooks, and processes that die."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench import far_behind, webhook_times
from tests.bench.report import Figure
from tests.load.followers import ACK_EVERY, follow_all
from tests.load.outbox import PER_COMMIT, fill_outbox
from tests.stubs.real_server import serving

from everkept import AsyncMemory

DEATHS = 5
SINGLY = 10
"""Acknowledging each is a commit each: over a tenth of the changes."""


def measure(home: Path, *, quick: bool) -> Iterator[Figure]:
    yield from _consumers(home / "consumers", changes=5_000 if quick else 50_000)
    yield from far_behind.measure(home / "behind", changes=30_000 if quick else 100_000, rounds=3 if quick else 15)
    yield from webhook_times.measure(home / "webhooks", rounds=50 if quick else 300, waiting=100 if quick else 1_000)
    if not quick:
        yield from _dying(home / "dying", changes=100_000)


def _consumers(home: Path, *, changes: int) -> Iterator[Figure]:
    written = changes / fill_outbox(home, changes)
    peer = f"writing them, {PER_COMMIT} a commit"
    for name, rate in asyncio.run(_rates(home, changes)).items():
        yield Figure(name=f"changes {name}", value=rate, unit="/s", peer=peer, peer_value=written)


async def _rates(home: Path, changes: int) -> dict[str, float]:
    async with AsyncMemory.open(home, worker=False) as memory:

        async def rate(names: list[str], after: int, ack_every: int) -> float:
            for name in names:
                await memory.replay(name, after)
            begun = time.perf_counter()
            followed = await asyncio.gather(*(follow(name, ack_every) for name in names))
            assert followed == [changes - after] * len(names)
            return sum(followed) / (time.perf_counter() - begun)

        async def follow(name: str, ack_every: int) -> int:
            return len([c.seq async for c in memory.follow(name, until_idle=True, ack_every=ack_every)])

        ten, last = [f"of ten {n}" for n in range(10)], changes - changes // SINGLY
        return {
            f"through one consumer, acknowledged every {ACK_EVERY}": await rate(["one"], 0, ACK_EVERY),
            f"through each of ten at once, in all, every {ACK_EVERY}": await rate(ten, 0, ACK_EVERY),
            "through one consumer, each acknowledged": await rate(["one"], last, 1),
            "through each of ten at once, in all, each acknowledged": await rate(ten, last, 1),
        }


def _dying(home: Path, *, changes: int) -> Iterator[Figure]:
    written_s = fill_outbox(home, changes)
    used_s = _used_by_children_s()
    with serving(home) as (_, url):
        begun = time.perf_counter()
        followed = asyncio.run(follow_all(url, home, consumers=8, dying=4, changes=changes, deaths=DEATHS))
        took_s = time.perf_counter() - begun
    everything = list(range(1, changes + 1))
    assert all(each.told == everything for each in followed), "a change was lost, twice, or out of order"
    words = f"{changes:,} changes to 8 processes, 4 of them killed {DEATHS} times"
    yield Figure(name=words, value=took_s, unit="s", peer="writing them", peer_value=written_s)
    yield Figure(
        name="processor time of that, the server's and all starts with it", value=_used_by_children_s() - used_s,
        unit="s", peer="on the clock", peer_value=took_s,
    )  # fmt: skip


def _used_by_children_s() -> float:
    """Processor time of all that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
