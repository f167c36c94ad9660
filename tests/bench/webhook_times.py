"""Webhooks: from a commit to the receiver, one at a time, and how fast those that wait are sent."""

from __future__ import annotations

import json
import queue
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median, quantiles

import httpx2
from tests.bench.report import Figure
from tests.load.outbox import fill_outbox
from tests.stubs.real_server import serving

ANSWER_S = 30.0
REST_MAX_S = 0.2
"""Between two: the task that sent the one before has ended, is about to, or is at it."""


def measure(home: Path, *, rounds: int, waiting: int) -> Iterator[Figure]:
    fill_outbox(home, waiting)
    with _receiving() as hooks, serving(home, EVERKEPT_WEBHOOKS__ALLOW_PRIVATE="true") as (_, url):
        address = f"http://127.0.0.1:{hooks.server_port}/"
        with httpx2.Client(base_url=url, timeout=ANSWER_S) as client, httpx2.Client(timeout=ANSWER_S) as direct:
            yield _backlog(client, direct, hooks, address, waiting)
            taken, bare, chance = [], [], random.Random(1)
            for n in range(-3, rounds):
                time.sleep(chance.uniform(0, REST_MAX_S))
                one, other = _one(client, hooks, n), _bare(direct, hooks, address)
                if n >= 0:  # the first ones warm up
                    taken.append(one)
                    bare.append(other)
    p95, bare_p95 = (quantiles(each, n=20)[-1] for each in (taken, bare))
    peer = "a bare POST to the same receiver"
    yield Figure(name="commit → webhook, p50", value=median(taken), unit="ms", peer=peer, peer_value=median(bare))
    yield Figure(name="commit → webhook, p95", value=p95, unit="ms", peer=peer, peer_value=bare_p95)
    yield Figure(name="commit → webhook, slowest", value=max(taken), unit="ms", peer=peer, peer_value=max(bare))


def _backlog(client: httpx2.Client, direct: httpx2.Client, hooks: _Hooks, address: str, waiting: int) -> Figure:
    """Each is acknowledged, a commit, before the next one is sent."""
    begun = time.perf_counter()
    for _ in range(waiting):
        _bare(direct, hooks, address)
    bare = waiting / (time.perf_counter() - begun)
    body = {"name": "bench", "url": address, "kinds": ["messages", "fact"], "after": 0}
    begun = time.perf_counter()
    client.post("/v1/webhooks", json=body).raise_for_status()
    for _ in range(waiting):
        hooks.got.get(timeout=ANSWER_S)
    rate = waiting / (time.perf_counter() - begun)
    return Figure(
        name="changes that waited, to one webhook", value=rate, unit="/s", peer="bare POSTs, one after the other",
        peer_value=bare,
    )  # fmt: skip


def _one(client: httpx2.Client, hooks: _Hooks, n: int) -> float:
    """From the time of the change, which is taken as it is written, to the receiver: with the commit itself."""
    said = {"role": "user", "content": f"Hello {n}.", "subject": "ana"}
    client.post(f"/v1/threads/bench-{n}/messages", json=said).raise_for_status()
    body, arrived_at = hooks.got.get(timeout=ANSWER_S)
    return 1000 * (arrived_at - datetime.fromisoformat(json.loads(body)["timestamp"]).timestamp())


def _bare(client: httpx2.Client, hooks: _Hooks, address: str) -> float:
    begun_at = time.time()
    client.post(address, json={}).raise_for_status()
    return 1000 * (hooks.got.get(timeout=ANSWER_S)[1] - begun_at)


class _Hook(BaseHTTPRequestHandler):
    server: _Hooks
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.put((body, time.time()))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Quiet."""


class _Hooks(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Hook)
        self.got: queue.SimpleQueue[tuple[bytes, float]] = queue.SimpleQueue()
        """(body, when in seconds since 1970)."""


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
