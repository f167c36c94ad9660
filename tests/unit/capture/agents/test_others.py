"""Copilot CLI, Grok, Kimi and Pi: the genuine files, what else their lines may tell, and what became of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.capture.agents.mutated import FIXTURES, as_file, lines_of, mutated_lines, read_bytes, told

from everkept.capture.agents.others import FORMATS
from everkept.capture.agents.reading import Format, Reading
from everkept.domain.session import ToolCall

BY_AGENT = {form.agent: form for form in FORMATS}
GENUINE = {
    "copilot": FIXTURES / "copilot_small.jsonl",
    "grok": FIXTURES / "grok_chat_history.jsonl",
    "kimi": FIXTURES / "kimi_small.jsonl",
    "pi": FIXTURES / "pi_small.jsonl",
}


def read(agent: str, *records: dict[str, Any]) -> Reading:
    reading = read_bytes(BY_AGENT[agent], as_file(*records), "session.jsonl")
    assert reading.adds_up
    return reading


def calls(reading: Reading) -> list[ToolCall]:
    return [e.tool for e in reading.events if e.tool is not None]


# The genuine files.


@pytest.mark.parametrize(
    ("agent", "lines", "used", "merged"),
    [("copilot", 32, 9, 14), ("grok", 11, 6, 2), ("kimi", 36, 7, 3), ("pi", 9, 7, 0)],
)
def test_every_line_of_the_genuine_files_is_accounted_for(agent: str, lines: int, used: int, merged: int):
    reading = BY_AGENT[agent].read(GENUINE[agent])
    assert (reading.lines, reading.used, reading.merged, reading.unreadable) == (lines, used, merged, [])
    assert reading.adds_up


def test_a_genuine_copilot_session_tells_its_call_once():
    reading = BY_AGENT["copilot"].read(GENUINE["copilot"])
    assert told(reading)[:8] == [
        ("session_start", ""), ("notification", "Example model error"), ("prompt", "List the files"),
        ("said", "Listing the files."), ("tool", "ls"), ("said", "Done"), ("turn_end", ""), ("session_end", ""),
    ]  # fmt: skip
    assert (calls(reading)[0].outcome, calls(reading)[0].output) == ("ok", "a.txt\nb.txt\n")
    own = [e for e in reading.events if e.occurred_at_us is not None]
    assert {(e.session, e.cwd, e.branch) for e in own} == {("copilot_stage0_small", "/tmp/repo", "main")}


def test_a_genuine_grok_history_tells_what_was_typed_and_what_was_not():
    reading = BY_AGENT["grok"].read(GENUINE["grok"])
    assert [(e.text, e.genuine) for e in reading.events if e.kind == "prompt"][1:] == [
        ("Read hello.py and summarize what it prints without editing files.", True),
        ("Here is a screenshot for reference.", True),
    ]
    assert [(c.name, c.command, c.output[:5]) for c in calls(reading)] == [
        ("read_file", None, "print"), ("web_search", None, "https"), ("run_terminal_cmd", "python3 hello.py", "hello"),
    ]  # fmt: skip
    assert {e.occurred_at_us for e in reading.events} == {None}


def test_a_genuine_kimi_wire_tells_each_prompt_once():
    reading = BY_AGENT["kimi"].read(GENUINE["kimi"])
    assert told(reading) == [
        ("session_start", ""), ("prompt", "hi"), ("prompt", "stop"), ("turn_end", ""), ("prompt", "hi"),
        ("turn_end", ""), ("turn_end", ""),
    ]  # fmt: skip
    assert reading.events[1].occurred_at_us == 1_784_950_605_093_000


def test_a_genuine_pi_session_has_its_summaries_as_no_evidence():
    reading = BY_AGENT["pi"].read(GENUINE["pi"])
    assert [(e.kind, e.evidence) for e in reading.events] == [
        ("session_start", True), ("prompt", True), ("said", True), ("compaction", False), ("prompt", True),
        ("said", True), ("compaction", False),
    ]  # fmt: skip
    assert reading.sessions == ["019e19b4-eb48-746a-aa6b-8dfcfa37954b"]


def test_each_file_is_recognised_by_its_own_agent_only():
    files = [p for p in FIXTURES.iterdir() if p.is_file()]
    found = {form.agent: [p for p in files if form.recognise(p)] for form in FORMATS}
    assert found == {agent: [path] for agent, path in GENUINE.items()}


# What else their lines tell.


def test_a_copilot_call_tells_how_it_ended():
    def ended(number: int, **data: Any) -> dict[str, Any]:
        return {"type": "tool.execution_complete", "id": f"e{number}", "data": {"toolCallId": f"c{number}", **data}}

    reading = read(
        "copilot",
        ended(1, success=True, result={"content": "no such file\n<exited with exit code 2>"}),
        ended(2, success=False, error={"code": "denied", "message": "The user denied it"}),
        ended(3, success=False, error={"message": "broken"}),
    )
    assert [(c.outcome, c.exit_code) for c in calls(reading)] == [("failed", 2), ("denied", None), ("failed", None)]


def test_an_aborted_copilot_turn_interrupts_its_call():
    start = {
        "type": "tool.execution_start",
        "data": {"toolCallId": "c1", "toolName": "bash", "arguments": {"command": "make"}},
    }
    (call,) = calls(read("copilot", start, {"type": "abort", "id": "e2", "data": {"reason": "user"}}))
    assert (call.command, call.outcome, call.ended) == ("make", "interrupted", True)


def test_what_a_copilot_sub_agent_does_is_a_session_of_its_own():
    def message(number: int, **data: Any) -> dict[str, Any]:
        return {"type": "assistant.message", "id": f"e{number}", "data": {"content": f"said {number}", **data}}

    reading = read("copilot", message(1), message(2, parentToolCallId="c1"), message(3))
    assert [(e.text, e.session, e.parent) for e in reading.events] == [
        ("said 1", "session", None), ("said 2", "session/c1", "session"), ("said 3", "session", None),
    ]  # fmt: skip


def test_the_files_beside_a_history_tell_its_title_folder_and_time(tmp_path: Path):
    grok = tmp_path / ".grok" / "sessions" / "%2Fwork%2Frepo" / "0198" / "chat_history.jsonl"
    grok.parent.mkdir(parents=True)
    grok.write_bytes(GENUINE["grok"].read_bytes())
    assert [(r.sessions, {e.cwd for e in r.events}) for r in map(BY_AGENT["grok"].read, [grok])] == [
        (["0198"], {"/work/repo"})
    ]
    grok.with_name("summary.json").write_text(
        '{"info": {"cwd": "/work/moved"}, "created_at": "2026-07-16T12:00:00Z", "title": "Hello"}'
    )
    reading = BY_AGENT["grok"].read(grok)
    assert (reading.titles, {e.cwd for e in reading.events}) == ({"0198": "Hello"}, {"/work/moved"})
    kimi = tmp_path / "session_1" / "agents" / "main" / "wire.jsonl"
    kimi.parent.mkdir(parents=True)
    kimi.write_bytes(GENUINE["kimi"].read_bytes())
    (tmp_path / "session_1" / "state.json").write_text('{"title": "Hi", "workDir": "/work/repo"}')
    reading = BY_AGENT["kimi"].read(kimi)
    assert (reading.titles, reading.events[0].cwd, reading.sessions) == (
        {"session_1": "Hi"},
        "/work/repo",
        ["session_1"],
    )


def test_a_grok_prompt_is_what_stands_in_its_query():
    text = "The user interrupted the previous turn:\n<user_query>\nGo on\n</user_query>\nMake sure to finish."
    reading = read(
        "grok",
        {"type": "user", "content": "This session is being continued from …", "synthetic_reason": "compaction_meta"},
        {"type": "user", "content": [{"type": "text", "text": text}], "prior_turn_interrupt": "mid_turn_abort"},
    )
    assert told(reading)[1:] == [("turn_end", ""), ("prompt", "Go on")]
    assert (reading.events[0].kind, reading.events[0].evidence) == ("compaction", False)


def test_a_kimi_call_tells_how_it_ended_and_a_sub_agents_wire_has_a_parent(tmp_path: Path):
    wire = tmp_path / ".kimi-code" / "sessions" / "wd_repo" / "session_1" / "agents" / "agent-1" / "wire.jsonl"
    wire.parent.mkdir(parents=True)

    def step(**event: Any) -> dict[str, Any]:
        return {"type": "context.append_loop_event", "time": 1_784_950_605_093, "event": event}

    wire.write_bytes(
        as_file(
            {"type": "metadata", "protocol_version": "1.4", "created_at": 1_784_950_605_000},
            {"type": "turn.prompt", "input": [{"type": "text", "text": "Look"}], "origin": {"kind": "user"}},
            step(type="content.part", part={"type": "text", "text": "I run it"}),
            step(type="tool.call", toolCallId="c1", name="Bash", args={"command": "rm a.txt"}),
            step(
                type="tool.result",
                toolCallId="c1",
                result={"output": "Command failed with exit code: 3.", "isError": True},
            ),
        )
    )
    assert list(BY_AGENT["kimi"].find(tmp_path)) == [wire]
    reading = BY_AGENT["kimi"].read(wire)
    assert {(e.session, e.parent) for e in reading.events} == {("session_1/agent-1", "session_1")}
    assert [e.genuine for e in reading.events if e.kind == "prompt"] == [False]
    (call,) = calls(reading)
    assert (call.changes, call.outcome, call.exit_code) == ((("a.txt", "deleted"),), "failed", 3)


def test_a_wire_of_the_older_kimi_is_read_alike(tmp_path: Path):
    def line(kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": 1_765_000_000.25, "message": {"type": kind, "payload": payload}}

    wire = tmp_path / ".kimi" / "sessions" / "5d41" / "b7e2" / "wire.jsonl"
    wire.parent.mkdir(parents=True)
    wire.write_bytes(
        as_file(
            {"type": "metadata", "protocol_version": "1.1"},
            line("TurnBegin", user_input=[{"type": "text", "text": "Run it"}]),
            line("ToolCall", type="function", id="c1", function={"name": "Shell", "arguments": '{"command": "make"}'}),
            line("ToolResult", tool_call_id="c1", return_value={"is_error": False, "output": "fine", "message": ""}),
            line("ContentPart", type="text", text="Done"),
            line("StatusUpdate"),
            line("TurnEnd"),
        )
    )
    assert list(BY_AGENT["kimi"].find(tmp_path)) == [wire]
    reading = BY_AGENT["kimi"].read(wire)
    assert told(reading)[1:] == [("prompt", "Run it"), ("tool", "make"), ("said", "Done"), ("turn_end", "")]
    assert (calls(reading)[0].outcome, calls(reading)[0].output, reading.sessions) == ("ok", "fine", ["b7e2"])
    assert reading.events[1].occurred_at_us == 1_765_000_000_250_000


def test_a_pi_message_tells_of_its_calls_and_of_commands_that_a_person_ran():
    def message(number: int, **fields: Any) -> dict[str, Any]:
        return {"type": "message", "id": f"0000000{number}", "message": fields}

    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I edit"},
               {"type": "toolCall", "id": "c1", "name": "edit", "arguments": {"path": "a.py"}}]  # fmt: skip
    reading = read(
        "pi",
        message(1, role="assistant", content=content),
        message(2, role="toolResult", toolCallId="c1", toolName="edit", content="done", isError=False),
        message(3, role="bashExecution", command="make", output="broken", exitCode=2, cancelled=False),
        message(4, role="assistant", content=[], stopReason="aborted", errorMessage="stopped"),
    )
    assert told(reading) == [("said", "I edit"), ("tool", "edit"), ("tool", "make"), ("turn_end", "stopped")]
    assert [(c.outcome, c.decided_by) for c in calls(reading)] == [("ok", "isError"), ("failed", "exit code")]
    assert calls(reading)[0].changes == (("a.py", "edited"),)


@pytest.mark.parametrize("agent", GENUINE)
def test_our_own_words_are_no_evidence_when_they_come_back(agent: str):
    content = (
        GENUINE[agent].read_text().replace("List the files", "everkept:offer off_1").replace('"hi"', '"everkept:offer"')
    )
    content = content.replace("Read hello.py", "everkept:offer Read hello.py")
    reading = read_bytes(BY_AGENT[agent], content.encode())
    assert [e.evidence for e in reading.events if "everkept:offer" in e.text] == [False] * (2 if agent == "kimi" else 1)


# Whatever became of them.


@pytest.mark.parametrize("agent", GENUINE)
def test_a_file_cut_anywhere_adds_up_and_keeps_the_keys_it_had(agent: str):
    content = GENUINE[agent].read_bytes()
    keys = [e.key for e in read_bytes(BY_AGENT[agent], content).events]
    for end in random.Random(5).sample(range(len(content)), 60):
        reading = read_bytes(BY_AGENT[agent], content[:end])
        part = [e.key for e in reading.events]
        assert (reading.adds_up, part) == (True, keys[: len(part)])


@pytest.mark.parametrize("agent", GENUINE)
def test_lines_in_any_order_and_number_add_up(agent: str):
    lines = lines_of(GENUINE[agent])
    for seed in range(5):
        mixed = random.Random(seed).sample(lines * 2, len(lines) * 2)
        reading = read_bytes(BY_AGENT[agent], "\n".join(mixed).encode())
        assert (reading.adds_up, reading.lines) == (True, len(mixed))


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.agent)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_rubbish_raises_and_every_line_is_counted(form: Format, data: st.DataObject):
    content = data.draw(mutated_lines([line[:4_000] for line in lines_of(GENUINE[form.agent]) if len(line) < 4_000]))
    assert read_bytes(form, content).adds_up
