"""The timeline of a project, and which project a folder has, on the real store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from everkept.api import views as v
from everkept.api.local import LocalService
from everkept.bootstrap import Application, open_application
from everkept.capture.agents.formats import recognise
from everkept.capture.identity import Checkout
from everkept.config import load
from everkept.errors import InvalidInput, NotFound
from everkept.store.aliases import resolve

TRANSCRIPTS = Path(__file__).parents[1] / "data" / "transcripts"
SESSION = TRANSCRIPTS / "claude-reliability" / "claude-code-coverage-test-fix.jsonl"
PLACE = Checkout(cwd="/code/app/src", top="/code/app", remote="github.com/acme/app")


def run(home: Path, steps: Callable[[Application, LocalService], Awaitable[None]]) -> None:
    async def all_of_it() -> None:
        application = await open_application(load({}, home))
        try:
            await steps(application, await application.service())
        finally:
            await application.close()

    asyncio.run(all_of_it())


async def fill(application: Application, memory: LocalService) -> None:
    """A session with its handoff, a page in two versions, an episode with its fact, and a fact by hand."""
    await application.importer().take(recognise(SESSION), SESSION, project="default")
    await memory.write_page("Tokens", "In the keychain.", kind="decision")
    await memory.write_page("Tokens", "In the keychain of the system.", kind="decision", reason="more exact")
    said_at = datetime(2026, 2, 3, 12, tzinfo=UTC)
    said = v.MessageIn(content="I live in Lisbon. I am allergic to hazelnuts.", occurred_at=said_at)
    await memory.append("chat", [said], subject="ana")
    await memory.end_thread("chat")
    await memory.remember("Ana drives a tram", subject="ana")
    assert await memory.settle(timeout_s=60)


async def everything(memory: LocalService, limit: int) -> list[v.TimelineItem]:
    found: list[v.TimelineItem] = []
    cursor: str | None = None
    while True:
        page = await memory.timeline(limit=limit, cursor=cursor)
        assert len(page.items) <= limit
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


def test_the_timeline_has_all_five_kinds_newest_first_and_pages_without_gap_or_overlap(tmp_path: Path) -> None:
    async def steps(application: Application, memory: LocalService) -> None:
        await fill(application, memory)
        whole = await everything(memory, 1000)
        assert {item.kind for item in whole} == {"session", "page", "handoff", "episode", "fact"}
        assert whole == sorted(whole, key=lambda item: item.at, reverse=True)
        for limit in (1, 2, 3):
            assert await everything(memory, limit) == whole
        assert [(i.title, i.detail) for i in whole if i.kind == "page"] == [
            ("Tokens", "decision tokens, version 2 by hand, more exact"),
            ("Tokens", "decision tokens, version 1 by hand"),
        ]

    run(tmp_path, steps)


def test_a_session_and_what_was_said_stand_where_they_happened_not_where_they_were_taken_in(tmp_path: Path) -> None:
    async def steps(application: Application, memory: LocalService) -> None:
        await fill(application, memory)
        items = {(item.kind, item.at.year, item.at.month) for item in (await memory.timeline()).items}
        assert {("session", 2026, 1), ("handoff", 2026, 1), ("episode", 2026, 2), ("fact", 2026, 2)} <= items
        february = await memory.timeline(since=datetime(2026, 2, 1, tzinfo=UTC), until=datetime(2026, 3, 1, tzinfo=UTC))
        assert {item.at.month for item in february.items} == {2}
        exactly = await memory.timeline(kinds=["episode"], since=datetime(2026, 2, 3, 12, tzinfo=UTC))
        assert [item.detail for item in exactly.items] == ["thread chat, subject ana"]
        before = await memory.timeline(kinds=["episode"], until=datetime(2026, 2, 3, 12, tzinfo=UTC))
        assert before.items == []

    run(tmp_path, steps)


def test_what_is_erased_or_deleted_leaves_the_timeline_at_once(tmp_path: Path) -> None:
    async def steps(application: Application, memory: LocalService) -> None:
        await fill(application, memory)
        session = (await memory.list_sessions()).items[0]
        await memory.erase(session=session.id)
        await memory.erase(subject="ana")
        assert {item.kind for item in (await memory.timeline()).items} == {"page"}
        await memory.delete_page("tokens")
        assert (await memory.timeline()).items == []

    run(tmp_path, steps)


@pytest.mark.parametrize(
    ("asked", "field"),
    [({"kinds": ["dream"]}, "kinds"), ({"kinds": []}, "kinds"), ({"limit": 0}, "limit"), ({"cursor": "x"}, "cursor"),
     ({"cursor": "MTI"}, "cursor"), ({"until": datetime(2026, 1, 1)}, "until")],  # noqa: DTZ001 - that is what is refused
)  # fmt: skip
def test_what_cannot_be_asked_of_a_timeline_names_its_field(tmp_path: Path, asked: dict[str, Any], field: str) -> None:
    async def steps(_: Application, memory: LocalService) -> None:
        with pytest.raises(InvalidInput) as caught:
            await memory.timeline(**asked)
        assert caught.value.details["field"] == field

    run(tmp_path, steps)


def test_a_folder_has_the_project_of_its_remote_and_asking_makes_none(tmp_path: Path) -> None:
    async def steps(application: Application, memory: LocalService) -> None:
        with pytest.raises(NotFound, match="/code/app") as caught:
            await application.resolve_scope(PLACE)
        assert caught.value.details["looked_for"] == {"remote": "github.com/acme/app", "path": "/code/app"}
        assert [project.name for project in await memory.list_projects()] == ["default"]
        clone = Checkout(cwd="/elsewhere/clone", remote=PLACE.remote)
        await application.parts.store.write(resolve, clone.signs(), "github.com/acme/app", b"s" * 32)
        found = v.Scope(project="github.com/acme/app", found_by="remote", value="github.com/acme/app")
        assert await application.resolve_scope(PLACE) == found == await memory.resolve_scope(PLACE)

    run(tmp_path, steps)
