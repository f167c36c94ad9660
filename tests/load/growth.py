"""A hundred thousand messages through the real server: memory, handles, threads, log and file stay bounded."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from tests.load.serving import Resources, Server

BATCH = 100
SUBJECTS = 50
"""Each has a thread a hundred messages long, then a new one."""
IDLE_CLIENTS = 100
SAMPLES = 10
RECALLS_A_SAMPLE = 20
SETTLE_MAX_S = 900.0
SETTINGS = {"EVERKEPT_WORK__TICK_S": "0.5", "EVERKEPT_WINDOW__IDLE_S": "2"}
WORDS = (
    "harbour lantern meadow copper violin orchard thunder basket winter marble river engine candle forest pepper bridge"
    " saddle window garden pocket silver kitchen letter island mirror ladder summer button castle feather"
).split()

BYTES_A_PASSAGE_MAX = 700
"""Of the server's own memory: 80 for the columns that recall ranks by and their index, 144 for sign bits and ids, 8 for
each posting of a word that was asked for, and as much again while the arrays are made longer."""
MEMORY_SLACK_BYTES = (64 + 96) << 20
"""What caches of bounded size may add between an early sample and a late one: the pages that the writer keeps (64 MB),
and the words of 32,768 passages that were ranked lately (about 3 kB each)."""
FILE_BYTES_A_MESSAGE_MAX = 1_500
WAL_BYTES_MAX = 80 << 20
"""The bound at which the writer cuts the log back, and one group."""
HANDLES_MAX = 64
"""Without those of idle clients: libraries, logs, the store's files once for the writer and for each reader."""
THREADS_MAX = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    messages: int
    resources: Resources
    wal_bytes: int
    file_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Samples at equal steps, the first after a tenth of the messages."""

    samples: list[Sample]
    seconds: float
    connections: int
    """Idle ones that were held open all the while."""

    @property
    def bytes_a_message(self) -> float:
        """Own memory, from the second sample to the last: the first steps fill caches."""
        first, last = self.samples[1], self.samples[-1]
        return (last.resources.anonymous_bytes - first.resources.anonymous_bytes) / (last.messages - first.messages)

    def excesses(self) -> list[str]:
        """What grew beyond its bound."""
        first, last = self.samples[1], self.samples[-1]
        added = last.messages - first.messages
        bound = first.resources.anonymous_bytes + MEMORY_SLACK_BYTES + added * BYTES_A_PASSAGE_MAX
        memory = last.resources.anonymous_bytes
        wal = max(sample.wal_bytes for sample in self.samples)
        handles = max(sample.resources.handles for sample in self.samples) - self.connections
        threads = max(sample.resources.threads for sample in self.samples)
        a_message = last.file_bytes / last.messages
        checks = (
            (memory <= bound, f"memory: {memory:,} bytes, over {bound:,}"),
            (wal <= WAL_BYTES_MAX, f"log: {wal:,} bytes"),
            (handles <= HANDLES_MAX, f"handles: {handles}"),
            (threads <= THREADS_MAX, f"threads: {threads}"),
            (a_message <= FILE_BYTES_A_MESSAGE_MAX, f"file: {a_message:.0f} bytes a message"),
        )  # fmt: skip
        return [what for holds, what in checks if not holds]

    def sentence(self) -> str:
        last = self.samples[-1]
        return (
            f"{last.messages:,} messages: {last.resources.anonymous_bytes / 2**20:.0f} MB of memory,"
            f" {last.resources.handles} handles, log at most {max(s.wal_bytes for s in self.samples) / 2**20:.1f} MB,"
            f" {last.file_bytes / last.messages:.0f} bytes a message on disk, {len(self.excesses())} beyond their bound"
        )

    def lines(self) -> list[str]:
        rows = [
            f"{s.messages:>8,}  memory {s.resources.anonymous_bytes / 2**20:6.0f} MB  handles {s.resources.handles:4}"
            f"  threads {s.resources.threads:3}  log {s.wal_bytes / 2**20:5.1f} MB  file"
            f" {s.file_bytes / s.messages:5.0f} bytes a message"
            for s in self.samples
        ]
        return [*rows, f"{self.bytes_a_message:.0f} bytes of memory a message; {self.seconds:.0f} s",
                *(f"  beyond its bound: {what}" for what in self.excesses())]  # fmt: skip


def grow(place: Path, *, messages: int, step_is_settled: bool = True) -> Growth:
    """Append and recall, sampling as it goes. `step_is_settled`: all work is done before each sample is taken."""
    server = Server(place / "home", SETTINGS)
    start = time.monotonic()
    samples: list[Sample] = []
    try:
        server.start()
        server.wait_until_it_listens()
        with ExitStack() as stack:
            for _ in range(IDLE_CLIENTS):
                _say_nothing(stack, server.url)
            http = stack.enter_context(httpx2.Client(base_url=server.url, timeout=120))
            batches = _batches(messages)
            for step in range(1, SAMPLES + 1):
                for _ in range(messages // BATCH // SAMPLES):
                    thread, body = next(batches)
                    http.post(f"/v1/threads/{thread}/messages", json=body).raise_for_status()
                for n in range(RECALLS_A_SAMPLE):
                    query = {"query": f"What about the {WORDS[(step + n) % len(WORDS)]}?", "subject": f"s{n}"}
                    http.post("/v1/recall", json=query).raise_for_status()
                if step_is_settled:
                    _settle(http)
                samples.append(_sample(server, messages * step // SAMPLES))
    finally:
        server.close()
    return Growth(samples=samples, seconds=time.monotonic() - start, connections=IDLE_CLIENTS)


def _say_nothing(stack: ExitStack, url: str) -> None:
    """A client that asked once and keeps its connection."""
    idle = stack.enter_context(httpx2.Client(base_url=url, timeout=60))
    idle.get("/healthz").raise_for_status()


def _batches(messages: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """(thread, body), each of `BATCH` messages in a thread of its own; subjects in turn."""
    for number in range(messages // BATCH):
        subject = f"s{number % SUBJECTS}"
        texts = [
            f"Message {number}-{n} is about the {WORDS[(number + n) % 30]}, the {WORDS[(number * 7 + n * 3) % 30]} and"
            f" the {WORDS[(number * 11 + n * 5) % 30]} of word{number * BATCH + n}."
            for n in range(BATCH)
        ]
        body = {"subject": subject, "messages": [{"role": "user", "content": text} for text in texts]}
        yield f"t{number}", body


def _settle(http: httpx2.Client) -> None:
    end = time.monotonic() + SETTLE_MAX_S
    while http.get("/v1/status").json()["backlog_due"]:
        if time.monotonic() > end:
            raise RuntimeError(f"the work did not end within {SETTLE_MAX_S:.0f} s")
        time.sleep(0.2)


def _sample(server: Server, messages: int) -> Sample:
    wal = server.store.with_name(f"{server.store.name}-wal")
    return Sample(
        messages=messages, resources=server.resources(), wal_bytes=wal.stat().st_size if wal.exists() else 0,
        file_bytes=server.store.stat().st_size,
    )  # fmt: skip
