"""Sending the spool to a server: nothing is evicted, what is refused is set aside, a server in need is left alone."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.stubs.replayed import RECORDED

from everkept.api import remote_drain
from everkept.api import views as v
from everkept.api.remote_desk import RemoteDesk
from everkept.api.remote_drain import RemoteDrain
from everkept.capture.agents import claude_code
from everkept.capture.spool import Spool
from everkept.errors import (
    Conflict,
    EverkeptError,
    Forbidden,
    InvalidInput,
    NotFound,
    RateLimited,
    StoreFull,
    Unauthorized,
    Unavailable,
)
from everkept.hook.hook_script import append, off_file, record_of

TRANSCRIPT = RECORDED / "entireio-cli" / "claude-code-2.0.76.jsonl"


class FakeServer:
    """Takes everything, but what `trouble` raises at; keeps what it took by key."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.taken: dict[str, dict[str, Any]] = {}
        self.names: list[str] = []
        self.refuses: dict[str, str] = {}
        self.postpones: dict[str, float] = {}
        self.trouble: Callable[[str], EverkeptError | None] = lambda _: None

    async def take_events(self, body: Mapping[str, Any]) -> v.Ingested:
        text = json.dumps(body)
        if (error := self.trouble(text)) is not None:
            raise error
        self.bodies.append(json.loads(text))
        if "events" in body:
            return v.Ingested(records=None, taken=self._take(body["events"]))
        return v.Ingested(records=[self._record(one) for one in body["records"]], taken=None)

    async def give_context(self, body: Mapping[str, Any], *, within_s: float) -> v.AgentContext:
        raise NotFound("nobody asks here")

    def _record(self, one: Mapping[str, Any]) -> v.RecordTaken:
        if one["name"] in self.refuses:
            refused = v.Refusal(code="invalid_input", message=self.refuses[one["name"]])
            return v.RecordTaken(name=one["name"], taken=None, refused=refused)
        if one["name"] in self.postpones:
            postponed = v.Postponement(
                code="rate_limited", message="too fast", retry_after_s=self.postpones[one["name"]]
            )  # fmt: skip
            return v.RecordTaken(name=one["name"], taken=None, refused=None, postponed=postponed)
        self.names.append(one["name"])
        return v.RecordTaken(name=one["name"], taken=self._take(one.get("events", ())), refused=None)

    def _take(self, events: Any) -> list[v.SessionTaken]:
        new = sum(event["key"] not in self.taken for event in events)
        self.taken |= {event["key"]: event for event in events}
        return [v.SessionTaken(agent="a", session="s", stored=new, revised=0, known=len(events) - new, project="p",
                               found_by="remote")]  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


def leave(home: Path, event: str, number: int, **payload: Any) -> str:
    """A record in the spool, as the hook leaves it; its name."""
    said = {"hook_event_name": event, "cwd": str(home.parent), "session_id": "s-1", **payload}
    record = record_of(json.dumps(said).encode(), "claude-code", event)
    assert record is not None
    at_ns = 1_790_000_000_000_000_000 + number * 1_000_000_000
    return append(str(home), {**record, "at_ns": at_ns}, durable=False)


def prompts(home: Path, count: int) -> list[str]:
    return [leave(home, "UserPromptSubmit", number, prompt=f"prompt {number}") for number in range(count)]


def drain(home: Path, server: FakeServer, *, times: int = 1) -> Any:
    """What the last of these looks came to."""

    async def look() -> Any:
        drain = RemoteDrain(Spool(home), server)
        for _ in range(times - 1):
            await drain.some()
        return await drain.some()

    return asyncio.run(look())


def aside(home: Path) -> list[str]:
    folder = home / "spool" / "aside"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


# ---- batches


def test_records_go_in_batches_of_a_hundred_in_their_order_and_then_from_the_spool(
    home: Path, server: FakeServer
) -> None:
    names = prompts(home, 230)
    desk = RemoteDesk(home, server)
    drained = asyncio.run(desk.drain(60))
    assert (drained.records, desk.waiting(), server.names) == (230, 0, names)
    assert [len(body["records"]) for body in server.bodies] == [100, 100, 30]


def test_a_request_is_bounded_by_its_size_too(home: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_drain, "BODY_CHARS_MAX", 30_000)
    names = [leave(home, "UserPromptSubmit", number, prompt="word " * 2_000) for number in range(7)]
    drain(home, server)
    assert server.names == names
    assert [len(body["records"]) for body in server.bodies] == [2, 2, 2, 1]


def test_what_is_sent_holds_no_secret_and_no_half_of_a_pair(home: Path, server: FakeServer) -> None:
    leave(home, "UserPromptSubmit", 1, prompt="use <private>hunter2</private> ghp_" + "a1B2" * 9 + " \ud83d")
    drain(home, server)
    text = json.dumps(server.bodies, ensure_ascii=False)
    assert "hunter2" not in text
    assert "ghp_a1B2" not in text
    text.encode()


