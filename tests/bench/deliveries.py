"""Deliveries: changes through one consumer and ten, from a commit to a webhook, and a consumer far behind."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median, quantiles

import httpx2
from tests.bench.report import Figure
from tests.load.followers import ACK_EVERY, PER_COMMIT, fill_outbox, follow_all
from tests.stubs.real_server import serving

from everkept import AsyncMemory, Memory
from everkept.store.projects import find_project
from everkept.store.store import Store

ANSWER_S = 30.0


def measure(home: Path, *, quick: bool) -> Iterator[Figure]:
    yield from _consumers(home / "consumers", changes=5_000 if quick else 50_000)
    yield from _behind(home / "behind", changes=20_000 if quick else 200_000)
    yield from _webhooks(home / "webhooks", rounds=20 if quick else 100)
    if not quick:
        yield from _dying(home / "dying", changes=100_000)


def _filled(home: Path, changes: int) -> float:
    """Seconds that it took to write them."""
    with Memory.open(home, worker=False):
        pass
    store = Store(home / "everkept.db", threads=False)
    store.open()
    project = store.read_now(find_project, "default")
    assert project is not None
    begun = time.perf_counter()
    fill_outbox(store, project.id, changes)
    took_s = time.perf_counter() - begun
    store.close()
    return took_s


def _consumers(home: Path, *, changes: int) -> Iterator[Figure]:
    written = changes / _filled(home, changes)
    one, ten = asyncio.run(_rates(home, changes))
    peer = f"writing them, {PER_COMMIT} a commit"
    for name, rate in (("through one consumer", one), ("through each of ten at once, in all", ten)):
        yield Figure(
            name=f"changes {name}, acknowledged every {ACK_EVERY}", value=rate, unit="/s", peer=peer, peer_value=written
        )


async def _rates(home: Path, changes: int) -> tuple[float, float]:
    async with AsyncMemory.open(home, worker=False) as memory:

        async def follow(name: str) -> int:
            return len([c.seq async for c in memory.follow(name, until_idle=True, ack_every=ACK_EVERY)])

        begun = time.perf_counter()
        assert await follow("one") == changes
        one = changes / (time.perf_counter() - begun)
        begun = time.perf_counter()
        followed = await asyncio.gather(*(follow(f"of ten {n}") for n in range(10)))
        assert followed == [changes] * 10
        return one, 10 * changes / (time.perf_counter() - begun)


def _behind(home: Path, *, changes: int) -> Iterator[Figure]:
    """What a page costs a consumer that has everything before it, and one that is nearly there."""
    _filled(home, changes)
    with Memory.open(home, worker=False) as memory:

        def page_ms(after: int, kinds: list[str] | None = None) -> float:
            taken = []
            for _ in range(20):
                begun = time.perf_counter()
                memory.changes(after=after, limit=200, kinds=kinds)
                taken.append(1000 * (time.perf_counter() - begun))
            return median(taken)

        near = page_ms(changes - 200)
        words = f"{changes:,} changes behind"
        yield Figure(name=f"a page of 200, {words}", value=page_ms(0), unit="ms", peer="200 behind", peer_value=near)
        yield Figure(
            name=f"looking for a kind that never comes, {words}", value=page_ms(0, ["page"]), unit="ms",
            peer="200 behind", peer_value=near,
        )  # fmt: skip


class _Hook(BaseHTTPRequestHandler):
    server: _Hooks
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.put(time.perf_counter())
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Quiet."""


class _Hooks(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Hook)
        self.got: queue.SimpleQueue[float] = queue.SimpleQueue()


@contextmanager
def _receiving() -> Iterator[_Hooks]:
    with _Hooks() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _webhooks(home: Path, *, rounds: int) -> Iterator[Figure]:
    with _receiving() as hooks, serving(home, EVERKEPT_WEBHOOKS__ALLOW_PRIVATE="true") as (_, url):
        address = f"http://127.0.0.1:{hooks.server_port}/"
        with httpx2.Client(base_url=url, timeout=ANSWER_S) as client:
            body = {"name": "bench", "url": address, "kinds": ["messages"]}
            client.post("/v1/webhooks", json=body).raise_for_status()
            taken = [_one(client, hooks, n) for n in range(rounds + 3)][3:]
        with httpx2.Client(timeout=ANSWER_S) as client:
            bare = [_bare(client, hooks, address) for _ in range(rounds)]
    p95, bare_p95 = (quantiles(each, n=20)[-1] for each in (taken, bare))
    peer = "a bare POST to the same receiver"
    yield Figure(name="commit → webhook, p50", value=median(taken), unit="ms", peer=peer, peer_value=median(bare))
    yield Figure(name="commit → webhook, p95", value=p95, unit="ms", peer=peer, peer_value=bare_p95)


def _one(client: httpx2.Client, hooks: _Hooks, n: int) -> float:
    """From the answer to an append, which leaves after its commit, to the receiver; 0 where the receiver was first."""
    said = {"role": "user", "content": f"Hello {n}.", "subject": "ana"}
    client.post(f"/v1/threads/bench-{n}/messages", json=said).raise_for_status()
    begun = time.perf_counter()
    return max(0.0, 1000 * (hooks.got.get(timeout=ANSWER_S) - begun))


def _bare(client: httpx2.Client, hooks: _Hooks, address: str) -> float:
    begun = time.perf_counter()
    client.post(address, json={}).raise_for_status()
    return 1000 * (hooks.got.get(timeout=ANSWER_S) - begun)


def _dying(home: Path, *, changes: int) -> Iterator[Figure]:
    written_s = _filled(home, changes)
    with serving(home) as (_, url):
        begun = time.perf_counter()
        followed = follow_all(url, home, consumers=8, dying=4, changes=changes)
        took_s = time.perf_counter() - begun
    everything = list(range(1, changes + 1))
    assert all(each.told == everything for each in followed), "a change was lost, twice, or out of order"
    yield Figure(
        name=f"{changes:,} changes to 8 processes, 4 of them dying", value=took_s, unit="s",
        peer="writing them", peer_value=written_s,
    )  # fmt: skip
