"""The running server: its start and memory, how soon a message is found and remembered, and heartbeats beside load."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from statistics import median

from tests.bench.corpus import as_messages, make_texts
from tests.bench.load import call, request_bytes, run_clients
from tests.bench.processes import Served, bare_app, everkept
from tests.bench.report import Figure, Goal

from everkept.config import load
from everkept.store.leases import renew_leases
from everkept.store.store import Store

POLL_S = 0.005
REMEMBER_MAX_S = 30.0


def measure(home: Path, *, quick: bool) -> Iterator[Figure]:
    with ExitStack() as stack:
        ours = stack.enter_context(everkept(home / "service", worker=True))
        bare = stack.enter_context(bare_app(home / "bare-service.db", group=False))
        yield from _resources(home, ours, bare, rounds=1 if quick else 3)
        yield from _latencies(ours, rounds=5 if quick else 15)
        yield from _heartbeats(home / "service", ours, rounds=2 if quick else 5)


def _resources(home: Path, ours: Served, bare: Served, *, rounds: int) -> Iterator[Figure]:
    """The first start made the store and compiled the code; it is not counted."""
    _first_append(ours, "/v1")
    call(ours.port, "POST", "/v1/recall", {"query": "hello", "subject": "ana"})
    _first_append(bare, "")
    memory = ours.resident_mb(), bare.resident_mb()
    mine, peer = [], []
    for round_ in range(rounds + 1):
        start = time.perf_counter()
        with everkept(home / "start", worker=True) as again:
            _first_append(again, "/v1")
            mine.append(time.perf_counter() - start)
        start = time.perf_counter()
        with bare_app(home / f"start-{round_}.db", group=False) as again:
            _first_append(again, "")
            peer.append(time.perf_counter() - start)
    yield Figure(
        name="start to first append answered",
        value=median(mine[1:]),
        unit="s",
        peer="bare app",
        peer_value=median(peer[1:]),
    )
    yield Figure(
        name="anonymous memory after a recall", value=memory[0], unit="MB", peer="bare app", peer_value=memory[1]
    )


def _first_append(server: Served, prefix: str) -> None:
    call(
        server.port, "POST", f"{prefix}/threads/warm/messages", {"role": "user", "content": "Hello.", "subject": "ana"}
    )


def _latencies(ours: Served, *, rounds: int) -> Iterator[Figure]:
    lives = [_follow(ours, f"zanzibar{round_}") for round_ in range(rounds)]
    accepted, found, remembered = ([life[stage] for life in lives] for stage in range(3))
    append_ms = median(accepted) * 1e3
    yield Figure(
        name="accept → found by recall",
        value=median(found) * 1e3,
        unit="ms",
        peer="the append itself",
        peer_value=append_ms,
    )
    yield Figure(
        name="accept → remembered (thread ended at once)",
        value=median(remembered) * 1e3,
        unit="ms",
        peer="the append itself",
        peer_value=append_ms,
    )


def _follow(ours: Served, word: str) -> tuple[float, float, float]:
    """Seconds until one message is accepted, found by recall, and (its thread ended at once) remembered."""
    start = time.perf_counter()
    body = {"role": "user", "content": f"I moved to {word.title()} in May.", "subject": "ana"}
    answer = call(ours.port, "POST", f"/v1/threads/{word}/messages", body)
    accepted = time.perf_counter() - start
    _wait(lambda: word in _recalled(ours, word))
    found = time.perf_counter() - start
    call(ours.port, "POST", f"/v1/threads/{word}/end")
    event = answer["receipts"][0]["event_id"]
    _wait(lambda: call(ours.port, "GET", f"/v1/receipts/{event}")["state"] == "remembered")
    return accepted, found, time.perf_counter() - start


def _recalled(ours: Served, word: str) -> str:
    answer = call(ours.port, "POST", "/v1/recall", {"query": f"Who moved to {word}?", "subject": "ana"})
    return " ".join(result["text"] for result in answer["results"]).lower()


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + REMEMBER_MAX_S
    while not condition():
        if time.perf_counter() > deadline:
            raise RuntimeError(f"it did not happen within {REMEMBER_MAX_S:.0f} s")
        time.sleep(POLL_S)


def _heartbeats(home: Path, ours: Served, *, rounds: int) -> Iterator[Figure]:
    """A second process (this one) on the same file renews its leases while the first one's writer is saturated."""
    store = Store(home / "everkept.db")
    store.open()
    try:
        settings = load({"EVERKEPT_HOME": str(home)}, home)
        beat = _beats(store, settings.work.lease_s, rounds * 10)
        stop = threading.Event()
        load_ = threading.Thread(target=_saturate, args=(ours.port, stop))
        load_.start()
        time.sleep(0.3)
        beside = _beats(store, settings.work.lease_s, rounds * 10)
        stop.set()
        load_.join()
    finally:
        store.close()
    yield Figure(
        name="longest heartbeat of a second process, writer saturated",
        value=max(beside) * 1e3,
        unit="ms",
        peer="the same, nobody writing",
        peer_value=max(beat) * 1e3,
        goal=Goal(of="value", sense="most", bound=1_000),
    )


def _beats(store: Store, lease_s: float, times: int) -> list[float]:
    took = []
    for _ in range(times):
        start = time.perf_counter()
        store.write_now(renew_leases, "bench-second", 4, lease_s, urgent=True)
        took.append(time.perf_counter() - start)
        time.sleep(0.02)
    return took


def _saturate(port: int, stop: threading.Event) -> None:
    """Eight clients with batches of 100, until told to stop."""
    bodies = as_messages(make_texts(100, seed=7))
    for round_ in count():
        if stop.is_set():
            return
        run_clients(
            port,
            [
                [
                    request_bytes(
                        "POST",
                        f"/v1/threads/s{round_}-{client}/messages",
                        {"messages": bodies, "subject": f"user_{client}"},
                    )
                ]
                for client in range(8)
            ],
        )