def test_an_offer_that_was_shown_is_sent_as_it_stands(home: Path, server: FakeServer) -> None:
    record = {"format": 1, "agent": "codex", "cwd": "/x", "event": "shown", "at_ns": 1_790_000_000_000_000_000}
    append(str(home), {**record, "offer": "off_1", "session": "s"}, durable=False, number=1)
    drain(home, server)
    assert server.bodies[0]["records"][0]["record"]["offer"] == "off_1"


# ---- transcripts


def test_a_transcript_is_read_here_and_goes_after_what_came_before_it(home: Path, server: FakeServer) -> None:
    path = home.parent / "session.jsonl"
    shutil.copy(TRANSCRIPT, path)
    start = leave(home, "SessionStart", 1, source="startup")
    end = leave(home, "Stop", 2, transcript_path=str(path))
    drained = drain(home, server)
    assert (drained.records, drained.transcripts) == (2, 1)
    assert ["records" in body for body in server.bodies] == [True, False, True]
    assert server.names == [start, end]
    assert server.bodies[1]["origin"] == "import"
    assert "transcript_path" not in server.bodies[1]["events"][0]


def test_what_was_sent_of_a_transcript_is_not_sent_again(home: Path, server: FakeServer) -> None:
    path = home.parent / "session.jsonl"
    lines = TRANSCRIPT.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) // 2]))

    async def work() -> None:
        drain = RemoteDrain(Spool(home), server)
        leave(home, "Stop", 1, transcript_path=str(path))
        await drain.some()
        path.write_text("".join(lines))
        leave(home, "Stop", 2, transcript_path=str(path))
        await drain.some()
        leave(home, "SessionEnd", 3, reason="other", transcript_path=str(path))
        await drain.some()

    asyncio.run(work())
    first, second, end = (body for body in server.bodies if "events" in body)
    sent_first = {e["key"]: e for e in first["events"]}
    assert [e for e in second["events"] if sent_first.get(e["key"]) == e] == []
    assert (first["ended"], second["ended"], end["ended"]) == (False, False, True)
    assert len(end["events"]) == 1


def test_an_event_of_a_transcript_that_is_refused_keeps_no_other_out(home: Path, server: FakeServer) -> None:
    path = home.parent / "session.jsonl"
    shutil.copy(TRANSCRIPT, path)
    leave(home, "SessionEnd", 1, reason="other", transcript_path=str(path))
    good = FakeServer()
    drain_copy = home.parent / "copy"
    shutil.copytree(home, drain_copy)
    drain(drain_copy, good)
    bad = next(iter(good.taken))
    server.trouble = lambda text: InvalidInput("no") if f'"{bad}"' in text else None
    drained = drain(home, server)
    assert server.taken.keys() == good.taken.keys() - {bad}
    assert (drained.records, drained.refused) == (1, {})
    assert [body["ended"] for body in server.bodies if "events" in body][-1] is True


# ---- trouble


@pytest.mark.parametrize(
    "error",
    [
        Unavailable("down"), StoreFull(), Unauthorized(), Forbidden(), Conflict(), NotFound("no such route"),
        RateLimited(), Unavailable("a gateway", status=408), Unavailable("too early", status=425),
    ],
    ids=lambda error: f"{error.code} {error.details.get('status', '')}",
)  # fmt: skip
def test_what_cannot_be_sent_now_waits(home: Path, server: FakeServer, error: EverkeptError) -> None:
    prompts(home, 3)
    server.trouble = lambda _: error
    with pytest.raises(EverkeptError):
        drain(home, server)
    assert (Spool(home).state().waiting, aside(home)) == (3, [])


@pytest.mark.parametrize("error", [InvalidInput("too large"), Unavailable("a proxy", status=413)], ids=lambda e: e.code)
def test_of_a_batch_that_is_refused_only_what_is_at_fault_is_set_aside(
    home: Path, server: FakeServer, error: EverkeptError
) -> None:
    names = prompts(home, 10)
    server.trouble = lambda text: error if '"prompt 3"' in text else None
    drained = drain(home, server)
    assert (drained.records, drained.refused) == (9, {names[3]: error.message})
    assert aside(home) == [names[3], f"{names[3]}.reason"]
    assert (home / "spool" / "aside" / f"{names[3]}.reason").read_text() == f"{error.message}\n"


def test_a_record_that_the_server_refuses_is_set_aside_with_the_reason(home: Path, server: FakeServer) -> None:
    names = prompts(home, 3)
    server.refuses = {names[1]: "it is odd"}
    drained = drain(home, server)
    assert (drained.records, drained.refused) == (2, {names[1]: "invalid_input: it is odd"})
    assert Spool(home).state().waiting == 0


