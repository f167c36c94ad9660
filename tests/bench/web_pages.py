"""The pages of the site over 10^5 events and 10^4 jobs: the server's own time, beside a page that reads nothing."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx2
import numpy as np
import structlog
from tests.bench.report import Figure, Goal
from tests.bench.web_store import LARGE, fill

from everkept.bootstrap import open_application
from everkept.config import load
from everkept.doors.http.app import create_app

EVENTS = 100_000
JOBS = 10_000
EMPTY = "/login"
"""Reads nothing: what a page costs before it asks the store."""
PAGES = (
    "/", "/work", "/work?state=ready", "/work?state=dead&kind=extract_facts", "/work?state=done",
    f"/work?subject={LARGE}",
    f"/work?state=dead&subject={LARGE}", f"/work?state=waiting&subject={LARGE}", "/work/{job}",
    "/subjects", f"/subjects/{LARGE}", f"/subjects/{LARGE}?past=1", f"/subjects/{LARGE}?q=thing",
    f"/subjects/{LARGE}/entities", "/workstreams", "/deliveries",
    "/facts/{fact}", "/why/{fact}", "/episodes", f"/episodes?subject={LARGE}", "/episodes?q=talked",
    "/episodes/{episode}", "/threads", f"/threads?subject={LARGE}", "/threads/thread-8",
    "/threads/thread-0", "/threads/thread-0?after=900", "/sessions", "/sessions/{session}",
    "/handoffs", "/handoffs?state=expired", "/pages", "/pages?kind=note", "/pages/page-0", "/pages/page-0/changes",
    "/pages/page-0/edit", "/proposals", "/proposals?state=all", "/usage", "/settings", "/doctor",
    f"/erase?subject={LARGE}", "/erase?thread=thread-8", f"/ask?q=What+does+Person+3+like&subject={LARGE}",
    "/ask?q=What+does+Person+3+like&compare=1",
)  # fmt: skip
BOUND_MS = 150.0


def measure(home: Path, *, quick: bool) -> Iterator[Figure]:
    events, jobs, rounds = (10_000, 1_000, 10) if quick else (EVENTS, JOBS, 40)
    fill(home, events=events, jobs_wanted=jobs)
    took = asyncio.run(_visit(home, rounds))
    floor = float(np.percentile(took.pop(EMPTY), 95))
    for path, times in took.items():
        yield Figure(
            name=f"{path}, p95 (p50 {np.percentile(times, 50):.1f})", value=float(np.percentile(times, 95)), unit="ms",
            peer="a page that reads nothing", peer_value=floor, goal=Goal(of="value", sense="most", bound=BOUND_MS),
        )  # fmt: skip


async def _visit(home: Path, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each visit, by page; the first round warms the caches and is not counted."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    settings = load({"EVERKEPT_HOME": str(home)}, home)
    application = await open_application(settings, worker=False)
    took: dict[str, list[float]] = {}
    try:
        transport = httpx2.ASGITransport(create_app(application, settings))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            paths = await visited(client)
            for round_ in range(rounds + 1):
                for path in paths:
                    spent = await _time(client, path)
                    if round_:
                        took.setdefault(path, []).append(spent)
    finally:
        await application.close()
    return took


async def visited(client: httpx2.AsyncClient) -> Sequence[str]:
    """The pages, each with the name of something that there is."""
    names = {}
    for name in ("job", "fact", "episode", "session"):
        listed = (await client.get(f"/v1/{name}s", params={"limit": 1})).json()["items"]
        names[name] = listed[0]["id"]
    return [EMPTY, *(path.format(**names) for path in PAGES)]


async def _time(client: httpx2.AsyncClient, path: str) -> float:
    start = time.perf_counter()
    answer = await client.get(path, headers={"Accept": "text/html"})
    spent = (time.perf_counter() - start) * 1e3
    if answer.status_code != 200:
        raise RuntimeError(f"{path} answered {answer.status_code}: {answer.text[:2000]}")
    return spent
