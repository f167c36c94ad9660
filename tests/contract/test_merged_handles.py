"""A project that was merged, for who had opened it before: nothing is done or answered where nothing is any more."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path
from typing import Any

import pytest

import everkept
from everkept import AsyncMemory
from everkept.errors import Conflict

API = Path(everkept.__file__).parent / "api"


def test_whoever_had_opened_the_source_is_told_where_it_is_before_anything_is_looked_for(tmp_path: Path) -> None:
    """Else an erase would say that there is no such subject, or destroy the name under which the target is found."""

    async def go() -> None:
        async with AsyncMemory.open(tmp_path) as memory:
            await memory.create_project("old")
        async with AsyncMemory.open(tmp_path) as memory, AsyncMemory.open(tmp_path, project="old", worker=False) as old:
            await old.remember("Ana owns a boat", subject="ana")
            service: Any = old._service
            await memory.merge_project("old", into="default")
            assert await memory.settle(timeout_s=30)
            for asked in (
                service.erase(subject="ana"), service.erase(subject="ana", dry_run=True), service.erase(project="old"),
                service.settle(timeout_s=0.0), service.retry_jobs(), service.retry_job("job_1"),
                service.discard_job("job_1"), service.release_job("job_1"), service.end_thread("chat"),
                service.set_thread_settings("chat", {}), service.reprocess(subject="ana"),
            ):  # fmt: skip
                with pytest.raises(Conflict, match="merged into 'default'"):
                    await asked
            async with AsyncMemory.open(tmp_path, project="old", worker=False) as again:
                assert [fact.text async for fact in again.facts(subject="ana")] == ["Ana owns a boat"]

    asyncio.run(go())


def _unguarded(path: Path) -> list[str]:
    """Writes to the project of a handle that do not go through `Cases._write`."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return [
        f"{path.name}:{call.lineno}" for call in calls
        if ast.unparse(call.func) == "self._store.write" and "self._project_id" in map(ast.unparse, call.args)
    ]  # fmt: skip


def test_no_use_case_writes_to_a_project_without_a_look_whether_it_was_merged() -> None:
    assert [place for path in sorted(API.glob("*.py")) for place in _unguarded(path)] == []