def test_a_record_that_the_server_stumbles_over_waits_and_keeps_only_those_of_its_session_waiting(
    home: Path, server: FakeServer
) -> None:
    names = [
        leave(home, "UserPromptSubmit", number, prompt=f"prompt {number}", session_id=f"s-{number % 10}")
        for number in range(130)
    ]
    server.trouble = lambda text: EverkeptError("inside") if '"prompt 23"' in text else None
    drained = drain(home, server, times=2)
    behind = names[23::10]
    assert server.names == [name for name in names if name not in behind]
    assert Spool(home).names() == set(behind)
    assert drained.waiting == dict.fromkeys(behind, "inside")


def test_a_session_goes_on_in_its_order_once_the_server_takes_it_again(home: Path, server: FakeServer) -> None:
    names = prompts(home, 5)
    now = 0.0
    server.trouble = lambda text: EverkeptError("inside") if '"prompt 1"' in text else None

    async def look() -> None:
        nonlocal now
        drain = RemoteDrain(Spool(home), server, clock=lambda: now)
        await drain.some()
        server.trouble = lambda _: None
        await drain.some()
        assert server.names == names[:1]
        now = remote_drain.STUMBLED_S
        await drain.some()

    asyncio.run(look())
    assert server.names == names


def test_a_postponed_record_waits_as_long_as_the_server_says(home: Path, server: FakeServer) -> None:
    first = leave(home, "UserPromptSubmit", 0, prompt="prompt 0")
    other = leave(home, "UserPromptSubmit", 1, prompt="prompt 1", session_id="s-2")
    now = 0.0
    server.postpones = {first: 30.0}

    async def look() -> None:
        nonlocal now
        drain = RemoteDrain(Spool(home), server, clock=lambda: now)
        assert (await drain.some()).waiting == {first: "too fast"}
        assert server.names == [other]
        server.postpones = {}
        now = 29.0
        await drain.some()
        assert server.names == [other]
        now = 30.0
        await drain.some()

    asyncio.run(look())
    assert server.names == [other, first]
    assert aside(home) == []


def test_after_a_failure_the_server_is_left_alone_as_long_as_it_says(home: Path, server: FakeServer) -> None:
    now = 1_000.0
    prompts(home, 1)
    asked = 0

    def trouble(_: str) -> EverkeptError:
        nonlocal asked
        asked += 1
        return Unavailable("busy", retry_after_s=30) if asked == 1 else Unavailable("down")

    server.trouble = trouble
    desk = RemoteDesk(home, server, clock=lambda: now)
    times = []
    for _ in range(140):
        before = asked
        asyncio.run(desk.drain(60))
        times += [now - 1_000] * (asked > before)
        now += 1
    assert times == [0, 30, 32, 36, 44, 60, 92]
    assert isinstance(desk.trouble, Unavailable)
    server.trouble = lambda _: None
    now += 60
    asyncio.run(desk.drain(60))
    assert (desk.waiting(), desk.sent.records) == (0, 1)
    assert desk.trouble is None


def test_a_server_that_answers_for_fewer_records_leaves_the_others_waiting(home: Path, server: FakeServer) -> None:
    names = prompts(home, 3)
    whole = server.take_events

    async def half(body: Mapping[str, Any]) -> v.Ingested:
        return await whole({"records": body["records"][:1]})

    server.take_events = half  # type: ignore[method-assign]
    drain(home, server)
    assert Spool(home).names() == set(names[1:])


def test_a_record_that_tells_nothing_of_anybody_is_set_aside_and_holds_up_no_other(
    home: Path, server: FakeServer
) -> None:
    record = record_of(b"[" * 100_000, "claude-code", "")
    assert record is not None
    odd = append(str(home), {**record, "at_ns": 1_780_000_000_000_000_000}, durable=False)
    names = prompts(home, 2)
    drained = drain(home, server)
    assert (drained.records, server.names) == (2, names)
    assert list(drained.refused) == [odd]
    assert aside(home) == [odd, f"{odd}.reason"]


def test_what_was_said_while_its_session_was_off_is_not_sent(home: Path, server: FakeServer) -> None:
    transcript = home.parent / "t.jsonl"
    shutil.copy(TRANSCRIPT, transcript)
    session = next(e.session for e in claude_code.FORMAT.read(transcript).events)
    note = Path(off_file(str(home), "claude-code", session))
    note.parent.mkdir(parents=True)
    note.write_text("0 off\n1789999999000000000 on\n")
    leave(home, "Stop", 1, session_id=session, transcript_path=str(transcript))
    assert drain(home, server).transcripts == 1
    assert {event["source"] for event in server.taken.values()} == {"hook"}
