"""Durable appends through HTTP: 1 and 16 clients, 1 or 100 messages a request.

Each beside a bare insert in the same framework, and all beside plain SQLite with group commit, which is the floor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from tests.bench.corpus import as_messages, make_texts
from tests.bench.load import Load, request_bytes, run_clients
from tests.bench.processes import Served, bare_app, everkept
from tests.bench.report import Figure, Goal

from everkept.store.sqlite import choose_driver, open_file

CLIENTS = 16
BATCH = 100


def measure(home: Path, *, quick: bool) -> Iterator[Figure]:
    """Three servers at once, of which one works at a time, in turn. Everkept's worker is off here."""
    rounds = 2 if quick else 5
    with ExitStack() as stack:
        ours = stack.enter_context(everkept(home / "http", worker=False))
        alone = stack.enter_context(bare_app(home / "bare.db", group=False))
        group = stack.enter_context(bare_app(home / "bare-group.db", group=True))
        yield from _alone(ours, alone, rounds, 25 if quick else 100)
        yield from _single(ours, alone, group, _group_commit(home / "plain.db"), rounds, 25 if quick else 50)
        yield from _batches(ours, alone, rounds, 1 if quick else 2)


def _alone(ours: Served, alone: Served, rounds: int, each: int) -> Iterator[Figure]:
    """One client that waits for each answer: nobody shares its commit."""

    def one(server: Served, prefix: str) -> Callable[[int], Load]:
        return lambda round_: run_clients(server.port, _one_by_one(prefix, 1_000 + round_, each, clients=1))

    mine, bare = (
        median(load.rate for load in loads) for loads in _interleave([one(ours, "/v1"), one(alone, "")], rounds)
    )
    yield Figure(
        name="1 client × 1 message", value=mine, unit="appends/s", peer="bare insert, a commit each", peer_value=bare
    )


def _group_commit(file: Path) -> float:
    """Rows a second that plain SQLite takes from 16 clients in one thread: a row of each in every commit."""
    raw = open_file(choose_driver(), file)
    raw.execute("create table messages(id integer primary key, thread text, role text, content text, at integer)")
    texts = make_texts(CLIENTS * 100, seed=5)
    start = time.perf_counter()
    for first in range(0, len(texts), CLIENTS):
        raw.execute("begin immediate")
        for text in texts[first : first + CLIENTS]:
            raw.execute("insert into messages(thread, role, content, at) values('t', 'user', ?, ?)", (text, first))
        raw.execute("commit")
    rate = len(texts) / (time.perf_counter() - start)
    raw.close()
    return rate


def _single(ours: Served, alone: Served, group: Served, plain: float, rounds: int, each: int) -> Iterator[Figure]:
    def one(server: Served, prefix: str) -> Callable[[int], Load]:
        return lambda round_: run_clients(server.port, _one_by_one(prefix, round_, each))

    runs = _interleave([one(ours, "/v1"), one(alone, ""), one(group, "")], rounds)
    mine, bare, grouped = (median(load.rate for load in loads) for loads in runs)
    unit = "appends/s"
    yield Figure(
        name=f"{CLIENTS} clients × 1 message",
        value=mine,
        unit=unit,
        peer="bare insert, a commit each",
        peer_value=bare,
        goal=Goal(of="ratio", sense="least", bound=0.7),
    )
    yield Figure(
        name=f"{CLIENTS} clients × 1 message",
        value=mine,
        unit=unit,
        peer="bare insert, group commit",
        peer_value=grouped,
    )
    yield Figure(
        name=f"{CLIENTS} clients × 1 message",
        value=mine,
        unit=unit,
        peer=f"plain SQLite, {CLIENTS} rows a commit, no HTTP",
        peer_value=plain,
    )
    latencies = [sorted(t for load in loads for t in load.latencies_s) for loads in runs]
    for share in (0.5, 0.95):
        p_mine, p_bare, _ = (1e3 * found[int(share * len(found))] for found in latencies)
        yield Figure(
            name=f"answer p{share * 100:.0f}",
            value=p_mine,
            unit="ms",
            peer="bare insert, a commit each",
            peer_value=p_bare,
        )


def _one_by_one(prefix: str, round_: int, each: int, *, clients: int = CLIENTS) -> list[list[bytes]]:
    bodies = as_messages(make_texts(clients * each, seed=round_))
    return [
        [
            request_bytes(
                "POST", f"{prefix}/threads/r{round_}-{client}/messages", {**body, "subject": f"user_{client}"}
            )
            for body in bodies[client * each : (client + 1) * each]
        ]
        for client in range(clients)
    ]


def _batches(ours: Served, alone: Served, rounds: int, each: int) -> Iterator[Figure]:
    def many(server: Served, path: str) -> Callable[[int], Load]:
        return lambda round_: run_clients(server.port, _batched(path, round_, each))

    runs = _interleave([many(ours, "/v1/threads/{}/messages"), many(alone, "/threads/{}/batches")], rounds)
    mine, bare = (median(load.rate * BATCH for load in loads) for loads in runs)
    yield Figure(
        name=f"{CLIENTS} clients × batches of {BATCH}",
        value=mine,
        unit="messages/s",
        peer="bare insert, no full text",
        peer_value=bare,
    )


def _batched(path: str, round_: int, each: int) -> list[list[bytes]]:
    bodies = as_messages(make_texts(CLIENTS * each * BATCH, seed=100 + round_))
    found: list[list[bytes]] = []
    for client in range(CLIENTS):
        mine = bodies[client * each * BATCH : (client + 1) * each * BATCH]
        found.append(
            [
                request_bytes(
                    "POST",
                    path.format(f"b{round_}-{client}"),
                    {"messages": mine[i : i + BATCH], "subject": f"user_{client}"},
                )
                for i in range(0, len(mine), BATCH)
            ]
        )
    return found


def _interleave(sides: list[Callable[[int], Load]], rounds: int) -> list[list[Load]]:
    """A B A B, so that what the machine does besides falls on both. A first round warms up and is not counted."""
    runs: list[list[Load]] = [[] for _ in sides]
    for round_ in range(rounds + 1):
        for side, loads in zip(sides, runs, strict=True):
            loads.append(side(round_))
    return [loads[1:] for loads in runs]
