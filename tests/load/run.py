"""Sixteen clients against the real server while it is killed at random: nothing lost, nothing twice (G1 to G10)."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx2
from tests.load.clients import Client
from tests.load.serving import Killer, Pulse, Server
from tests.load.ways import OwnClient, PlainHttp
from tests.stubs.llm_server import Asked, LlmServer, Reply, Say

from everkept.prove.checks import check_drained
from everkept.prove.record import Record
from everkept.store.sqlite import choose_driver, open_file

CLIENTS = 16
PROJECTS = ("default", "blue", "green")
DRAIN_MAX_S = 240.0
FOUND_SAMPLE = 20
"""Messages of each client that are looked for by recall at the end."""
SETTINGS = {
    "EVERKEPT_WINDOW__IDLE_S": "3", "EVERKEPT_WORK__TICK_S": "0.5", "EVERKEPT_WORK__HEARTBEAT_S": "1",
    "EVERKEPT_WORK__LEASE_S": "5", "EVERKEPT_WORK__BACKOFF_FIRST_S": "0.2", "EVERKEPT_WORK__BACKOFF_MAX_S": "2",
    "EVERKEPT_MODELS__PROBE_S": "1", "EVERKEPT_WORK__CRASHES_MAX": "50",  # the killer is no fault of the work
    "EVERKEPT_MODEL": "openai:gpt-5-mini", "OPENAI_API_KEY": "sk-not-real-0123",
}  # fmt: skip
REPLIES: dict[str, Sequence[Reply]] = {
    "facts": [Say(value={"facts": []}, latency_s=0.05)],
    "summary": [Say(value={"summary": "They talked.", "learnings": ["They talk."]}, latency_s=0.05)],
    "fold": [Say(value={"summary": "They talk."}, latency_s=0.05)],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run did and found."""

    seconds: float
    answers: int
    repeats: int
    messages: int
    strikes: dict[str, int]
    append_s: list[float]
    other_s: list[float]
    longest_outage_s: float
    questions: int
    looked_for: int
    violations: list[str]

    def sentence(self) -> str:
        return (
            f"{self.seconds / 60:.0f} minutes under {CLIENTS} clients, {sum(self.strikes.values())} strikes at the"
            f" server, {self.messages:,} messages told, {len(self.violations)} violations"
        )

    def lines(self) -> list[str]:
        strikes = ", ".join(f"{how} {count}" for how, count in self.strikes.items())
        return [
            f"{self.seconds:.0f} s, {CLIENTS} clients, {self.answers:,} answers, {self.repeats:,} sent again",
            f"{self.messages:,} messages told; the server was: {strikes}",
            f"append {_percentiles(self.append_s)}; other requests {_percentiles(self.other_s)}",
            f"longest time without any answer: {self.longest_outage_s:.1f} s",
            f"{self.questions:,} questions to the model; {self.looked_for:,} messages looked for at the end",
            f"{len(self.violations)} violations",
            *(f"  {violation}" for violation in self.violations[:50]),
        ]


def _percentiles(seconds: Sequence[float]) -> str:
    if len(seconds) < 2:
        return "none"
    cuts = quantiles(seconds, n=20)
    return f"p50 {cuts[9] * 1e3:.0f} ms, p95 {cuts[18] * 1e3:.0f} ms"


