"""Chats of Gemini CLI: genuine ones, as one document and as lines, and what became of them."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from tests.unit.capture.agents.mutated import DATA, FIXTURES, as_file, lines_of, mutated_lines, read_bytes, told

from everkept.capture.agents.gemini import FORMAT
from everkept.capture.agents.reading import Reading
from everkept.domain.session import AgentEvent, ToolCall

DOCUMENT, LARGE = DATA / "entireio-cli" / "gemini-cli-session.json", FIXTURES / "gemini_large.json"
JSONL = FIXTURES / "gemini_jsonl_v040.jsonl"
MESSAGES = [json.dumps(message) for path in (DOCUMENT, LARGE) for message in json.loads(path.read_text())["messages"]]
SESSION = "f7633853-6663-4dbb-bbf4-6159afa29df8"
HEAD = {"sessionId": SESSION, "projectHash": "7e89", "startTime": "2026-01-15T20:51:48.582Z", "kind": "main"}


def said(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {"id": f"m{number}", "timestamp": "2026-01-15T20:51:50Z", "type": "gemini", "content": "", **fields}


def asked(content: Any, number: int = 1) -> dict[str, Any]:
    return {"id": f"m{number}", "timestamp": "2026-01-15T20:51:50Z", "type": "user", "content": content}


def shell(response: Any, *, status: str = "success", command: str = "make", **fields: Any) -> dict[str, Any]:
    answer = [{"functionResponse": {"id": "c1", "name": "run_shell_command", "response": response}}]
    call = {"id": "c1", "name": "run_shell_command", "args": {"command": command}, "status": status, "result": answer}
    return said(toolCalls=[call | fields])


def tool(name: Any, **fields: Any) -> dict[str, Any]:
    return said(toolCalls=[{"id": "c1", "name": name, "status": "success", **fields}])


def read(*records: dict[str, Any]) -> Reading:
    reading = read_bytes(FORMAT, as_file(HEAD, *records), "session-2026-01-15T20-51-f7633853.jsonl")
    assert reading.adds_up
    return reading


def calls(reading: Reading) -> list[ToolCall]:
    return [e.tool for e in reading.events if e.tool is not None]


def prompts(reading: Reading) -> list[AgentEvent]:
    return [e for e in reading.events if e.kind == "prompt"]


# The genuine files.


def test_a_genuine_session_tells_what_was_asked_done_and_answered():
    reading = FORMAT.read(DOCUMENT)
    assert (reading.lines, reading.used, reading.adds_up) == (9, 9, True)
    assert reading.sessions == [SESSION]
    assert [call.command or call.name for call in calls(reading)] == [
        "write_file", "ls -l docs/blue.md", "git status", "rm docs/blue.md",
    ]  # fmt: skip
    assert [call.changes for call in calls(reading)] == [
        (("docs/blue.md", "created"),), (), (), (("docs/blue.md", "deleted"),),
    ]  # fmt: skip
    assert {call.outcome for call in calls(reading)} == {"ok"}
    assert [p.text for p in prompts(reading)] == [
        "run an agent that creates a color file inside docs, choose your color"
    ]


def test_success_means_that_a_command_ran_and_its_exit_code_how_it_ended():
    first, second = calls(FORMAT.read(LARGE))
    assert (first.outcome, first.exit_code) == ("ok", 0)
    assert (second.outcome, second.exit_code, second.decided_by) == ("failed", 1, "Exit Code in the result")


def test_a_cancelled_request_ends_its_turn():
    (end,) = [e for e in FORMAT.read(LARGE).events if e.kind == "turn_end"]
    assert (end.text, end.detail) == ("Request cancelled.", "interrupted")


def test_a_chat_of_lines_is_read_line_by_line():
    reading = FORMAT.read(JSONL)
    assert (reading.lines, dict(reading.passed_by), reading.adds_up) == (5, {"$set": 1}, True)
    assert told(reading) == [
        ("session_start", ""), ("prompt", "Say hello and list files."), ("tool", "ls -F"),
        ("said", "Hello! I listed the files."),
    ]  # fmt: skip
    assert calls(reading)[0].decided_by == "the result tells no Exit Code"


def test_thoughts_are_left_out_and_counted():
    reading = FORMAT.read(DOCUMENT)
    assert sum(e.extra.get("thoughts_left_out", 0) for e in reading.events) == 7
    assert reading.notes == ["7 thoughts left out"]
    assert not [e for e in reading.events if "leaning towards creating a Markdown file" in e.text]


def test_other_agents_files_are_not_taken_for_chats():
    assert all(map(FORMAT.recognise, (DOCUMENT, LARGE, JSONL)))
    assert not [p for p in FIXTURES.iterdir() if not p.name.startswith("gemini") and FORMAT.recognise(p)]


# What messages tell.


def test_a_message_written_again_completes_the_first():
    reading = read(said(content="I run"), shell({"output": "Output: hi"}) | {"content": "I run it"})
    assert told(reading) == [("session_start", ""), ("said", "I run it"), ("tool", "make")]


def test_a_call_is_completed_by_its_later_telling():
    reading = read(shell(None, status="executing"), shell({"output": "Output: x\nExit Code: 3"}))
    (call,) = calls(reading)
    assert (call.ended, call.exit_code, reading.merged) == (True, 3, 1)


def test_what_a_hook_added_is_no_part_of_the_prompt():
    reading = read(
        asked([{"text": "Do it"}, {"text": "<hook_context>Where you left off everkept:offer</hook_context>"}])
    )
    assert [(p.text, p.genuine, p.evidence) for p in prompts(reading)] == [("Do it", True, True)]


def test_context_alone_was_typed_by_nobody():
    (block,) = prompts(read(asked("<session_context>\nToday is Monday\n</session_context>")))
    assert (block.genuine, block.evidence) == (False, False)


def test_our_own_words_are_no_evidence_when_they_come_back():
    reading = read(shell({"output": "Output: everkept:offer off_1"}, command="cat handoff.md"))
    assert [e.evidence for e in reading.events if e.tool] == [False]


@pytest.mark.parametrize(
    ("response", "status", "outcome", "rule"),
    [
        (
            {"output": "Output: x\nError: (none)\nExit Code: 2\nSignal: 0"},
            "success",
            "failed",
            "Exit Code in the result",
        ),
        ({"output": "Directory: (root)\nOutput: x\nSignal: 9"}, "success", "failed", "Signal in the result"),
        ({"output": "Output: (empty)\nError: spawn ENOENT"}, "success", "failed", "Error in the result"),
        ({"output": "only words"}, "success", "unknown", ""),
        ({"error": "[Operation Cancelled] Reason: User denied execution."}, "cancelled", "denied", "status cancelled"),
        ({"error": "[Operation Cancelled] Reason: User cancelled"}, "cancelled", "interrupted", "status cancelled"),
        ({"error": "Params must have a command"}, "error", "failed", "status error"),
    ],
)
def test_a_result_tells_how_a_command_ended(response: Any, status: str, outcome: str, rule: str):
    (call,) = calls(read(shell(response, status=status)))
    assert (call.outcome, call.decided_by) == (outcome, rule)


def test_a_file_is_new_where_its_result_or_its_diff_says_so():
    diff = {"fileDiff": "+x", "isNewFile": True}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"name": "write_file", "resultDisplay": diff}, "created"),
        ({"name": "write_file", "resultDisplay": {"fileDiff": "+x"}}, "edited"),
        ({"name": "replace"}, "edited"),
        ({"name": "replace", "args": {"file_path": "a.py", "old_string": "", "new_string": "x"}}, "created"),
    ]
    for fields, change in cases:
        (call,) = calls(read(tool(fields.pop("name"), **{"args": {"file_path": "a.py"}, **fields})))
        assert (call.changes, call.outcome) == ((("a.py", change),), "ok")


def test_todos_are_a_plan_with_its_open_ends():
    todos = [{"description": "read", "status": "completed"}, {"description": "write", "status": "pending"}]
    (plan,) = [e for e in read(tool("write_todos", args={"todos": todos})).events if e.kind == "plan"]
    assert plan.items == (("read", "completed"), ("write", "pending"))


def test_a_sub_agents_chat_belongs_to_the_session_whose_folder_it_lies_in(tmp_path: Path):
    chat = tmp_path / ".gemini" / "tmp" / "project" / "chats" / SESSION / "agent-1.jsonl"
    chat.parent.mkdir(parents=True)
    head = {**HEAD, "sessionId": "agent-1", "kind": "subagent", "directories": ["/repo"]}
    chat.write_bytes(as_file(head, asked("Look for tests")))
    assert list(FORMAT.find(tmp_path)) == [chat]
    reading = FORMAT.read(chat)
    assert [(e.parent, e.cwd) for e in reading.events] == [(SESSION, "/repo")] * 2
    assert [p.genuine for p in prompts(reading)] == [False]


def test_a_chat_is_about_the_folder_that_the_files_beside_it_name(tmp_path: Path):
    digest = hashlib.sha256(b"/work/repo").hexdigest()
    chats = tmp_path / ".gemini" / "tmp" / "repo" / "chats"
    chats.mkdir(parents=True)
    chat = chats / "session-1.jsonl"
    chat.write_bytes(as_file({**HEAD, "projectHash": digest}, asked("Hello")))
    assert {e.cwd for e in FORMAT.read(chat).events} == {None}
    (tmp_path / ".gemini" / "projects.json").write_text('{"projects": {"/other": "x", "/work/repo": "repo"}}')
    assert {e.cwd for e in FORMAT.read(chat).events} == {"/work/repo"}
    (chats.parent / ".project_root").write_text("/work/moved\n")
    assert {e.cwd for e in FORMAT.read(chat).events} == {"/work/moved"}


def test_the_summary_of_a_session_is_its_title():
    assert read({"$set": {"summary": "Blue files"}}).titles == {SESSION: "Blue files"}


def test_a_rewind_takes_nothing_back():
    reading = read(asked("one"), {"$rewindTo": "m1"}, asked("two", 2))
    assert ([p.text for p in prompts(reading)], dict(reading.passed_by)) == (["one", "two"], {"$rewindTo": 1})


def test_messages_that_are_written_anew_with_the_head_are_the_same_events():
    reading = read(asked("one"), {"$set": {"messages": [asked("one"), asked("two", 2)]}})
    assert [p.text for p in prompts(reading)] == ["one", "two"]


# Whatever became of them.


def test_a_pretty_printed_document_is_read_alike():
    content = json.dumps(json.loads(DOCUMENT.read_text()), indent=4).encode()
    assert read_bytes(FORMAT, content).events == FORMAT.read(DOCUMENT).events


def test_a_document_whose_messages_stand_first_is_read_alike():
    record = json.loads(DOCUMENT.read_text())
    content = json.dumps({"messages": record.pop("messages"), **record}).encode()
    assert [e.key for e in read_bytes(FORMAT, content).events] == [e.key for e in FORMAT.read(DOCUMENT).events]


@pytest.mark.parametrize("path", [DOCUMENT, LARGE, JSONL])
def test_a_file_cut_anywhere_adds_up_and_keeps_what_is_whole(path: Path):
    content = path.read_bytes()
    keys = [e.key for e in FORMAT.read(path).events]
    for end in random.Random(5).sample(range(len(content)), min(80, len(content))):
        reading = read_bytes(FORMAT, content[:end])
        assert reading.adds_up
        part = [e.key for e in reading.events]
        assert part == keys[: len(part)]
    assert len(read_bytes(FORMAT, content[:-20]).events) >= len(keys) - 3


def test_lines_in_any_order_and_number_add_up():
    lines = [*lines_of(JSONL), *MESSAGES]
    for seed in range(8):
        mixed = random.Random(seed).sample(lines * 2, len(lines) * 2)
        reading = read_bytes(FORMAT, "\n".join(mixed).encode())
        assert (reading.adds_up, reading.lines) == (True, len(mixed))


@settings(max_examples=80, deadline=None)
@given(mutated_lines([*lines_of(JSONL), *MESSAGES]))
def test_no_rubbish_raises_and_every_line_is_counted(content: bytes):
    assert read_bytes(FORMAT, content).adds_up


@settings(max_examples=40, deadline=None)
@given(mutated_lines([DOCUMENT.read_text(), LARGE.read_text()]))
def test_no_rubbish_in_a_document_raises_and_every_record_is_counted(content: bytes):
    assert read_bytes(FORMAT, content, "session.json").adds_up
