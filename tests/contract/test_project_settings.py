"""A project's settings reach its threads, also those that wait already."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from everkept.api.views import MessageIn
from everkept.bootstrap import open_application
from everkept.config import load
from everkept.errors import Conflict
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


def test_a_project_that_is_asked_for_twice_is_one_and_settings_that_differ_are_refused(tmp_path: Path) -> None:
    async def run() -> None:
        app = await open_application(load({}, tmp_path), worker=False, clock=VirtualClock())
        try:
            memory = await app.service()
            made = await memory.create_project("work", {"window.idle_s": 60})
            assert await memory.create_project("work", {"window.idle_s": 60}) == made
            assert await memory.create_project("work") == made
            with pytest.raises(Conflict, match="'work' already, with other settings"):
                await memory.create_project("work", {"window.idle_s": 90})
            assert (await memory.create_project("work")).settings == made.settings
        finally:
            await app.close()

    asyncio.run(run())
