"""Codex rollouts: genuine ones of 0.106 and 0.146, what is in none of them yet, and what became of them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.capture.agents.mutated import FIXTURES, as_file, lines_of, mutated_lines, read_bytes, told

from everkept.capture.agents.codex import FORMAT
from everkept.capture.agents.reading import Reading
from everkept.domain.session import AgentEvent, ToolCall, natural_key

OLD, NEW = FIXTURES / "codex_large.jsonl", FIXTURES / "codex_small.jsonl"
LINES = [*lines_of(OLD), *lines_of(NEW)]
SESSION = "019fc8be-3658-7ca3-9e29-5f3a6c1d2e4b"
PARENT = "019fc8be-0000-7ca3-9e29-5f3a6c1d2e4b"


def line(kind: str, payload: dict[str, Any], at: str = "2026-08-03T10:00:05Z") -> dict[str, Any]:
    return {"timestamp": at, "type": kind, "payload": payload}


def meta(**fields: Any) -> dict[str, Any]:
    return line("session_meta", {"id": SESSION, "timestamp": "2026-08-03T10:00:00Z", "cwd": "/repo", **fields})


def item(at: str = "2026-08-03T10:00:05Z", **payload: Any) -> dict[str, Any]:
    return line("response_item", payload, at)


def message(role: str, *texts: str, at: str = "2026-08-03T10:00:05Z") -> dict[str, Any]:
    return item(at, type="message", role=role, content=[{"type": "input_text", "text": text} for text in texts])


def event(at: str = "2026-08-03T10:00:05Z", **payload: Any) -> dict[str, Any]:
    return line("event_msg", payload, at)


def call(command: str, call_id: str = "call_1", name: str = "exec_command") -> dict[str, Any]:
    return item(type="function_call", name=name, call_id=call_id, arguments=json.dumps({"cmd": command}))


def output(text: Any, call_id: str = "call_1") -> dict[str, Any]:
    return item(type="function_call_output", call_id=call_id, output=text)


def read(*records: dict[str, Any]) -> Reading:
    reading = read_bytes(FORMAT, as_file(*records), f"rollout-2026-08-03T10-00-00-{SESSION}.jsonl")
    assert reading.adds_up
    return reading


def only_call(reading: Reading) -> ToolCall:
    (found,) = [e.tool for e in reading.events if e.tool is not None]
    return found


def prompts(reading: Reading) -> list[AgentEvent]:
    return [e for e in reading.events if e.kind == "prompt"]


# The genuine files.


def test_every_line_of_the_genuine_rollouts_is_accounted_for():
    old, new = FORMAT.read(OLD), FORMAT.read(NEW)
    assert (old.lines, old.used, old.merged, old.passed_by.total(), len(old.unreadable)) == (20, 16, 2, 2, 0)
    assert (new.lines, new.adds_up, len(new.unreadable)) == (118, True, 0)


def test_an_old_rollout_is_read_with_its_command_and_what_came_of_it():
    reading = FORMAT.read(OLD)
    found = only_call(reading)
    assert (
        found.name, found.family, found.outcome, found.decided_by, found.exit_code,
    ) == ("run_shell_command", "shell", "ok", "exit code", 0)  # fmt: skip
    assert found.output == "line1\nline2\nline3\n"
    assert [p.text for p in prompts(reading) if p.genuine] == [
        "Start",
        "Step 1",
        "Step 2",
        "Step 3",
        "Step 4",
        "Step 5",
    ]


def test_environment_blocks_are_kept_as_what_nobody_typed():
    (block,) = [p for p in prompts(FORMAT.read(OLD)) if not p.genuine]
    assert block.text.startswith("<environment_context>")
    assert (block.evidence, block.extra["not_typed"]) == (False, "context")


def test_a_new_rollout_tells_each_thing_once():
    reading = FORMAT.read(NEW)
    own = [e for e in reading.events if e.occurred_at_us is not None]
    assert [e.kind for e in own] == [
        "session_start", "prompt", "tool", "tool", "tool", "tool", "tool", "tool", "tool",
        "compaction", "turn_end", "said", "turn_end",
    ]  # fmt: skip
    assert {("/tmp/repo", "gpt-5.6-luna")} == {(e.cwd, e.model) for e in own if e.kind == "said"}
    patch = next(e.tool for e in own if e.tool is not None and e.tool.name == "apply_patch")
    assert patch.changes == (("/tmp/repo/a.txt", "edited"),)
    assert (patch.outcome, patch.decided_by) == ("ok", "patch_apply_end.success")


def test_other_agents_files_are_not_taken_for_rollouts():
    assert FORMAT.recognise(OLD)
    assert FORMAT.recognise(NEW)
    assert not [p for p in FIXTURES.iterdir() if not p.name.startswith("codex") and FORMAT.recognise(p)]


# Words.


def test_a_prompt_told_three_times_is_one_event_with_the_key_that_a_hook_gives_it():
    content = [{"type": "text", "text": "Fix it"}]
    reading = read(
        meta(),
        event(type="user_message", message="Fix it"),
        message("user", "Fix it"),
        event(type="item_completed", item={"type": "UserMessage", "id": "u1", "content": content}),
    )
    (prompt,) = prompts(reading)
    assert natural_key("codex", None, session=SESSION, role="prompt", text="Fix it") == prompt.key
    assert (reading.used, reading.merged) == (2, 2)


def test_the_same_words_said_twice_are_two_events():
    reading = read(meta(), *[message("user", "go on", at=f"2026-08-03T10:00:0{n}Z") for n in (1, 2)])
    assert [p.text for p in prompts(reading)] == ["go on", "go on"]
    assert len({p.key for p in prompts(reading)}) == 2


def test_a_line_written_twice_is_one():
    reading = read(meta(), message("user", "go on"), message("user", "go on"))
    assert len(prompts(reading)) == 1
    assert dict(reading.passed_by) == {"repeated line": 1}


def test_what_stands_around_a_prompt_is_left_out_of_it():
    rules = "# AGENTS.md instructions for /repo\n\n<INSTRUCTIONS>\nBe kind\n</INSTRUCTIONS>"
    place = "<environment_context>\n<cwd>/repo</cwd>\n</environment_context>"
    reading = read(meta(), message("user", rules, place, "Do it"))
    assert [(p.text, p.genuine) for p in prompts(reading)] == [("Do it", True)]


def test_what_an_editor_puts_before_a_request_is_left_out():
    reading = read(
        meta(),
        message("user", "# Context from my IDE setup:\n\n## Open tabs: a.py\n\n## My request for Codex:\nDo it\n"),
    )
    assert [p.text for p in prompts(reading)] == ["Do it"]


def test_developer_messages_and_reasoning_are_passed_by_and_counted():
    reading = read(
        meta(), message("developer", "Rules"), item(type="reasoning", summary=[]), event(type="agent_reasoning")
    )
    assert dict(reading.passed_by) == {
        "message of the developer": 1,
        "response_item/reasoning": 1,
        "event_msg/agent_reasoning": 1,
    }


def test_types_that_nobody_knows_are_counted_by_their_names():
    reading = read(meta(), line("weather", {}), event(type="rain"), item(type="snow"), {"timestamp": "x"})
    assert dict(reading.passed_by) == {"weather": 1, "event_msg/rain": 1, "response_item/snow": 1, "no type": 1}


def test_our_own_words_are_no_evidence_when_they_come_back():
    ours = "Where you left off <!-- everkept:offer off_12 -->"
    reading = read(meta(), message("user", ours), message("assistant", "fine"), call("cat handoff.md"), output(ours),
                   item(type="function_call", name="recall", namespace="mcp__everkept__", call_id="c2"))  # fmt: skip
    assert [(e.kind, e.evidence) for e in reading.events[1:]] == [
        ("prompt", False),
        ("said", True),
        ("tool", False),
        ("tool", False),
    ]


def test_a_summary_is_a_compaction_and_no_evidence():
    reading = read(meta(), event(type="context_compacted"), line("compacted", {"message": "So far: all well"}))
    (found,) = [e for e in reading.events if e.kind == "compaction"]
    assert (found.text, found.evidence) == ("So far: all well", False)


# Calls.


def test_an_exit_code_decides_whatever_the_output_says():
    ended = event(type="exec_command_end", call_id="call_1", command=["bash", "-lc", "pytest -q"], exit_code=1,
                  aggregated_output="1 failed", status="completed")  # fmt: skip
    for records in ([call("pytest -q"), output("Success"), ended], [ended, output("Success"), call("pytest -q")]):
        reading = read(meta(), *records)
        found = only_call(reading)
        assert (
            found.command, found.outcome, found.decided_by, found.exit_code,
        ) == ("pytest -q", "failed", "exit code", 1)  # fmt: skip
        assert (reading.used, reading.merged) == (2, 2)


@pytest.mark.parametrize(
    ("told", "outcome", "code"),
    [
        (
            "Chunk ID: 9\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nProcess exited with code 0",
            "failed",
            2,
        ),
        ("Exit code: 0\nWall time: 1 seconds\nOutput:\nfine\n", "ok", 0),
        (json.dumps({"output": "no such file", "metadata": {"exit_code": 127}}), "failed", 127),
        ("exec command rejected by user", "denied", None),
        ("aborted by user after 3.2s", "interrupted", None),
        ({"content": "broken", "success": False}, "failed", None),
        ("some words", "unknown", None),
        ("I say: Exit code: 1", "unknown", None),
    ],
)
def test_an_output_tells_how_a_command_ended(told: Any, outcome: str, code: int | None):
    found = only_call(read(meta(), call("make"), output(told)))
    assert "Wall time" not in found.output
    assert (outcome, code, True) == (found.outcome, found.exit_code, found.ended)
    assert bool(found.decided_by) == (outcome != "unknown")


def test_a_call_without_a_result_has_not_ended():
    assert not only_call(read(meta(), call("make"))).ended


def test_a_result_whose_call_was_lost_is_a_call_without_a_name():
    found = only_call(read(meta(), output("done")))
    assert (found.name, found.output, found.ended) == ("unknown", "done", True)


def test_an_aborted_turn_interrupts_what_was_under_way():
    reading = read(meta(), call("make"), call("ls", "call_2"), output("Exit code: 0\nOutput:\na", "call_2"),
                   event(type="turn_aborted", turn_id="t1", reason="interrupted"))  # fmt: skip
    assert [(e.tool.command, e.tool.outcome) for e in reading.events if e.tool] == [
        ("make", "interrupted"),
        ("ls", "ok"),
    ]
    assert reading.events[-1].detail == "interrupted"


def test_a_command_in_the_background_ends_with_the_call_that_sees_its_end():
    poll = item(type="function_call", name="write_stdin", call_id="call_2", arguments='{"session_id": 7, "chars": ""}')
    reading = read(meta(), call("make"), output("Process running with session ID 7\nOutput:\n…"), poll,
                   output("Process exited with code 2\nOutput:\nmake: *** Error", "call_2"))  # fmt: skip
    first = reading.events[1].tool
    assert first is not None
    assert (first.command, first.outcome, first.exit_code, first.ended) == ("make", "failed", 2, True)


def test_the_commands_of_a_script_are_commands():
    script = 'const r = await tools.exec_command({"workdir": "/r", "cmd": "rm \\"a b\\""});\ntext(r.output);\n'
    asked = item(type="custom_tool_call", name="exec", call_id="call_1", input=script)
    ended = item(type="custom_tool_call_output", call_id="call_1",
                 output=[{"type": "input_text", "text": "Script failed\nWall time 1.4 seconds\nOutput:\n"},
                         {"type": "input_text", "text": "no such file"}])  # fmt: skip
    found = only_call(read(meta(), asked, ended))
    assert (found.command, found.family, found.changes) == ('rm "a b"', "shell", (("a b", "deleted"),))
    assert (found.outcome, found.output.strip()) == ("failed", "no such file")
    other = item(type="custom_tool_call", name="exec", call_id="call_1", input="text(1 + 1)")
    found = only_call(read(meta(), other))
    assert (found.command, found.family, found.input) == (None, "other", "text(1 + 1)")


PATCH = """*** Begin Patch
*** Add File: new.py
+x = 1
*** Update File: old.py
*** Move to: moved.py
@@
-a
+b
*** Delete File: gone.py
*** End Patch"""


def test_a_patch_tells_what_it_changes():
    asked = item(type="custom_tool_call", name="apply_patch", call_id="call_1", input=PATCH)
    found = only_call(
        read(
            meta(),
            asked,
            item(
                type="custom_tool_call_output",
                call_id="call_1",
                output="Success. Updated the following files:\nA new.py",
            ),
        )
    )
    assert (found.family, found.outcome) == ("edit", "ok")
    assert dict(found.changes) == {"new.py": "created", "old.py": "moved to moved.py", "gone.py": "deleted"}
    assert found.paths == ("new.py", "old.py", "gone.py")


def test_what_a_patch_really_changed_stands_above_what_was_asked():
    asked = item(type="custom_tool_call", name="apply_patch", call_id="call_1", input=PATCH)
    done = event(type="patch_apply_end", call_id="call_1", success=False, stderr="no match",
                 changes={"/repo/a.py": {"update": {"unified_diff": ""}}, "/repo/b.py": {"type": "add"}})  # fmt: skip
    found = only_call(read(meta(), done, asked))
    assert found.changes == (("/repo/a.py", "edited"), ("/repo/b.py", "created"))
    assert (found.outcome, found.decided_by, found.output) == ("failed", "patch_apply_end.success", "no match")


def test_a_command_tells_which_files_it_changes():
    assert only_call(read(meta(), call("rm old.txt"))).changes == (("old.txt", "deleted"),)


def test_a_plan_is_an_event_of_its_own_with_its_open_ends():
    plan = [{"step": "read", "status": "completed"}, {"step": "write", "status": "in_progress"}, {"step": "test"}, 3]
    asked = item(type="function_call", name="update_plan", call_id="call_1", arguments=json.dumps({"plan": plan}))
    reading = read(meta(), asked, output("Plan updated"))
    assert (
        reading.events[1].kind, reading.events[1].items,
    ) == ("plan", (("read", "completed"), ("write", "in_progress"), ("test", "pending")))  # fmt: skip
    assert (reading.used, reading.merged) == (2, 1)


def test_calls_of_servers_have_the_name_that_other_agents_give_them():
    asked = {"server": "github", "tool": "search", "arguments": {"q": "x"}}
    ended = event(type="mcp_tool_call_end", call_id="call_1", invocation=asked, result={"Err": "no network"})
    found = only_call(read(meta(), ended))
    assert (
        found.name, found.family, found.outcome, found.output,
    ) == ("mcp__github__search", "mcp", "failed", "no network")  # fmt: skip


# Sessions.


def test_a_sub_agent_is_a_session_with_a_parent_and_its_task_was_typed_by_nobody():
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}
    reading = read(meta(source=spawn), message("user", "Look for tests"))
    assert {PARENT} == {e.parent for e in reading.events}
    assert [(p.genuine, p.evidence, p.extra["not_typed"]) for p in prompts(reading)] == [
        (False, True, "task of a sub-agent")
    ]


def test_what_a_reviewing_sub_agent_is_asked_was_typed_by_nobody():
    reading = read(meta(source={"subagent": "review"}, forked_from_id=PARENT), message("user", "Review the changes"))
    assert [(p.genuine, p.parent) for p in prompts(reading)] == [(False, PARENT)]


@pytest.mark.parametrize("copied_at", ["2026-08-03T10:00:01Z", "2026-07-01T09:00:00Z"])
def test_the_history_that_a_fork_begins_with_is_left_to_the_session_that_has_it(copied_at: str):
    reading = read(
        meta(forked_from_id=PARENT),
        line("session_meta", {"id": PARENT, "cwd": "/repo"}, copied_at),
        event(copied_at, type="task_started", turn_id="t0", started_at=1_700_000_000),
        message("user", "Old question", at=copied_at),
        message("user", "New question", at="2026-08-03T10:05:00Z"),
    )
    assert reading.sessions == [SESSION]
    assert [p.text for p in prompts(reading)] == ["New question"]
    assert dict(reading.passed_by) == {"history of the session it was forked from": 3}


def test_a_forked_sub_agent_has_its_own_turn_at_once():
    reading = read(
        meta(forked_from_id=PARENT, parent_thread_id=PARENT),
        line("session_meta", {"id": PARENT, "cwd": "/repo"}, "2026-08-03T10:00:00.010Z"),
        message("user", "Old question", at="2026-08-03T10:00:00.020Z"),
        event("2026-08-03T10:00:00.030Z", type="task_started", turn_id="t1", started_at=1_785_751_200),
        message("user", "Task of the sub-agent", at="2026-08-03T10:00:00.040Z"),
    )
    assert [(p.text, p.genuine) for p in prompts(reading)] == [("Task of the sub-agent", False)]


def test_a_second_session_in_a_file_has_its_own_events():
    reading = read(
        meta(), message("user", "one"), line("session_meta", {"id": PARENT, "cwd": "/other"}), message("user", "two")
    )
    assert reading.sessions == [SESSION, PARENT]
    assert [(p.session, p.cwd) for p in prompts(reading)] == [(SESSION, "/repo"), (PARENT, "/other")]


def test_a_rollout_of_before_payloads_is_read():
    reading = read(
        {"id": SESSION, "timestamp": "2025-06-01T00:00:00Z", "instructions": None},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {"record_type": "state"},
    )
    assert told(reading) == [("session_start", ""), ("prompt", "Hello")]


def test_rollouts_are_found_below_the_home_folder_or_where_a_variable_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("CODEX_HOME", raising=False)
    for home in (tmp_path / ".codex", tmp_path / "elsewhere"):
        day = home / "sessions" / "2026" / "08" / "03"
        day.mkdir(parents=True)
        for hour in ("11", "10"):
            (day / f"rollout-2026-08-03T{hour}-00-00-{SESSION}.jsonl").touch()
    assert [path.name[19:21] for path in FORMAT.find(tmp_path)] == ["10", "11"]
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "elsewhere"))
    assert {"elsewhere"} == {path.relative_to(tmp_path).parts[0] for path in FORMAT.find(tmp_path)}


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path):
    with pytest.raises(OSError, match="gone"):
        FORMAT.read(tmp_path / "gone.jsonl")


# Whatever became of them.


@pytest.mark.parametrize("path", [OLD, NEW])
def test_a_file_that_grew_keeps_the_keys_it_had(path: Path):
    whole = lines_of(path)
    keys = [e.key for e in FORMAT.read(path).events]
    for end in range(0, len(whole), 7):
        part = [e.key for e in read_bytes(FORMAT, "\n".join(whole[:end]).encode(), path.name).events]
        assert keys[: len(part)] == part


@pytest.mark.parametrize("path", [OLD, NEW])
def test_a_file_cut_anywhere_adds_up(path: Path):
    content = path.read_bytes()
    for end in random.Random(5).sample(range(len(content)), 60):
        assert read_bytes(FORMAT, content[:end]).adds_up


@pytest.mark.parametrize("path", [OLD, NEW])
def test_lines_in_any_order_and_number_add_up(path: Path):
    lines = lines_of(path)
    for seed in range(8):
        mixed = random.Random(seed).sample(lines * 2, len(lines) * 2)
        reading = read_bytes(FORMAT, "\n".join(mixed).encode())
        assert (reading.adds_up, reading.lines) == (True, len(mixed))


def test_the_lines_of_a_call_tell_the_same_in_any_order():
    head, *rest = [line for line in lines_of(NEW) if '"2026-' in line]
    calls = {(e.key, e.tool) for e in FORMAT.read(NEW).events if e.tool and e.occurred_at_us and e.tool.name != "shell"}
    assert len(calls) == 5
    for seed in range(8):
        mixed = random.Random(seed).sample(rest * 2, len(rest) * 2)
        reading = read_bytes(FORMAT, "\n".join([head, *mixed]).encode())
        assert calls <= {(e.key, e.tool) for e in reading.events}


@settings(max_examples=80, deadline=None)
@given(mutated_lines(LINES))
def test_no_rubbish_raises_and_every_line_is_counted(content: bytes):
    reading = read_bytes(FORMAT, content)
    assert reading.adds_up
    assert content.count(b"\n") + (bool(content) and not content.endswith(b"\n")) == reading.lines


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=400))
def test_no_bytes_raise(content: bytes):
    assert read_bytes(FORMAT, content).adds_up
