"""Awake where the memory is elsewhere: what came before goes first, and a server that is away costs nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from everkept.api import views as v
from everkept.api.remote_desk import RemoteDesk
from everkept.capture.spool import Spool
from everkept.errors import EverkeptError, NotFound, Unavailable
from everkept.hook.hook_script import append, record_of

NOTHING = {"text": "", "offer": None, "age_s": 0}


class FakeServer:
    """Takes all records and gives one context; `trouble` and `slow_s` come first."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.trouble: Callable[[str], EverkeptError | None] = lambda _: None
        self.slow_s = 0.0

    async def take_events(self, body: Mapping[str, Any]) -> v.Ingested:
        await self._heard("events")
        return v.Ingested(
            records=[v.RecordTaken(name=one["name"], taken=[], refused=None) for one in body["records"]], taken=None
        )

    async def give_context(self, body: Mapping[str, Any], *, within_s: float) -> v.AgentContext:
        await self._heard("context")
        self.body = json.loads(json.dumps(body))
        scope = v.Scope(project="app", found_by="remote", value="example.com/acme/app")
        return v.AgentContext(text="what is known", tokens=3, offer="off_1", scope=scope, because="")

    async def _heard(self, what: str) -> None:
        self.told.append(what)
        if (error := self.trouble(what)) is not None:
            raise error
        if self.slow_s:
            await asyncio.sleep(self.slow_s)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


def asked(home: Path, event: str, number: int = 0, **payload: Any) -> dict[str, Any]:
    """A hook's question, its record left in the spool as the hook does."""
    said = {"hook_event_name": event, "cwd": str(home.parent), "session_id": "s-1", **payload}
    record = record_of(json.dumps(said).encode(), "claude-code", event)
    assert record is not None
    name = append(str(home), record, durable=False, number=number)
    return {"hook": record, "name": name, "budget_ms": 1_000}


def test_what_came_before_is_sent_first_and_the_answer_is_the_servers(home: Path, server: FakeServer) -> None:
    desk = RemoteDesk(home, server)
    answer = asyncio.run(desk.answer(asked(home, "SessionStart", source="resume")))
    assert answer == {"text": "what is known", "offer": "off_1", "age_s": 0}
    assert server.told == ["events", "context"]
    assert server.body == {
        "agent": "claude-code", "session": "s-1", "checkout": {"cwd": str(home.parent)}, "source": "resume",
        "prompt": None,
    }  # fmt: skip
    assert not (home / "start").exists()


def test_a_prompt_is_asked_with_its_words_and_what_is_no_json_elsewhere_is_replaced(
    home: Path, server: FakeServer
) -> None:
    asyncio.run(RemoteDesk(home, server).answer(asked(home, "UserPromptSubmit", prompt="why \ud83d?")))
    assert server.body["prompt"] == "why ??"


def test_while_the_server_is_away_nobody_is_asked_twice_and_nothing_is_told(home: Path, server: FakeServer) -> None:
    now = 1_000.0
    server.trouble = lambda _: Unavailable("down")
    desk = RemoteDesk(home, server, clock=lambda: now)
    assert [asyncio.run(desk.answer(asked(home, "UserPromptSubmit", n, prompt="why?"))) for n in range(3)] == [
        NOTHING
    ] * 3
    assert server.told == ["events"]
    assert Spool(home).state().waiting == 3
    server.trouble = lambda _: None
    now += 2
    assert asyncio.run(desk.answer(asked(home, "UserPromptSubmit", 4, prompt="why?")))["text"] == "what is known"


def test_a_server_that_gives_no_context_is_left_alone_with_it_and_sent_to_all_the_same(
    home: Path, server: FakeServer
) -> None:
    now = 1_000.0
    server.trouble = lambda what: EverkeptError("inside") if what == "context" else None
    desk = RemoteDesk(home, server, clock=lambda: now)
    for number in range(3):
        assert asyncio.run(desk.answer(asked(home, "UserPromptSubmit", number, prompt="why?"))) == NOTHING
        asyncio.run(desk.drain(60))
    assert server.told == ["events", "context", "events", "events"]
    assert Spool(home).state().waiting == 0


def test_a_folder_that_the_server_does_not_know_is_asked_about_again_at_once(home: Path, server: FakeServer) -> None:
    server.trouble = lambda what: NotFound("no memory of it yet") if what == "context" else None
    desk = RemoteDesk(home, server)
    assert asyncio.run(desk.answer(asked(home, "SessionStart"))) == NOTHING
    server.trouble = lambda _: None
    assert asyncio.run(desk.answer(asked(home, "UserPromptSubmit", 1, prompt="why?")))["text"] == "what is known"


def test_a_slow_server_holds_a_hook_no_longer_than_its_time_and_loses_nothing(home: Path, server: FakeServer) -> None:
    server.slow_s = 3600.0
    desk = RemoteDesk(home, server)

    async def in_time() -> dict[str, Any]:
        async with asyncio.timeout(60):  # its own tenth of a second ends it; on a busy machine that takes a while
            return await desk.answer({**asked(home, "UserPromptSubmit", prompt="why?"), "budget_ms": 100})

    assert asyncio.run(in_time()) == NOTHING
    server.slow_s = 0.0
    assert asyncio.run(desk.drain(60)).records == 1
    assert Spool(home).state().waiting == 0


def test_a_record_that_does_not_say_who_asks_is_answered_with_nothing(home: Path, server: FakeServer) -> None:
    question = asked(home, "SessionStart", session_id="")
    assert asyncio.run(RemoteDesk(home, server).answer(question)) == NOTHING
    assert "context" not in server.told
