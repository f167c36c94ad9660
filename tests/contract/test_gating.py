"""One way in for all that is told: the same batch ten times over is there once, whatever the way; what was lost of it
is made again; what comes too fast waits for itself alone (G2, G14; A06, A09)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import text
from tests.contract.test_ingest import Door, event, record, whole_session
from tests.factories import plain_reply
from tests.stubs.agent_desk import Desk, a_checkout, a_desk
from tests.stubs.replayed import RECORDED

from everkept.api.pacing import Pace
from everkept.api.remote_drain import RemoteDrain, event_body
from everkept.api.views import MessageIn
from everkept.bootstrap import make_runner
from everkept.capture.agents import claude_code
from everkept.capture.importers import detect
from everkept.capture.spool import Spool
from everkept.domain.erase import EventTarget
from everkept.domain.ids import parse_event_id
from everkept.doors.cli.intake import take_in
from everkept.doors.python.sending import HooksServer
from everkept.errors import RateLimited
from everkept.hook.hook_script import append
from everkept.models.fakes import ScriptedModel
from everkept.models.journaled import JournaledModel
from everkept.ports.faults import NoFaults
from everkept.store.connection import Connection
from everkept.store.erase import erase
from everkept.store.journal import StoreJournal

TRANSCRIPT = RECORDED / "entireio-cli" / "claude-code-2.0.76.jsonl"
HOUR_S = 3_600.0


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Its sessions are not reviewed: what is counted here is what an event leads to by itself."""
    with a_desk(tmp_path / "server", review__scheduler__enabled=False) as made:
        yield made


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return a_checkout(tmp_path / "app")


# ---- the same batch again


class Way:
    """One way in, and a batch that comes by it as often as it is `sent`."""

    def __init__(self, desk: Desk, folder: Path, **said: Any) -> None:
        self.desk = desk
        self.door = Door(desk)
        self.folder = folder
        self.said = said
        """By every record."""

    def events_over_http(self) -> None:
        told = claude_code.FORMAT.read(TRANSCRIPT).events
        self.door.taken({"events": [event_body(e) for e in told], "ended": True})

    def records_over_http(self) -> None:
        self.door.taken({"records": a_session(self.folder, **self.said)})

    def spool(self) -> None:
        for number, one in enumerate(a_session(self.folder, **self.said)):
            append(str(self.desk.home), one["record"], durable=False, number=number)
        self.desk.run(self.desk.hooks.drain(60))

    def spool_of_another_machine(self) -> None:
        """What was sent before is not known: the process is another one."""
        laptop = self.folder / "laptop"
        for number, one in enumerate(whole_session(self.folder, transcript_path=str(TRANSCRIPT))):
            append(str(laptop), one["record"], durable=False, number=number)
        server = HooksServer(
            "http://127.0.0.1:7411", "the-operators-own-key", httpx2.ASGITransport(self.door.app)
        )  # fmt: skip
        self.desk.run(RemoteDrain(Spool(laptop), server).some())
        assert Spool(laptop).state().waiting == 0

    def transcript(self) -> None:
        self.desk.run(self.desk.app.importer().take(claude_code.FORMAT, TRANSCRIPT, again=True))

    def messages_over_http(self) -> None:
        body = {"subject": "ana", "messages": [{"content": f"I live at number {n}", "key": f"m-{n}"} for n in range(5)]}
        sent = self.desk.run(self.door._send(
            "/v1/threads/chat/messages", body, {"Authorization": "Bearer the-operators-own-key"}
        ))  # fmt: skip
        assert sent.status_code in (200, 201), sent.text

    def chat_export(self) -> None:
        file = self.folder / "chat.jsonl"
        file.write_text("".join(json.dumps({"role": "user", "content": f"line {n}"}) + "\n" for n in range(5)))
        parsed = detect(file)(file, zone=UTC, default_subject="ana")
        self.desk.run(take_in(self.desk.run(self.desk.app.service()), parsed, _Silent()))


