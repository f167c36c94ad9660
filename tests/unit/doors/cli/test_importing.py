from __future__ import annotations

import json

import pytest
from tests.unit.doors.cli.fake_service import FakeService, a_status

from everkept.doors.cli.main import run

LINES = [
    {"thread": "a", "subject": "anna", "role": "user", "content": "I moved to Lisbon", "id": "1"},
    {"thread": "a", "subject": "anna", "role": "assistant", "content": "Noted", "id": "2"},
    {"thread": "b", "subject": "anna", "role": "user", "content": "And I sold the car", "id": "3"},
]


@pytest.fixture
def chat(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text("\n".join(map(json.dumps, LINES)) + "\n", encoding="utf-8")
    return path


def test_import_twice_adds_nothing(chat, capsys):
    fake = FakeService(status=a_status())
    assert run(["import", str(chat)], opener=fake) == 0
    assert "3 stored" in capsys.readouterr().out
    assert run(["import", str(chat)], opener=fake) == 0
    out = capsys.readouterr().out
    assert "0 stored" in out
    assert "3 accepted before" in out


def test_import_ends_each_thread_so_that_it_is_remembered_soon(chat):
    fake = FakeService(status=a_status())
    run(["import", str(chat)], opener=fake)
    assert [words["thread"] for name, words in fake.calls if name == "end_thread"] == ["a", "b"]


def test_import_that_waits_counts_what_is_remembered(chat, capsys):
    assert run(["import", str(chat), "--wait"], opener=FakeService(status=a_status())) == 0
    assert "3 of 3 messages remembered" in capsys.readouterr().out


def test_import_report_adds_up(chat, capsys):
    chat.write_text(chat.read_text() + "\nnot json\n", encoding="utf-8")
    assert run(["import", str(chat), "--json"], opener=FakeService(status=a_status())) == 5
    report = json.loads(capsys.readouterr().out)
    accounted = report["stored"] + report["replayed"] + sum(report["passed_by"].values()) + len(report["unreadable"])
    assert report["lines"] == accounted == 5
    assert report["unreadable"][0].startswith("line 5")


def test_import_of_a_missing_file_is_not_found(tmp_path, capsys):
    assert run(["import", str(tmp_path / "no.jsonl")], opener=FakeService()) == 4
    assert "there is no file" in capsys.readouterr().err


def test_import_into_one_thread_refuses_a_file_of_several(chat):
    assert run(["import", str(chat), "--thread", "x"], opener=FakeService()) == 2


def test_import_refuses_an_unknown_zone(chat, capsys):
    assert run(["import", str(chat), "--zone", "Mars/Base"], opener=FakeService()) == 2
    assert "time zone" in capsys.readouterr().err


def test_a_coding_agents_session_is_sent_to_its_own_command(tmp_path, capsys):
    session = tmp_path / "rollout.jsonl"
    head = {"timestamp": "2026-01-02T03:04:05Z", "type": "session_meta", "payload": {"id": "0199", "cwd": "/code/app"}}
    session.write_text(json.dumps(head) + "\n", encoding="utf-8")
    assert run(["import", str(session)], opener=FakeService(status=a_status())) == 2
    assert f"everkept import codex {session}" in capsys.readouterr().err


def test_a_session_with_a_chat_in_it_is_taken_in_as_asked_and_told(tmp_path, capsys):
    session = tmp_path / "session.jsonl"
    line = {
        "type": "user", "sessionId": "0a1b", "uuid": "u1", "cwd": "/code/app", "timestamp": "2026-01-02T03:04:05Z",
        "message": {"role": "user", "content": "Fix the login test"},
    }  # fmt: skip
    session.write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert run(["import", str(session)], opener=FakeService(status=a_status())) == 0
    captured = capsys.readouterr()
    assert "1 stored" in captured.out
    assert f"everkept import claude-code {session}" in captured.err


def test_a_chat_is_no_session(chat, capsys):
    assert run(["import", str(chat)], opener=FakeService(status=a_status())) == 0
    assert "session of" not in capsys.readouterr().err


def test_a_word_that_is_neither_a_file_nor_an_agent_names_the_agents(capsys):
    assert run(["import", "claud"], opener=FakeService()) == 4
    assert "claude-code, codex" in capsys.readouterr().err
