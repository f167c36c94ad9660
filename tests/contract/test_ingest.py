"""What hooks and launches of other machines send: known by its keys, into the project it belongs to, no path of it read
(G2, G15; H02, H06)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.stubs.agent_desk import Desk, a_checkout, a_desk
from tests.stubs.replayed import RECORDED

from everkept import config
from everkept.doors.http.app import create_app
from everkept.hook.hook_script import record_of

ADMIN = "the-operators-own-key"
TRANSCRIPT = RECORDED / "entireio-cli" / "claude-code-2.0.76.jsonl"


class Door:
    """The HTTP door over a real store, in this process."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.app = create_app(desk.app, config.load({"EVERKEPT_ADMIN_KEY": ADMIN}))

    def __call__(self, body: Any, *, key: str = ADMIN, **headers: str) -> httpx2.Response:
        return self.desk.run(self._send("/v1/events", body, {"Authorization": f"Bearer {key}", **headers}))

    async def _send(self, path: str, body: Any, headers: dict[str, str]) -> httpx2.Response:
        transport = httpx2.ASGITransport(self.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7411") as client:
            return await client.post(path, json=body, headers=headers)

    def taken(self, body: Any, **more: str) -> Any:
        response = self(body, **more)
        assert response.status_code == 200, response.text
        return response.json()

    def key_of(self, project: str) -> str:
        service = self.desk.run(self.desk.app.service())
        self.desk.run(service.create_project(project))
        return self.desk.run(service.create_key("laptop", project=project)).token

    def count(self) -> int:
        return int(self.desk.rows("select count(*) from events")[0][0])


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    with a_desk(tmp_path / "server") as desk:
        yield Door(desk)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return a_checkout(tmp_path / "app")


def record(cwd: Path, event: str, *, number: int = 0, agent: str = "claude-code", **payload: Any) -> dict[str, Any]:
    said = {"hook_event_name": event, "cwd": str(cwd), "session_id": "s-1", **payload}
    found = record_of(json.dumps(said).encode(), agent, event)
    assert found is not None
    at_ns = 1_790_000_000_000_000_000 + number * 1_000_000_000
    return {"name": f"{at_ns:020d}-7-0.json", "record": {**found, "at_ns": at_ns}}


def whole_session(cwd: Path, **more: Any) -> list[dict[str, Any]]:
    bash: dict[str, Any] = {"tool_name": "Bash", "tool_use_id": "t-1", "tool_input": {"command": "pytest -q"}}
    return [
        record(cwd, "SessionStart", number=1, source="startup", **more),
        record(cwd, "UserPromptSubmit", number=2, prompt="Fix the login test", **more),
        record(cwd, "PostToolUse", number=3, tool_response={"stdout": "12 passed"}, **bash, **more),
        record(cwd, "Notification", number=4, message="Waiting for you", **more),
        record(cwd, "UserPromptSubmit", number=5, prompt="Fix the login test", **more),
        record(cwd, "PreCompact", number=6, trigger="auto", **more),
        record(cwd, "Stop", number=7, last_assistant_message="It passes.", **more),
        record(cwd, "Fresh", number=8, something="new", **more),
        record(cwd, "SessionEnd", number=9, reason="other", **more),
    ]


def event(key: str = "k-1", **fields: Any) -> dict[str, Any]:
    return {"kind": "prompt", "agent": "claude-code", "session": "s-1", "key": key, "text": "Fix it", **fields}


# ---- records


def test_each_record_is_answered_with_what_became_of_it(door: Door, app: Path) -> None:
    answer = door.taken({"records": whole_session(app)})
    assert answer["taken"] is None
    assert [one["name"] for one in answer["records"]] == [one["name"] for one in whole_session(app)]
    assert all(one["refused"] is None for one in answer["records"])
    assert answer["records"][1]["taken"] == [{
        "agent": "claude-code", "session": "s-1", "stored": 1, "revised": 0, "known": 0,
        "project": "example.com/acme/app", "found_by": "session",
        "events": answer["records"][1]["taken"][0]["events"],
    }]  # fmt: skip
    [told] = answer["records"][1]["taken"][0]["events"]
    assert (told["outcome"], told["reason"], told["event_id"][:4]) == ("stored", None, "evt_")
    assert answer["records"][0]["taken"][0]["found_by"] == "remote"
    assert door.count() == 9


def test_a_record_that_is_sent_again_changes_nothing(door: Door, app: Path) -> None:
    door.taken({"records": whole_session(app)})
    before = door.desk.rows("select stream_id, seq, content, metadata from events order by stream_id, seq")
    again = door.taken({"records": whole_session(app)})
    assert [(t["stored"], t["revised"], t["known"]) for one in again["records"] for t in one["taken"]] == [
        (0, 0, 1)
    ] * 9
    assert before == door.desk.rows("select stream_id, seq, content, metadata from events order by stream_id, seq")


def test_a_refused_record_keeps_no_other_out(door: Door, app: Path) -> None:
    good, other = whole_session(app)[:2]
    newer = {"name": "newer", "record": {**good["record"], "format": 99}}
    none = {"name": "none", "record": {"hello": "world"}}
    shown = {"name": "shown", "record": {**good["record"], "event": "shown", "offer": "of another kind"}}
    answers = door.taken({"records": [newer, good, none, shown, other]})["records"]
    assert [one["refused"] and one["refused"]["code"] for one in answers] == [
        "invalid_input", None, "invalid_input", "not_found", None,
    ]  # fmt: skip
    assert "newer than this server" in answers[0]["refused"]["message"]
    assert door.count() == 2


@pytest.mark.parametrize(
    "odd",
    [
        {"at_ns": 10**40}, {"at_ns": -5}, {"at_ns": "now"}, {"agent": "x" * 5_000}, {"agent": ["a"]}, {"cwd": 7},
        {"place": "here"}, {"place": {"remote": "\x00", "top": ["a"]}}, {"payload": [1, 2]}, {"event": None},
        {"payload": {"session_id": "s\u0000-\ud800"}}, {"payload": {"session_id": "x" * 100_000}},
    ],
    ids=str,
)  # fmt: skip
def test_an_odd_record_is_taken_or_refused_and_breaks_nothing(door: Door, app: Path, odd: dict[str, Any]) -> None:
    first, second = whole_session(app)[1:3]
    first["record"] = json.loads(json.dumps({**first["record"], **odd}, ensure_ascii=False).encode("utf-8", "replace"))
    answers = door.taken({"records": [first, second]})["records"]
    assert answers[1]["taken"][0]["stored"] == 1


def test_no_file_that_a_sender_names_is_looked_at(door: Door, app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("git was run for a sender")

    monkeypatch.setattr(subprocess, "run", refuse)
    nowhere = a_checkout(app.parent / "plain", remote="")
    door.taken({"records": [record(nowhere, "Stop", transcript_path=str(TRANSCRIPT), number=n) for n in range(3)]})
    body = {"name": "n", "events": [event(cwd=str(nowhere))], "checkout": {"cwd": str(nowhere), "top": str(nowhere)}}
    door.taken({"records": [body]})
    assert door.count() == 4
    assert door.desk.rows("select count(*) from transcripts") == [(0,)]


def test_a_shown_offer_is_noted(door: Door, app: Path) -> None:
    door.desk.work("claude-code", "before", app)
    given = door.desk.start("codex", "s-2", app)
    offer = given.partition("everkept:offer ")[2].split()[0]
    fields = {**record(app, "SessionStart", session_id="s-2", agent="codex")["record"], "event": "shown"}
    assert door.taken({"records": [{"name": "n", "record": {**fields, "offer": offer}}]})["records"][0]["taken"] == []
    assert door.desk.rows("select state from offers where id = :id", id=int(offer.partition("_")[2])) == [("shown",)]


# ---- whose memory it is


def test_with_a_projects_key_everything_goes_into_that_project(door: Door, app: Path) -> None:
    key = door.key_of("theirs")
    door.taken({"records": whole_session(app)[:2]})  # the operator's: by the folder
    answer = door.taken({"records": whole_session(app)[:2]}, key=key)
    assert {t["project"] for one in answer["records"] for t in one["taken"]} == {"theirs"}
    assert [t["stored"] for one in answer["records"] for t in one["taken"]] == [1, 1]
    child = event("k-9", session="child", parent="s-1")
    assert door.taken({"events": [child]}, key=key)["taken"][0]["project"] == "theirs"
    counts = "select p.name, count(*) from events e join projects p on p.id = e.project_id group by 1 order by 1"
    assert door.desk.rows(counts) == [("example.com/acme/app", 2), ("theirs", 3)]


def test_a_projects_key_teaches_no_folder_to_be_its_own(door: Door, app: Path) -> None:
    door.taken({"records": whole_session(app)}, key=door.key_of("theirs"))
    assert door.desk.rows("select count(*) from project_aliases") == [(0,)]


def test_a_projects_key_may_name_no_other_project(door: Door, app: Path) -> None:
    key = door.key_of("theirs")
    refused = door({"records": whole_session(app)}, key=key, **{"X-Everkept-Project": "default"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    assert door.count() == 0


def test_the_operator_may_name_a_project_that_is_there(door: Door, app: Path) -> None:
    door.key_of("theirs")
    named = door.taken({"records": whole_session(app)[:1]}, **{"X-Everkept-Project": "theirs"})
    assert named["records"][0]["taken"][0]["project"] == "theirs"
    unknown = door({"records": whole_session(app)[:1]}, **{"X-Everkept-Project": "nobodys"})
    assert unknown.status_code == 404


# ---- events


def test_events_are_kept_as_they_are_told(door: Door, app: Path) -> None:
    call = {
        "name": "Bash", "family": "shell", "command": "pytest", "output": "1 failed", "outcome": "failed",
        "exit_code": 1, "changes": [["a.py", "edited"]], "paths": ["a.py"],
    }  # fmt: skip
    events = [
        event("k-1", occurred_at_us=1_790_000_000_000_000),
        event("k-2", kind="tool", text="", tool=call),
        event("k-3", kind="plan", text="", items=[["Write the docs", "pending"]]),
        event("k-4", kind="said", text="Done", session="s-2", extra={"title": "A login"}),
    ]
    where = {"cwd": str(app), "remote": "git@example.com:Acme/App.git", "branch": "main"}
    answer = door.taken({"events": events, "checkout": where, "origin": "import", "ended": True})
    assert [(t["session"], t["stored"], t["found_by"]) for t in answer["taken"]] == [
        ("s-1", 3, "remote"), ("s-2", 1, "remote"),
    ]  # fmt: skip
    contents = [row[0] for row in door.desk.rows("select content from events order by stream_id, seq")]
    assert contents == ["Fix it", "$ pytest\n→ failed (exit code 1)\n1 failed", "[ ] Write the docs", "Done"]
    assert door.desk.rows("select origin, branch, title from sessions order by stream_id") == [
        ("import", "main", None), ("import", "main", "A login"),
    ]  # fmt: skip
    assert [t["known"] for t in door.taken({"events": events, "checkout": where})["taken"]] == [3, 1]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body"),
        ({"events": []}, "events"),
        ({"records": [{"name": "n"}]}, "records[0]"),
        ({"records": [{"name": "n", "record": {}}] * 101}, "records"),
        ({"events": [event()], "records": [{"name": "n", "record": {}}]}, "body"),
        ({"events": [event(kind="shouted")]}, "events[0].kind"),
        ({"events": [event(), {"kind": "prompt", "agent": "a", "session": "s"}]}, "events[1].key"),
        ({"events": [event(kind="tool")]}, "events[0]"),
        ({"events": [event(kind="tool", tool={"name": "Bash", "outcome": "fine"})]}, "events[0].tool.outcome"),
        ({"events": [event(occurred_at_us=-1)]}, "events[0].occurred_at_us"),
        ({"events": [event(extra={"x": "y" * 200_000})]}, "events[0].extra"),
        ({"events": [event(session="a\nb")]}, "events[0].session"),
        ({"events": [event(colour="red")]}, "colour"),
        ({"events": [event()], "checkout": {"top": "/x"}}, "checkout.cwd"),
    ],
)
def test_what_cannot_be_taken_names_its_field(door: Door, body: Any, field: str) -> None:
    response = door(body)
    error = response.json()["error"]
    assert (response.status_code, error["details"]["field"]) == (422, field), error
    assert door.count() == 0