def a_session(folder: Path, **more: Any) -> list[dict[str, Any]]:
    """With more in it than a trivial one."""
    told = whole_session(folder, **more)
    prompt = "We decided that tokens expire after 15 minutes. " * 10
    words = record(folder, "UserPromptSubmit", number=2, prompt=prompt, **more)
    return [told[0], words, *told[2:]]


class _Silent:
    def at(self, *_: Any) -> None:
        """Nobody watches."""


WAYS: list[Callable[[Way], None]] = [
    Way.events_over_http, Way.records_over_http, Way.spool, Way.spool_of_another_machine, Way.transcript,
    Way.messages_over_http, Way.chat_export,
]  # fmt: skip


def with_a_model(desk: Desk) -> ScriptedModel:
    """Every question it is asked is counted."""
    model = ScriptedModel(lambda q: {"pages": []} if q.step == "pages" else plain_reply(q))
    parts = desk.app.parts
    journaled = JournaledModel(model, StoreJournal(parts.store, parts.settings), NoFaults(), asks_max=2)
    desk.app.parts = dataclasses.replace(parts, tools=dataclasses.replace(parts.tools, model=journaled))
    desk.hooks = desk.app.hooks()
    desk.runner = make_runner(desk.app.parts, NoFaults())
    return model


def all_there_is(desk: Desk) -> list[Any]:
    return [
        desk.rows("select stream_id, seq, content, metadata from events order by stream_id, seq"),
        desk.rows("select kind, stream_id, seq from passages where hidden = false order by id"),
        desk.rows("select kind, key, state from jobs where kind <> 'embed_passages' order by id"),
        desk.rows("select page_id, version, body from page_versions order by page_id, version"),
        desk.rows("select stream_id, start_seq, end_seq from windows order by id"),
    ]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_the_same_batch_ten_times_over_is_one_event_job_page_version_and_question(
    desk: Desk, app: Path, way: Callable[[Way], None]
) -> None:
    model = with_a_model(desk)
    sender = Way(desk, app)
    way(sender)
    desk.settle()
    desk.settle(2 * HOUR_S)
    before, questions = all_there_is(desk), model.calls
    assert before[0]
    assert questions > 0
    for _ in range(9):
        way(sender)
        desk.settle()
    desk.settle(2 * HOUR_S)
    assert all_there_is(desk) == before
    assert model.calls == questions


def test_each_event_is_answered_with_what_became_of_it(desk: Desk, app: Path) -> None:
    door = Door(desk)
    first = door.taken({"events": [event("k-1"), event("k-2", text="Another")]})
    again = door.taken({"events": [event("k-2", text="Another"), event("k-3", text="New")]})
    told = [e for body in (first, again) for one in body["taken"] for e in one["events"]]
    assert [(e["key"], e["outcome"]) for e in told] == [
        ("k-1", "stored"), ("k-2", "stored"), ("k-2", "replayed"), ("k-3", "stored")
    ]  # fmt: skip
    assert told[1]["event_id"] == told[2]["event_id"]


def test_an_erased_event_is_ignored_with_the_reason_and_stays_out(desk: Desk) -> None:
    door = Door(desk)
    [one] = door.taken({"events": [event("k-1"), event("k-2", text="Another")]})["taken"]
    erase_event(desk, one["events"][0]["event_id"])
    desk.settle()
    [again] = door.taken({"events": [event("k-1"), event("k-2", text="Another")]})["taken"]
    assert [(e["outcome"], e["event_id"] is None) for e in again["events"]] == [("ignored", True), ("replayed", False)]
    assert again["events"][0]["reason"] == "it was erased, and stays out"
    assert desk.rows("select count(*) from passages where kind = 'turn' and hidden = false") == [(1,)]


def test_a_batch_with_a_fault_in_the_middle_is_refused_whole_and_mended_adds_each_once(desk: Desk) -> None:
    door = Door(desk)
    batch = [event(f"k-{n}", text=f"Number {n}") for n in range(5)]
    broken = [{**one, "kind": "nonsense"} if n == 2 else one for n, one in enumerate(batch)]
    refused = door({"events": broken})
    assert refused.status_code == 422
    assert "events[2]" in refused.json()["error"]["details"]["field"]
    assert door.count() == 0
    door.taken({"events": batch[:3]})
    [whole] = door.taken({"events": batch})["taken"]
    assert [e["outcome"] for e in whole["events"]] == ["replayed"] * 3 + ["stored"] * 2
    assert door.count() == 5


