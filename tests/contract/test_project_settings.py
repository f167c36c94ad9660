"""A project's settings reach its threads, also those that wait already."""

from __future__ import annotations

import asyncio
from pathlib import Path

from everkept.api.views import MessageIn
from everkept.bootstrap import open_application
from everkept.config import load
from everkept.ports.clock import VirtualClock


def test_idle_time_set_again_for_the_project_arms_the_threads_that_wait(tmp_path: Path) -> None:
    async def run() -> tuple[object, object]:
        app = await open_application(load({}, tmp_path), worker=False, clock=VirtualClock())
        try:
            memory = await app.service()
            await memory.update_project("default", settings={"window.idle_s": None})
            await memory.append("chat", [MessageIn(content="I live in Porto")], subject="ana")
            before = (await memory.get_thread("chat")).window_due_at
            await memory.update_project("default", settings={"window.idle_s": 60})
            return before, (await memory.get_thread("chat")).window_due_at
        finally:
            await app.close()

    before, after = asyncio.run(run())
    assert before is None
    assert after is not None
