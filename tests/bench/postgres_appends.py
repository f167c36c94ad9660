"""Durable appends on PostgreSQL: 64 clients that each wait for their answer, all in one project, one message at a time.

In this process through the store's writer, and through HTTP; beside them a bare insert with a commit each, over as many
connections as there are clients.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
from tests.bench.corpus import as_messages, make_texts
from tests.bench.load import request_bytes, run_clients
from tests.bench.postgres_server import Server, postgres
from tests.bench.processes import everkept
from tests.bench.report import Figure, Goal

from everkept.capture.messages import Given, check_messages
from everkept.config import load
from everkept.store.postgres import PostgresDatabase
from everkept.store.projects import ensure_project
from everkept.store.store import Store
from everkept.store.streams import Append, append_events

CLIENTS = 64
GOAL = 2_500


def measure(home: Path, *, quick: bool) -> Iterator[Figure]:
    each = 10 if quick else 50
    with postgres() as server:
        bare = _bare(server, each)
        figures = (
            ("in this process", asyncio.run(_in_process(server, home, each))),
            ("HTTP", _http(server, home, each)),
        )
    for way, rate in figures:
        yield Figure(
            name=f"{CLIENTS} clients × 1 message, one project, {way}", value=rate, unit="appends/s",
            peer="bare insert, a commit each, a connection each", peer_value=bare,
            goal=Goal(of="value", sense="least", bound=GOAL),
        )  # fmt: skip


async def _in_process(server: Server, home: Path, each: int) -> float:
    """Messages are checked and analysed beforehand; the first of a client, which makes its thread, is not counted."""
    store = Store(PostgresDatabase(server.new_memory()))
    store.open()
    try:
        settings = load({}, home)
        project = await store.write(ensure_project, "default", bytes(32))
        writing, now = store.reaching(project.id), time.time_ns() // 1000

        def append(client: int, number: int, content: str) -> Append:
            messages = check_messages(
                [Given(role="user", content=content)], thread=f"t{client}", key=f"{client}-{number}",
                secret=project.secret, now_us=now,
            )  # fmt: skip
            return Append(
                project=project.id, thread=f"t{client}", subject=f"user_{client}", messages=messages, base=settings
            )

        texts = make_texts(CLIENTS * (each + 1), seed=3)
        per_client = [
            [append(client, n, texts[client * (each + 1) + n]) for n in range(each + 1)] for client in range(CLIENTS)
        ]

        async def send(items: list[Append]) -> None:
            for item in items:
                await writing.write_item(append_events, item)

        await asyncio.gather(*(send(items[:1]) for items in per_client))
        start = time.perf_counter()
        await asyncio.gather(*(send(items[1:]) for items in per_client))
        return CLIENTS * each / (time.perf_counter() - start)
    finally:
        store.close()


def _http(server: Server, home: Path, each: int) -> float:
    def requests(first: int, count: int) -> list[list[bytes]]:
        bodies = as_messages(make_texts(CLIENTS * count, seed=first))
        return [
            [
                request_bytes("POST", f"/v1/threads/t{client}/messages", {**body, "subject": f"user_{client}"})
                for body in bodies[client * count : (client + 1) * count]
            ]
            for client in range(CLIENTS)
        ]

    with everkept(home / "http", worker=False, environment={"EVERKEPT_DATABASE_URL": server.new_memory()}) as served:
        run_clients(served.port, requests(1, 1))
        return run_clients(served.port, requests(2, each)).rate


def _bare(server: Server, each: int) -> float:
    url = server.new_database()
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute(
            "create table messages(id bigint generated always as identity primary key, thread text, content text)"
        )
    raws = [psycopg.connect(url, autocommit=True) for _ in range(CLIENTS)]
    texts = make_texts(each, seed=5)

    def send(raw: psycopg.Connection[object]) -> None:
        for content in texts:
            raw.execute("insert into messages(thread, content) values('t', %s)", (content,))

    try:
        with ThreadPoolExecutor(CLIENTS) as pool:
            start = time.perf_counter()
            list(pool.map(send, raws))
            return CLIENTS * each / (time.perf_counter() - start)
    finally:
        for raw in raws:
            raw.close()