@pytest.mark.parametrize("sent", ["records", "spool"])
def test_a_session_stays_in_its_project_under_a_new_name_and_a_new_remote(desk: Desk, app: Path, sent: str) -> None:
    way = Way(desk, app, session_id="0b0f3f5e-3c5c-4b6f-9d77-0d5a6f1f2a10")
    send = way.records_over_http if sent == "records" else way.spool
    send()
    service = desk.run(desk.app.service())
    desk.run(service.update_project("example.com/acme/app", new_name="renamed"))
    (app / ".git" / "config").write_text('[remote "origin"]\n\turl = https://example.com/other/place\n')
    desk.wake_again()
    before = desk.rows("select count(*) from events")
    send()
    assert desk.rows("select count(*) from events") == before
    assert desk.rows("select distinct p.name from events e join projects p on p.id = e.project_id") == [("renamed",)]


# ---- what was lost


def erase_event(desk: Desk, id_: str) -> None:
    stream, seq = parse_event_id(id_)
    [(project,)] = desk.rows("select project_id from streams where id = :s", s=stream)
    desk.run(desk.app.parts.store.write(erase, project, EventTarget(stream=stream, seq=seq)))


def lose(desk: Desk, *statements: str) -> None:
    def run(conn: Connection) -> None:
        for statement in statements:
            conn.run(text(statement), {})

    desk.run(desk.app.parts.store.write(run))


TURNS = "select count(*) from passages p where p.kind = 'turn'"
WORDS = {
    "sqlite": "delete from passage_text where rowid in (select id from passages where seq > 1)",
    "postgresql": "delete from passage_index where passage_id in (select id from passages where seq > 1)",
}
"""What takes the words of all messages but the first out of the index."""


@pytest.mark.parametrize("way", [Way.events_over_http, Way.spool, Way.messages_over_http], ids=lambda way: way.__name__)
def test_a_replay_makes_again_what_was_lost(desk: Desk, app: Path, way: Callable[[Way], None]) -> None:
    sender = Way(desk, app)
    way(sender)
    turns = desk.rows(TURNS)
    lose(
        desk, WORDS[desk.app.parts.store.database.dialect.name], "delete from passages where seq > 1",
        "delete from jobs where kind in ('open_window', 'embed_passages')",
    )  # fmt: skip
    assert desk.rows(TURNS) != turns
    way(sender)
    assert desk.rows(TURNS) == turns
    jobs = desk.rows("select kind, state from jobs where kind in ('open_window', 'embed_passages') order by kind")
    assert jobs == [("embed_passages", "waiting"), ("open_window", "waiting")]
    desk.settle(2 * HOUR_S)
    assert desk.rows("select count(*) from windows") == [(1,)]


def test_a_replay_puts_no_timer_off_and_wakes_nothing_that_was_discarded_or_died(desk: Desk) -> None:
    sender = Way(desk, desk.home)
    sender.messages_over_http()
    due = desk.rows("select due_at, generation from jobs where kind = 'open_window'")
    desk.clock.advance(60)
    sender.messages_over_http()
    assert desk.rows("select due_at, generation from jobs where kind = 'open_window'") == due
    for state in ("discarded", "dead"):
        lose(desk, f"update jobs set state = '{state}' where kind in ('open_window', 'embed_passages')")
        sender.messages_over_http()
        assert desk.rows("select distinct state from jobs where kind in ('open_window', 'embed_passages')") == [
            (state,)
        ]


def test_a_replay_brings_nothing_back_while_or_after_its_thread_is_erased(desk: Desk) -> None:
    sender = Way(desk, desk.home)
    sender.messages_over_http()
    erase_event(desk, _first_event(desk))
    sender.messages_over_http()
    desk.settle()
    sender.messages_over_http()
    assert desk.rows("select seq from passages where kind = 'turn' and hidden = false order by seq") == [
        (2,), (3,), (4,), (5,)
    ]  # fmt: skip


