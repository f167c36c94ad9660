"""One store, asked in the process and over HTTP: what both ways have to answer alike."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2

from everkept.api.local import LocalService
from everkept.bootstrap import open_application
from everkept.capture.agents.formats import recognise
from everkept.config import load
from everkept.doors.http.app import create_app
from everkept.doors.python.remote import RemoteService

SESSION = (
    Path(__file__).parents[1] / "data" / "transcripts" / "claude-reliability" / "claude-code-coverage-test-fix.jsonl"
)


def run(home: Path, steps: Callable[[LocalService, RemoteService], Awaitable[None]]) -> None:
    """A digested session in a project of its own, and both ways to ask about it."""

    async def all_of_it() -> None:
        application = await open_application(load({}, home))
        report = await application.importer().take(recognise(SESSION), SESSION)
        (project,) = report.taken.projects
        local = await application.service(project)
        transport = httpx2.ASGITransport(create_app(application, application.settings))
        remote = RemoteService("http://127.0.0.1:7411", project=project, transport=transport)
        try:
            assert await local.settle(timeout_s=60)
            await steps(local, remote)
        finally:
            await remote.close()
            await application.close()

    asyncio.run(all_of_it())
