"""What hooks say, agent by agent: payloads as the agents' own references describe them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everkept.capture.agents import claude_code
from everkept.capture.agents.hook_payload import events_of
from everkept.capture.agents.markers import OFFER_MARK
from everkept.domain.session import AgentEvent, natural_key
from everkept.hook.hook_script import KINDS

AT_NS = 1_767_225_600_000_000_000
AT_US = AT_NS // 1_000
CLAUDE_SESSION = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"


def record(agent: str, event: str, payload: Any, **more: Any) -> dict[str, Any]:
    return {"format": 1, "agent": agent, "event": event, "at_ns": AT_NS, "cwd": "/app", "payload": payload, **more}


def only(agent: str, event: str, payload: Any, **more: Any) -> AgentEvent:
    (found,) = events_of(record(agent, event, payload, **more))
    assert found.source == "hook"
    assert found.agent == agent
    return found


def claude(event: str, **fields: Any) -> AgentEvent:
    return only("claude-code", event, {"session_id": CLAUDE_SESSION, "cwd": "/app", "hook_event_name": event, **fields})


def call(event: AgentEvent) -> Any:
    assert event.kind == "tool"
    assert event.tool is not None
    return event.tool


# ---- Claude Code


def test_a_start_says_its_source_and_where_it_is() -> None:
    event = only(
        "claude-code",
        "SessionStart",
        {"session_id": "s", "source": "resume", "model": "claude-opus", "transcript_path": "/t.jsonl"},
        place={"branch": "main"},
    )
    assert (event.kind, event.detail, event.session, event.model) == ("session_start", "resume", "s", "claude-opus")
    assert (event.cwd, event.branch, event.occurred_at_us) == ("/app", "main", AT_US)
    assert event.extra["transcript_path"] == "/t.jsonl"


def test_a_prompt_has_the_key_of_its_text() -> None:
    event = claude("UserPromptSubmit", prompt="Fix  the login,\nplease")
    assert (event.kind, event.text, event.genuine, event.evidence) == ("prompt", "Fix  the login,\nplease", True, True)
    assert event.key == natural_key(
        "claude-code", None, session=CLAUDE_SESSION, role="prompt", text="Fix the login, please"
    )


def test_a_prompt_in_blocks_is_read() -> None:
    assert claude("UserPromptSubmit", prompt=[{"type": "text", "text": "one"}, {"type": "image"}]).text == "one"


def test_a_prompt_that_nobody_typed_is_not_genuine() -> None:
    event = claude("UserPromptSubmit", prompt="<task-notification>done</task-notification>")
    assert (event.genuine, event.extra["not_typed"]) == (False, "notice of a task")


def test_a_prompt_that_carries_our_own_words_is_no_evidence() -> None:
    assert not claude("UserPromptSubmit", prompt=f"see <!-- {OFFER_MARK} off_1 -->").evidence


def test_a_prompt_that_the_policy_kept_out_is_still_counted() -> None:
    first, second = (
        events_of(record("claude-code", "UserPromptSubmit", {"session_id": "s"}) | {"at_ns": AT_NS + offset})[0]
        for offset in (0, 1)
    )
    assert (first.kind, first.text, first.detail) == ("prompt", "", "not kept")
    assert first.key != second.key


def test_an_announced_call_is_not_ended() -> None:
    event = claude("PreToolUse", tool_name="Bash", tool_input={"command": "rm a.txt"}, tool_use_id="toolu_01ABC")
    assert (call(event).command, call(event).ended, call(event).outcome) == ("rm a.txt", False, "unknown")
    assert call(event).changes == (("a.txt", "deleted"),)


def test_a_call_has_what_was_asked_and_what_came_of_it() -> None:
    event = claude(
        "PostToolUse",
        tool_name="Bash",
        tool_input={"command": "make test", "description": "Run tests"},
        tool_use_id="toolu_01ABC",
        tool_response={"stdout": "12 passed", "stderr": "a warning", "interrupted": False, "isImage": False},
    )
    tool = call(event)
    assert (tool.name, tool.family, tool.command, tool.output) == ("Bash", "shell", "make test", "12 passed\na warning")
    assert (tool.ended, tool.outcome, tool.exit_code) == (True, "ok", None)


@pytest.mark.parametrize(
    ("fields", "outcome", "code", "rule"),
    [
        ({"error": "Exit code 2\nmake: *** no rule"}, "failed", 2, "first line says Exit code 2"),
        ({"error": "File does not exist."}, "failed", None, "PostToolUseFailure"),
        ({"error": "The user doesn't want to proceed with this tool use."}, "denied", None, "the result is a refusal"),
        ({"error": "[Request interrupted by user for tool use]"}, "interrupted", None, "the result is an interruption"),
        ({"error": "stopped", "is_interrupt": True}, "interrupted", None, "is_interrupt"),
        ({}, "failed", None, "PostToolUseFailure"),
    ],
)
def test_a_failed_call_says_how(fields: dict[str, Any], outcome: str, code: int | None, rule: str) -> None:
    event = claude(
        "PostToolUseFailure", tool_name="Bash", tool_input={"command": "make"}, tool_use_id="toolu_01ABC", **fields
    )
    tool = call(event)
    assert (tool.outcome, tool.exit_code, tool.decided_by) == (outcome, code, rule)
    assert tool.output == fields.get("error", "")
    assert tool.ended


def test_an_edit_says_which_file_and_how_it_changed() -> None:
    response = {"type": "create", "filePath": "/app/a.py", "content": "x = 1\n", "originalFile": None}
    event = claude(
        "PostToolUse", tool_name="Write", tool_input={"file_path": "/app/a.py", "content": "x = 1\n"},
        tool_use_id="toolu_02", tool_response=response,
    )  # fmt: skip
    tool = call(event)
    assert (tool.family, tool.paths, tool.changes) == ("edit", ("/app/a.py",), (("/app/a.py", "created"),))
    assert "x = 1" in tool.input
    assert "x = 1" not in tool.output


def test_a_todo_list_is_a_plan() -> None:
    todos = [{"content": "Write it", "status": "in_progress", "activeForm": "Writing"}]
    ended = {"tool_name": "TodoWrite", "tool_input": {"todos": todos}, "tool_use_id": "toolu_03"}
    event = claude("PostToolUse", **ended, tool_response={"oldTodos": [], "newTodos": todos})
    assert (event.kind, event.items) == ("plan", (("Write it", "in_progress"),))
    assert claude("PreToolUse", **ended).kind == "tool"


def test_a_call_has_the_key_that_its_transcript_gives_it(tmp_path: Path) -> None:
    """A hook announces what the transcript tells later: one event, by the same key and in the same session."""
    lines = [
        {"type": "assistant", "uuid": "u1", "sessionId": CLAUDE_SESSION, "message": {"role": "assistant", "content": [
            {"type": "tool_use", "id": "toolu_01ABCdefGHIjkl", "name": "Bash", "input": {"command": "ls"}}]}},
        {"type": "user", "uuid": "u2", "sessionId": CLAUDE_SESSION, "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_01ABCdefGHIjkl", "content": "a"}]}},
    ]  # fmt: skip
    path = tmp_path / f"{CLAUDE_SESSION}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (transcript,) = claude_code.read(path).events
    hook = claude("PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="toolu_01ABCdefGHIjkl",
                  tool_response={"stdout": "a", "stderr": ""})  # fmt: skip
    assert (hook.key, hook.session, hook.tool) == (transcript.key, transcript.session, transcript.tool)


def test_a_call_of_a_sub_agent_is_in_a_session_of_its_own() -> None:
    event = claude("PostToolUse", tool_name="Read", tool_input={"file_path": "a"}, tool_use_id="toolu_04",
                   tool_response={}, agent_id="a1b2", agent_type="Explore")  # fmt: skip
    assert (event.session, event.parent) == ("agent-a1b2", CLAUDE_SESSION)


def test_the_ends_of_sub_agents_are_in_the_session_that_started_them() -> None:
    began = claude("SubagentStart", agent_id="a1b2", agent_type="Explore")
    ended = claude("SubagentStop", agent_id="a1b2", agent_type="Explore", last_assistant_message="Found it.")
    assert (began.kind, began.detail, began.session) == ("subagent_start", "Explore", CLAUDE_SESSION)
    assert (ended.kind, ended.text, ended.extra["subagent"]) == ("subagent_end", "Found it.", "agent-a1b2")


def test_turns_compactions_notifications_and_ends() -> None:
    turn = claude("Stop", last_assistant_message="All done.", stop_hook_active=False)
    assert (turn.kind, turn.text) == ("turn_end", "All done.")
    before = claude("PreCompact", trigger="auto", custom_instructions="keep names")
    assert (before.kind, before.detail, before.evidence, before.extra["stage"]) == (
        "compaction",
        "auto",
        False,
        "before",
    )
    after = claude("PostCompact", trigger="auto", compact_summary="We did this.")
    assert (after.kind, after.text, after.evidence, after.extra["stage"]) == (
        "compaction",
        "We did this.",
        False,
        "after",
    )
    told = claude("Notification", message="Claude needs your permission", notification_type="permission_prompt")
    assert (told.kind, told.text, told.detail) == ("notification", "Claude needs your permission", "permission_prompt")
    end = claude("SessionEnd", reason="prompt_input_exit")
    assert (end.kind, end.detail) == ("session_end", "prompt_input_exit")


def test_what_our_own_tools_answer_is_no_evidence() -> None:
    answer = [{"type": "text", "text": "Ana likes tea."}]
    event = claude(
        "PostToolUse",
        tool_name="mcp__everkept__recall",
        tool_input={"query": "x"},
        tool_use_id="t5",
        tool_response=answer,
    )
    assert (call(event).family, call(event).output, event.evidence) == ("mcp", "Ana likes tea.", False)
    assert event.extra["ours"] is True


# ---- Codex


def codex(event: str, **fields: Any) -> AgentEvent:
    base = {"session_id": "01999a2b-3c4d-7e5f-8091-a2b3c4d5e6f7", "turn_id": "7", "hook_event_name": event}
    return only("codex", event, {**base, **fields})


@pytest.mark.parametrize(
    ("response", "outcome", "code", "output"),
    [
        ("ok\n", "unknown", None, "ok\n"),
        ('{"output": "no\\n", "metadata": {"exit_code": 1}}', "failed", 1, "no\n"),
        ({"output": "fine", "exit_code": 0}, "ok", 0, "fine"),
        ("Exit code: 3\nWall time: 1 s\nOutput:\nbad", "failed", 3, None),
    ],
)
def test_codex_tells_exit_codes(response: Any, outcome: str, code: int | None, output: str | None) -> None:
    tool = call(
        codex(
            "PostToolUse",
            tool_name="Bash",
            tool_input={"command": "make"},
            tool_use_id="call_1",
            tool_response=response,
        )
    )
    assert (tool.family, tool.command, tool.outcome, tool.exit_code) == ("shell", "make", outcome, code)
    assert output is None or tool.output == output


def test_codex_patches_say_their_files() -> None:
    patch = "*** Begin Patch\n*** Add File: a.py\n+x\n*** Delete File: b.py\n*** End Patch"
    for given in ({"command": patch}, {"input": patch}, patch):
        tool = call(codex("PostToolUse", tool_name="apply_patch", tool_input=given, tool_use_id="c2",
                          tool_response="Success. Updated the following files:\nA a.py"))  # fmt: skip
        assert tool.changes == (("a.py", "created"), ("b.py", "deleted"))
        assert tool.outcome == "ok"


def test_a_turn_has_one_end_however_often_its_hook_fires() -> None:
    first, again = codex("Stop"), codex("Stop", last_assistant_message="Done.")
    assert first.key == again.key
    assert codex("Stop", turn_id="8").key != first.key
    assert codex("Interrupt").detail == "interrupted"


# ---- Cursor


def cursor(event: str, **fields: Any) -> AgentEvent:
    base = {"conversation_id": "c-1", "generation_id": "g-1", "cursor_version": "2.1", "hook_event_name": event}
    return only("cursor", event, {**base, "workspace_roots": ["/app"], **fields})


def test_cursors_events_are_read() -> None:
    prompt = cursor("beforeSubmitPrompt", prompt="Fix it", attachments=[])
    assert (prompt.kind, prompt.text, prompt.session) == ("prompt", "Fix it", "c-1")
    start = cursor("sessionStart", model="gpt-5")
    assert (start.kind, start.model) == ("session_start", "gpt-5")
    stop = cursor("stop", status="aborted", loop_count=0)
    assert (stop.kind, stop.detail) == ("turn_end", "aborted")
    said = cursor("afterAgentResponse", text="I fixed it.")
    assert (said.kind, said.text) == ("said", "I fixed it.")


@pytest.mark.parametrize(
    ("event", "fields", "outcome", "code"),
    [
        ("postToolUse", {"tool_output": '{"output": "bad", "exitCode": 1}'}, "failed", 1),
        ("postToolUse", {"tool_output": '{"output": "good", "exitCode": 0}'}, "ok", 0),
        ("postToolUse", {"tool_output": "printed"}, "unknown", None),
        ("postToolUseFailure", {"error_message": "timed out", "failure_type": "timeout"}, "failed", None),
        ("postToolUseFailure", {"error_message": "no", "failure_type": "permission_denied"}, "denied", None),
        ("postToolUseFailure", {"error_message": "no", "is_interrupt": True}, "interrupted", None),
    ],
)
def test_cursor_tells_little_of_outcomes(event: str, fields: dict[str, Any], outcome: str, code: int | None) -> None:
    tool = call(cursor(event, tool_name="Shell", tool_input={"command": "make"}, tool_use_id="tool_1", **fields))
    assert (tool.family, tool.command, tool.outcome, tool.exit_code) == ("shell", "make", outcome, code)


def test_cursors_own_events_for_commands_and_edits_are_calls() -> None:
    shell = call(cursor("afterShellExecution", command="ls", output="a\nb", duration=5))
    assert (shell.family, shell.command, shell.output) == ("shell", "ls", "a\nb")
    edit = call(cursor("afterFileEdit", file_path="/app/a.py", edits=[{"old_string": "a", "new_string": "b"}]))
    assert (edit.family, edit.changes, edit.outcome) == ("edit", (("/app/a.py", "edited"),), "ok")
    mcp = call(cursor("afterMCPExecution", tool_name="search", tool_input='{"query": "x"}', result_json='{"n": 1}'))
    assert (mcp.name, mcp.ended, '"n": 1' in mcp.output) == ("search", True, True)


# ---- Gemini CLI


def gemini(event: str, **fields: Any) -> AgentEvent:
    return only(
        "gemini", event, {"session_id": "g", "timestamp": "2026-01-01T00:00:01Z", "hook_event_name": event, **fields}
    )


def test_gemini_tells_prompts_turns_and_compressions() -> None:
    prompt = gemini("BeforeAgent", prompt="Fix it")
    assert (prompt.kind, prompt.text, prompt.occurred_at_us) == ("prompt", "Fix it", AT_US + 1_000_000)
    turn = gemini("AfterAgent", prompt="Fix it", prompt_response="Fixed.")
    assert (turn.kind, turn.text) == ("turn_end", "Fixed.")
    assert gemini("PreCompress", trigger="manual").kind == "compaction"


@pytest.mark.parametrize(
    ("response", "outcome", "code"),
    [
        ({"llmContent": "Output: no\nExit Code: 1", "returnDisplay": "no"}, "failed", 1),
        ({"llmContent": "Output: yes\nProcess Group PGID: 9", "returnDisplay": "yes"}, "ok", None),
        ({"llmContent": "", "returnDisplay": "", "error": {"message": "not found"}}, "failed", None),
    ],
)
def test_gemini_tells_exit_codes_in_words(response: dict[str, Any], outcome: str, code: int | None) -> None:
    tool = call(
        gemini("AfterTool", tool_name="run_shell_command", tool_input={"command": "make"}, tool_response=response)
    )
    assert (tool.command, tool.outcome, tool.exit_code) == ("make", outcome, code)
    assert tool.output


def test_the_same_command_twice_without_an_id_is_two_calls() -> None:
    said = {"session_id": "g", "tool_name": "run_shell_command", "tool_input": {"command": "make"}, "tool_response": {}}
    keys = {events_of(record("gemini", "AfterTool", said) | {"at_ns": AT_NS + offset})[0].key for offset in (0, 1)}
    assert len(keys) == 2


# ---- OpenCode


def opencode(event: str, **fields: Any) -> AgentEvent:
    return only("opencode", event, {"sessionID": "ses_1", **fields})


def test_opencodes_events_are_read() -> None:
    assert opencode("session.created", info={"title": "x"}).kind == "session_start"
    assert opencode("chat.message", parts=[{"type": "text", "text": "Fix it"}]).text == "Fix it"
    assert opencode("session.idle").kind == "turn_end"
    assert opencode("session.compacted", summary="We did.").text == "We did."
    assert opencode("session.deleted").kind == "session_end"


@pytest.mark.parametrize(("code", "outcome"), [(0, "ok"), (1, "failed")])
def test_opencode_tells_exit_codes_in_metadata(code: int, outcome: str) -> None:
    event = opencode("tool.execute.after", tool="bash", callID="call_1", args={"command": "make"}, output="text",
                     title="make", metadata={"exit": code, "output": "text"})  # fmt: skip
    assert (call(event).command, call(event).outcome, call(event).exit_code) == ("make", outcome, code)
    assert call(event).output == "text"


# ---- any agent


@pytest.mark.parametrize(
    "payload",
    [
        {"session_id": "s"}, {"sessionId": "s"}, {"sessionID": "s"}, {"session": "s"}, {"conversationId": "s"},
        {"conversation_id": "s"}, {"info": {"id": "s"}}, {"properties": {"sessionID": "s"}},
        {"properties": {"info": {"id": "s"}}}, {"event": {"session_id": "s"}}, {"payload": {"sessionId": "s"}},
        {"session_id": "", "sessionId": "s"},
    ],
)  # fmt: skip
def test_a_session_is_found_wherever_its_id_stands(payload: dict[str, Any]) -> None:
    assert only("new-agent", "SessionStart", payload).session == "s"


def test_without_a_session_a_launch_stands_for_it() -> None:
    assert only("devin", "Stop", {}, launch="lau_3").session == "launch-lau_3"
    assert only("devin", "Stop", {}).session == ""


@pytest.mark.parametrize("agent", ["claude-code", "codex", "cursor", "gemini", "opencode", "new-agent"])
@pytest.mark.parametrize(
    "names",
    [
        ("tool", "args", "output"),
        ("tool_name", "tool_input", "result"),
        ("name", "toolInput", "tool_output"),
        ("tool", "input", "tool_response"),
    ],
)
def test_a_call_is_found_whatever_its_fields_are_called(agent: str, names: tuple[str, str, str]) -> None:
    tool, asked, came = names
    event = only(agent, "PostToolUse", {"session_id": "s", tool: "bash", asked: {"command": "ls"}, came: "a.txt"})
    assert (call(event).name, call(event).command, call(event).output) == ("bash", "ls", "a.txt")


@pytest.mark.parametrize("agent", ["claude-code", "codex", "cursor", "gemini", "opencode", "new-agent"])
def test_rubbish_in_any_field_raises_nothing(agent: str) -> None:
    for event in (*KINDS, "x"):
        for payload in RUBBISH:
            found = only(agent, event, payload)
            assert found.key, (event, payload)
            assert isinstance(found.text, str), (event, payload)


RUBBISH: tuple[Any, ...] = (
    None, [], [1], "text", 7, {},
    {"session_id": 7, "prompt": {"a": [None]}, "tool_name": ["x"], "tool_input": [1]},
    {"tool_name": "Bash", "tool_input": {"command": 5, "todos": 3}, "tool_response": [[], {"content": 9}]},
    {"tool_name": "TodoWrite", "tool_input": {"todos": [{"content": None}, 3]}, "error": {"a": 1}, "metadata": 3},
    {"tool_name": "apply_patch", "tool_input": "\x00", "tool_response": {"error": True}, "timestamp": "never"},
)  # fmt: skip


def test_an_event_that_nobody_knows_is_kept_with_all_it_says() -> None:
    event = only("new-agent", "MoodChanged", {"session_id": "s", "mood": "good"})
    assert (event.kind, event.detail, json.loads(event.text)["mood"]) == ("other", "MoodChanged", "good")


def test_what_was_no_json_is_kept_with_its_session() -> None:
    torn = record("codex", "", None) | {"raw": '{"session_id": "s-9", "prompt": "hel'}
    del torn["payload"]
    (event,) = events_of(torn)
    assert (event.kind, event.session, event.text) == ("other", "s-9", torn["raw"])


def test_a_time_far_ahead_is_not_believed() -> None:
    def at(told: str) -> int | None:
        return only("new-agent", "Stop", {"session_id": "s", "occurred_at": told}).occurred_at_us

    assert at("2026-01-01T00:04:00Z") == AT_US + 240_000_000
    assert at("2026-01-01T00:06:00Z") == AT_US
    assert at("2025-12-31T23:00:00Z") == AT_US - 3_600_000_000


def test_what_was_shown_is_no_event_of_the_session() -> None:
    assert events_of({"format": 1, "agent": "codex", "event": "shown", "at_ns": AT_NS, "offer": "off_1"}) == []