def _first_event(desk: Desk) -> str:
    page = desk.run(desk.run(desk.app.service()).list_messages("chat"))
    assert parse_event_id(page.items[0].event_id)[1] == 1
    return page.items[0].event_id


# ---- too fast


class Hand:
    """A clock for the pace, in seconds, moved by hand."""

    def __init__(self, desk: Desk) -> None:
        self.now = 0.0
        desk.app.parts = dataclasses.replace(desk.app.parts, pace=Pace(lambda: self.now))
        desk.wake_again()


def test_events_that_come_too_fast_are_postponed_and_none_is_lost(tmp_path: Path) -> None:
    with a_desk(tmp_path / "slow", intake__events_per_s_max=0.01, intake__burst_max=2) as desk:
        hand, door = Hand(desk), Door(desk)
        door.taken({"events": [event(f"k-{n}", text=f"Number {n}") for n in range(5)]})
        late = door({"events": [event("k-5", text="Number 5")]})
        assert late.status_code == 429
        assert int(late.headers["Retry-After"]) == 400
        assert late.json()["error"]["code"] == "rate_limited"
        assert door.count() == 5
        hand.now = 400
        door.taken({"events": [event("k-5", text="Number 5")]})
        assert door.count() == 6


def test_of_records_only_those_of_the_project_that_is_too_fast_are_postponed(desk: Desk, app: Path) -> None:
    other = a_checkout(app.parent / "other", remote="https://example.com/acme/other")
    door = Door(desk)
    door.taken({"records": whole_session(app)[:1]})
    slow = {"intake.events_per_s_max": 0.01, "intake.burst_max": 1}
    desk.run(desk.run(desk.app.service()).update_project("example.com/acme/app", settings=slow))
    mine = whole_session(app)[1:5]
    others = [{**one, "name": f"other-{one['name']}"} for one in whole_session(other, session_id="s-9")[1:5]]
    sent = [one for pair in zip(mine, others, strict=True) for one in pair]
    answers = {one["name"]: one for one in door.taken({"records": sent})["records"]}
    assert answers[mine[0]["name"]]["taken"]
    assert [answers[one["name"]]["postponed"]["retry_after_s"] for one in mine[1:]] == [pytest.approx(100, abs=1)] * 3
    assert all(answers[one["name"]]["taken"] for one in others)


def test_messages_that_come_too_fast_are_postponed_and_a_patient_caller_waits(tmp_path: Path) -> None:
    with a_desk(tmp_path / "slow", intake__events_per_s_max=0.01, intake__burst_max=2) as desk:
        Way(desk, tmp_path).messages_over_http()
        service = desk.run(desk.app.service())
        with pytest.raises(RateLimited):
            desk.run(service.append("chat", [MessageIn(content="More")]))


def test_the_spool_of_a_fast_project_waits_in_its_order_and_holds_up_no_other(tmp_path: Path, app: Path) -> None:
    other = a_checkout(tmp_path / "other", remote="https://example.com/acme/other")
    with a_desk(tmp_path / "slow", intake__events_per_s_max=0.01, intake__burst_max=3) as desk:
        hand = Hand(desk)
        for n in range(8):
            desk.hook("claude-code", "UserPromptSubmit", app, session_id="s-1", prompt=f"one {n}")
        for n in range(2):
            desk.hook("claude-code", "UserPromptSubmit", other, session_id="s-2", prompt=f"two {n}")
        desk.run(desk.hooks.drain(60))
        said = [content for (content,) in desk.rows("select content from events order by stream_id, seq")]
        assert said == ["one 0", "one 1", "one 2", "two 0", "two 1"]
        assert desk.spool.state().waiting == 5
        desk.hook("claude-code", "UserPromptSubmit", other, session_id="s-2", prompt="two 2")
        desk.run(desk.hooks.drain(60))
        assert desk.spool.state().waiting == 5  # a session that waits keeps no other from going
        hand.now = 10_000
        desk.wake_again()
        desk.run(desk.hooks.drain(60))
        mine = desk.rows("select content from events where content like 'one %' order by seq")
        assert [content for (content,) in mine] == [f"one {n}" for n in range(6)]