class TimedModel(LlmServer):
    """Notes when each question came."""

    def __init__(self) -> None:
        super().__init__(REPLIES)
        self.at_us: list[tuple[bytes, int]] = []

    def take(self, asked: Asked) -> Reply:
        self.at_us.append((_request_hash(asked), time.time_ns() // 1000))
        return super().take(asked)


def run(place: Path, *, minutes: float, seed: int, between_s: float) -> Report:
    """`between_s`: mean time between two strikes at the server, in seconds. Leaves its files in `place`."""
    place.mkdir(parents=True, exist_ok=True)
    chance = random.Random(seed)
    pulse = Pulse()
    record = Record(place / "record.jsonl")
    model = TimedModel()
    with model:
        server = Server(place / "home", {**SETTINGS, "OPENAI_BASE_URL": model.url})
        try:
            server.start()
            server.wait_until_it_listens()
            _make_projects(server.url)
            start = time.monotonic()
            clients = [_client(n, server.url, record, pulse, chance.randrange(1 << 30)) for n in range(CLIENTS)]
            killer = Killer(server, pulse, chance.randrange(1 << 30), mean_s=between_s)
            for client in clients:
                client.start()
            killer.start()
            time.sleep(minutes * 60)
            killer.stop()
            for client in clients:
                client.stop()
            for client in clients:
                client.join()
            seconds = time.monotonic() - start
            violations = [wrong for client in clients for wrong in client.tally.violations]
            violations += _drain(server.url, clients)
            looked_for = 0
            for client in clients:
                missing, number = _look_for(client, server.url, chance)
                violations += missing
                looked_for += number
            server.stop()
            violations += [str(each) for each in check_drained(server.store, record, deaths=killer.deaths)]
            violations += _paid_twice(server.store, model)
        finally:
            server.close()
            record.close()
    tallies = [client.tally for client in clients]
    return Report(
        seconds=seconds, answers=sum(t.answers for t in tallies), repeats=sum(t.repeats for t in tallies),
        messages=sum(t.messages for t in tallies), strikes=killer.counts,
        append_s=[s for t in tallies for s in t.append_s], other_s=[s for t in tallies for s in t.other_s],
        longest_outage_s=max(pulse.outages_s, default=0.0), questions=len(model.at_us), looked_for=looked_for,
        violations=violations,
    )  # fmt: skip


def _make_projects(url: str) -> None:
    for project in PROJECTS:
        httpx2.post(f"{url}/v1/projects", json={"name": project}, timeout=60).raise_for_status()


def _client(number: int, url: str, record: Record, pulse: Pulse, seed: int) -> Client:
    project = PROJECTS[number % len(PROJECTS)]
    way = OwnClient(url, project) if number % 2 else PlainHttp(url, project)
    return Client(number, way, project, record, pulse, seed)


def _drain(url: str, clients: Sequence[Client]) -> list[str]:
    """End every thread and let the work run out; what was given up."""
    for client in clients:
        http = PlainHttp(url, client.project)
        for thread in client.threads():
            http.end(thread)
        http.close()
    end = time.monotonic() + DRAIN_MAX_S
    while _busy(url) and time.monotonic() < end:
        time.sleep(0.5)
    given_up = httpx2.get(f"{url}/v1/status", timeout=60).json()["given_up"]
    return [f"G7: a job was given up: {item}" for item in given_up]


def _busy(url: str) -> bool:
    status = httpx2.get(f"{url}/v1/status", timeout=60).json()
    running = sum(worker["running"] for worker in status["workers"])
    return bool(status["backlog_due"] or status["backlog_armed"] or running)


def _look_for(client: Client, url: str, chance: random.Random) -> tuple[list[str], int]:
    """Final receipts, and messages that recall finds: a sample of what was acknowledged and not erased."""
    http = PlainHttp(url, client.project)
    wrong: list[str] = []
    sample = chance.sample(client.kept, min(FOUND_SAMPLE, len(client.kept)))
    for told in sample:
        text = chance.choice(told.texts)
        if text not in http.recall(text.split()[0], told.subject):
            wrong.append(f"G4: {text[:40]!r} of {told.thread} is not found at the end")
        state = http.receipt(told.places[0][0])
        if state != "remembered":
            wrong.append(f"G3: the receipt of {told.places[0][0]} in {told.thread} is {state} at the end")
    http.close()
    return wrong, len(sample)


def _paid_twice(store: Path, model: TimedModel) -> list[str]:
    """Questions that were asked again after their reply had been committed, or that the journal does not count."""
    raw = open_file(choose_driver(), store, read_only=True)
    rows: list[tuple[bytes, int, int | None, str]] = raw.execute(
        "select request_hash, asked, replied_at, work || ' ' || step from replies"
    ).fetchall()
    raw.close()
    wrong = []
    asked_of: dict[bytes, list[int]] = {}
    for question, at_us in model.at_us:
        asked_of.setdefault(question, []).append(at_us)
    for question, asked, replied_at, what in rows:
        times = asked_of.get(bytes(question), [])
        if replied_at is not None and any(at > replied_at for at in times):
            wrong.append(f"G8: {what} was asked again after its reply was committed")
        if len(times) > asked:
            wrong.append(f"G8: {what} was asked {len(times)} times, the journal counts {asked}")
    return wrong


def _request_hash(asked: Asked) -> bytes:
    """What the journal keeps of a question."""
    said: dict[str, Any] = {message["role"]: message["content"] for message in asked.body["messages"]}
    system = said.get("system") or said["developer"]
    return hashlib.blake2b(f"{system}\0{said['user']}".encode(), digest_size=16).digest()
