"""Coding agents: import, digests, what a thousand sessions take, and the context that an agent waits for.

The sessions are a recording of Claude Code with other ids each time, so that none is known from another.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.bench import agent_hooks
from tests.bench.load import call
from tests.bench.processes import everkept
from tests.bench.report import Figure, Goal

from everkept.api.context_ask import ContextAsk
from everkept.api.contexts import Contexts
from everkept.bootstrap import Application, make_runner, open_application
from everkept.capture.agents.formats import FORMATS
from everkept.capture.identity import Checkout, look_at
from everkept.config import load
from everkept.domain.digest import digest_session, to_handoff, to_page
from everkept.domain.digest.values import SessionEvent
from everkept.domain.pages import PageText
from everkept.ports.faults import NoFaults
from everkept.store.connection import Connection
from everkept.store.counters import count
from everkept.store.digests import events_of_session
from everkept.store.pages import NewPage, write_page
from everkept.store.projects import find_project
from everkept.store.sessions import list_sessions

RECORDING = Path(__file__).parents[1] / "data" / "transcripts" / "entireio-cli" / "claude-code-2.0.76.jsonl"
QUESTION = "Which command did the tests fail with?"
PAGES = 10_000
_ID = re.compile(r"(?:toolu|msg|req)_[A-Za-z0-9]{10,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_START_MS, _PROMPT_MS = 150.0, 60.0
_KINDS = ("note", "concept", "procedure", "gotcha", "decision")
PAGES_AT_ONCE = 200


def measure(home: Path, *, quick: bool) -> Iterator[Figure]:
    """Import, digests and contexts in this process; then the same home behind a server and the real hook."""
    folder = home / "app"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text('[remote "origin"]\n\turl = https://example.com/acme/app.git\n')
    files = write_sessions(home / "transcripts", folder, 200 if quick else 1_000)
    store = home / "store"
    yield from asyncio.run(_inside(store, folder, files, rounds=20 if quick else 100))
    yield from _resources(home, store, files)
    yield from agent_hooks.measure(store, folder, quick=quick)


def write_sessions(place: Path, folder: Path, sessions: int) -> list[Path]:
    """So many transcripts of sessions that worked in `folder`."""
    place.mkdir()
    text = RECORDING.read_text("utf-8")
    worked_in = next(cwd for line in text.splitlines() if (cwd := json.loads(line).get("cwd")))
    text = text.replace(worked_in, str(folder))
    files = []
    for number in range(sessions):
        path = place / f"{number:06d}.jsonl"
        path.write_text(_ID.sub(lambda found, n=number: f"{found[0][:-6]}{n:06d}", text), "utf-8")  # type: ignore[misc]
        files.append(path)
    return files


# ---- in this process


async def _inside(store: Path, folder: Path, files: Sequence[Path], *, rounds: int) -> list[Figure]:
    application = await open_application(load({"EVERKEPT_HOME": str(store)}), worker=False)
    try:
        checkout = look_at(folder)
        figures = [*await _import(application, files), *await _digests(application, checkout)]
        figures.append(_disk(store, files))
        figures += await _contexts(application, checkout, rounds=rounds)
        figures += await _many_pages(application, checkout, rounds=rounds)
        return figures
    finally:
        await application.close()


async def _import(application: Application, files: Sequence[Path]) -> list[Figure]:
    """Beside the least that any reader does: every line read as JSON."""
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    start = time.perf_counter()
    for path in files:
        for line in path.read_text("utf-8").splitlines():
            json.loads(line)
    parsed_s = time.perf_counter() - start
    start = time.perf_counter()
    for path in files:
        FORMATS["claude-code"].read(path)
    read_s = time.perf_counter() - start
    importer, events = application.importer(), 0
    start = time.perf_counter()
    for path in files:
        events += (await importer.take(FORMATS["claude-code"], path)).taken.stored
    took_s = time.perf_counter() - start
    floor = "json.loads of each line"
    return [
        Figure(name="transcripts read into events", value=megabytes / read_s, unit="MB/s", peer=floor,
               peer_value=megabytes / parsed_s),
        Figure(name="import", value=megabytes / took_s, unit="MB/s", peer=floor, peer_value=megabytes / parsed_s),
        Figure(name="import", value=events / took_s, unit="events/s", peer=floor, peer_value=events / parsed_s),
    ]  # fmt: skip


async def _digests(application: Application, checkout: Checkout) -> list[Figure]:
    """The digests, and all jobs that are due after an import (windows, digests with their commits, embeddings)."""
    runner = make_runner(application.parts, NoFaults())
    start = time.perf_counter()
    while await runner.step():
        await runner.drain_started()
    took_s = time.perf_counter() - start
    project = await _project(application, checkout)
    start = time.perf_counter()
    events = await application.parts.store.read(_read_back, project)
    read_s = time.perf_counter() - start
    count_of = sum(map(len, events))
    start = time.perf_counter()
    for some in events:
        digest = digest_session(some)
        to_page(digest), to_handoff(digest)
    digest_s = time.perf_counter() - start
    peer = "their events read back"
    return [
        Figure(name="digest alone, per 1,000 events", value=digest_s / count_of * 1e6, unit="ms", peer=peer,
               peer_value=read_s / count_of * 1e6),
        Figure(name="every job of an import, per 1,000 events", value=took_s / count_of * 1e6, unit="ms", peer=peer,
               peer_value=read_s / count_of * 1e6),
    ]  # fmt: skip


def _read_back(conn: Connection, project: int) -> list[Sequence[SessionEvent]]:
    """The events of every session."""
    found: list[Sequence[SessionEvent]] = []
    before = None
    while sessions := list_sessions(conn, project, before=before, limit=500):
        found += [events_of_session(conn, session) for session in sessions]
        before = sessions[-1].stream
    return found


async def _project(application: Application, checkout: Checkout) -> int:
    scope = await application.resolve_scope(checkout)
    row = await application.parts.store.read(find_project, scope.project)
    assert row is not None
    return row.id


async def _contexts(application: Application, checkout: Checkout, *, rounds: int, where: str = "") -> list[Figure]:
    """Each for a session of its own, so that each offer is written; beside the least durable commit there is."""
    contexts = Contexts(application.parts)
    service = await application.service((await application.resolve_scope(checkout)).project)
    took: dict[str, list[float]] = {name: [] for name in ("commit", "recall", "start", "prompt")}
    for number in range(rounds + 1):
        ask = ContextAsk(agent="codex", session=f"bench{where}-{number}", checkout=checkout, prompt=QUESTION)
        runs: dict[str, Callable[[], Awaitable[Any]]] = {
            "commit": lambda: application.parts.store.write(_commit),
            "recall": lambda: service.recall(QUESTION, limit=6),
            "start": lambda ask=ask: contexts.start(ask),  # type: ignore[misc]
            "prompt": lambda ask=ask: contexts.prompt(ask),  # type: ignore[misc]
        }
        for name, run in runs.items():
            start = time.perf_counter()
            await run()
            if number:  # the first round loads what is loaded once
                took[name].append((time.perf_counter() - start) * 1e3)
    return [
        *_percentiles(f"start context{where}", took["start"], "one commit", took["commit"], _START_MS),
        *_percentiles(f"prompt context{where}", took["prompt"], "recall of its words", took["recall"], _PROMPT_MS),
    ]


def _commit(conn: Connection) -> None:
    count(conn, "probes")


def _percentiles(
    name: str, mine: Sequence[float], peer: str, theirs: Sequence[float], most_ms: float
) -> Iterator[Figure]:
    for share in (0.5, 0.95):
        goal = Goal(of="value", sense="most", bound=most_ms) if share == 0.95 else None
        yield Figure(name=f"{name}, p{share * 100:.0f}", value=agent_hooks.at_share(mine, share), unit="ms", peer=peer,
                     peer_value=agent_hooks.at_share(theirs, share), goal=goal)  # fmt: skip


async def _many_pages(application: Application, checkout: Checkout, *, rounds: int) -> list[Figure]:
    project = await _project(application, checkout)
    for first in range(0, PAGES, PAGES_AT_ONCE):
        await application.parts.store.write(_write_pages, project, first)
    return await _contexts(application, checkout, rounds=rounds, where=f" at {PAGES:,} pages")


def _write_pages(conn: Connection, project: int, first: int) -> None:
    """Of every kind, each of words of its own beside words that all have."""
    for number in range(first, first + PAGES_AT_ONCE):
        kind = _KINDS[number % len(_KINDS)]
        body = f"What module{number % 97} does with topic{number}: the tests fail with command{number % 1_013}."
        page = PageText(title=f"{kind.capitalize()} {number}", body=f"{body}\n\n## Why\n\nBecause of issue {number}.")
        write_page(conn, NewPage(project=project, kind=kind, slug=f"{kind}-{number}", text=page, author="hand"))


# ---- on the disk and in memory


def _disk(store: Path, files: Sequence[Path]) -> Figure:
    """Of the database with its log, with digests, handoffs and everything that is searched."""
    per_thousand = 1_000 / len(files) / 1e6
    taken = sum(path.stat().st_size for path in store.glob("everkept.db*"))
    return Figure(name="disk, per 1,000 sessions", value=taken * per_thousand, unit="MB", peer="their transcripts",
                  peer_value=sum(path.stat().st_size for path in files) * per_thousand)  # fmt: skip


def _resources(home: Path, store: Path, files: Sequence[Path]) -> Iterator[Figure]:
    with everkept(store, worker=False) as ours, everkept(home / "empty", worker=False) as empty:
        for served in (ours, empty):
            call(served.port, "POST", "/v1/recall", {"query": QUESTION})
        yield Figure(name=f"memory of a server with {len(files):,} sessions and {PAGES:,} pages",
                     value=ours.resident_mb(), unit="MB", peer="with none", peer_value=empty.resident_mb())  # fmt: skip
