"""Cursor's transcripts, its older text files and the database of its editor."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everkept.capture.agents import cursor
from everkept.capture.agents.cursor_text import read_text_transcript
from everkept.capture.agents.cursor_tools import project_folder
from everkept.capture.agents.reading import Reading
from everkept.domain.session import AgentEvent, ToolCall

DATA = Path(__file__).parents[3] / "data" / "transcripts"
SESSION = "c0ffee00-0000-4000-8000-000000000001"


def message(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "message": {"content": list(blocks)}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(name: str, given: Any, **block: Any) -> dict[str, Any]:
    return message("assistant", {"type": "tool_use", "name": name, "input": given, **block})


def result(output: str, **block: Any) -> dict[str, Any]:
    return message("user", {"type": "tool_result", "content": [text(output)], **block})


def read(folder: Path, *lines: Any) -> Reading:
    path = folder / f"{SESSION}.jsonl"
    path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines))
    reading = cursor.read(path)
    assert reading.adds_up
    assert reading.lines == len(lines)
    return reading


def only(reading: Reading, kind: str) -> AgentEvent:
    [event] = [event for event in reading.events if event.kind == kind]
    return event


def tools_of(reading: Reading) -> list[ToolCall]:
    return [event.tool for event in reading.events if event.tool is not None]


# -- transcripts


def test_the_genuine_transcript_is_told_whole():
    reading = cursor.read(DATA / "agent-sessions-fixtures" / "cursor_large.jsonl")
    assert reading.adds_up
    assert [event.text for event in reading.events if event.kind == "prompt"] == [
        "What files are here?",
        "Read file1.txt.",
        "Thanks.",
    ]
    assert [(tool.name, tool.command, tool.paths, tool.output) for tool in tools_of(reading)] == [
        ("Bash", "ls -la", (), "file1.txt\nfile2.txt"),
        ("Read", None, ("file1.txt",), "hello world"),
    ]
    assert (reading.used, reading.merged) == (8, 2)


def test_only_the_query_was_typed_and_its_turn_has_the_time(tmp_path):
    asked = (
        "<timestamp>Friday, Jul 31, 2026, 5:10 PM (UTC-5)</timestamp>\n<attached_files>a.py</attached_files>\n"
        "<user_query>\nfix the build\n</user_query>"
    )
    reading = read(tmp_path, message("user", text(asked)), message("assistant", text("Looking.\n\n[REDACTED]")))
    prompt, said = reading.events
    assert (prompt.text, prompt.genuine, prompt.session) == ("fix the build", True, SESSION)
    assert (said.text, said.kind) == ("Looking.", "said")
    assert {prompt.occurred_at_us, said.occurred_at_us} == {1_785_535_800_000_000}


def test_context_without_a_query_was_not_typed(tmp_path):
    prompt = only(read(tmp_path, message("user", text("<user_info>\nOS: linux\n</user_info>"))), "prompt")
    assert (prompt.genuine, prompt.evidence, prompt.extra["not_typed"]) == (False, False, "context")


def test_what_is_redacted_or_thought_is_passed_by(tmp_path):
    thought = {"type": "thinking", "thinking": "hm"}
    reading = read(tmp_path, message("assistant", text("[REDACTED]")), message("assistant", thought))
    assert (reading.events, dict(reading.passed_by)) == ([], {"thinking": 2})


def test_results_without_a_call_of_their_id_belong_to_the_oldest_open_call(tmp_path):
    calls = [call("Shell", {"command": "a"}), call("Shell", {"command": "b"})]
    reading = read(tmp_path, *calls, result("of a", tool_use_id="t1"), result("of b", tool_use_id="t2"))
    assert [(tool.command, tool.output) for tool in tools_of(reading)] == [("a", "of a"), ("b", "of b")]


def test_results_with_the_id_of_a_call_belong_to_it(tmp_path):
    calls = [call("Shell", {"command": "a"}, id="t1"), call("Shell", {"command": "b"}, id="t2")]
    reading = read(tmp_path, *calls, result("of b", tool_use_id="t2"), result("of a", tool_use_id="t1"))
    assert [(tool.command, tool.output) for tool in tools_of(reading)] == [("a", "of a"), ("b", "of b")]


@pytest.mark.parametrize(
    ("output", "block", "outcome", "code"),
    [
        ("whatever", {}, "unknown", None),
        ("whatever", {"is_error": True}, "failed", None),
        ("Exit code: 0\n\nCommand output:\nok", {}, "ok", 0),
        ("Exit code: 2\n\nCommand output:\nno", {}, "failed", 2),
        ("Exit code: none", {}, "unknown", None),
    ],
)
def test_an_outcome_that_cursor_does_not_tell_is_unknown(tmp_path, output, block, outcome, code):
    [tool] = tools_of(read(tmp_path, call("Shell", {"command": "make"}), result(output, **block)))
    assert (tool.outcome, tool.exit_code) == (outcome, code)


@pytest.mark.parametrize(
    ("name", "given", "family", "changes"),
    [
        ("Shell", {"command": "rm a"}, "shell", (("a", "deleted"),)),
        ("run_terminal_command_v2", {"command": "touch a"}, "shell", (("a", "created"),)),
        ("StrReplace", {"path": "/a", "old_string": "x"}, "edit", (("/a", "edited"),)),
        ("Write", {"path": "/a", "contents": "x"}, "edit", (("/a", "created"),)),
        ("Delete", {"path": "/a"}, "edit", (("/a", "deleted"),)),
        ("edit_file_v2", {"relativeWorkspacePath": "a.py"}, "edit", (("a.py", "edited"),)),
        ("ApplyPatch", "*** Begin Patch\n*** Delete File: a\n*** End Patch", "edit", (("a", "deleted"),)),
        ("Read", {"path": "/a"}, "read", ()),
        ("CallMcpTool", {"server": "x"}, "mcp", ()),
        ("AskQuestion", {}, "question", ()),
        (None, None, "other", ()),
    ],
)
def test_a_call_has_a_family_and_says_which_files_it_changes(tmp_path, name, given, family, changes):
    [tool] = tools_of(read(tmp_path, call(name, given)))
    assert (tool.family, tool.changes) == (family, changes)


def test_a_merged_todo_list_is_told_whole(tmp_path):
    todos = [{"id": "1", "content": "parse", "status": "pending"}, {"id": "2", "content": "test", "status": "pending"}]
    changed = {"merge": True, "todos": [{"id": "1", "status": "completed"}]}
    reading = read(tmp_path, call("TodoWrite", {"merge": False, "todos": todos}), call("TodoWrite", changed))
    assert reading.events[-1].items == (("parse", "completed"), ("test", "pending"))


def test_an_aborted_turn_interrupts_its_calls(tmp_path):
    ended = {"type": "turn_ended", "status": "aborted", "error": "User aborted/interrupted manually."}
    reading = read(tmp_path, call("Shell", {"command": "sleep 99"}), ended, {"type": "turn_ended", "status": "success"})
    assert [event.detail for event in reading.events if event.kind == "turn_end"] == ["interrupted", "success"]
    assert tools_of(reading)[0].outcome == "interrupted"


@pytest.mark.parametrize("folder", ["home/me/my_app", "home/me/my/app", "srv/api.v2", "w/.config/x-y-z"])
def test_the_folder_of_a_session_is_found_by_its_dashed_name(tmp_path, folder):
    for other in (folder, "home/me/my", "home/me/other", "srv/api"):
        (tmp_path / other).mkdir(parents=True, exist_ok=True)
    dashed = re.sub(r"[^A-Za-z0-9]+", "-", folder)
    path = Path(f"/x/.cursor/projects/{dashed}/agent-transcripts/{SESSION}/{SESSION}.jsonl")
    assert project_folder(path, tmp_path) == str(tmp_path / folder)
    assert project_folder(Path(f"/x/projects/{dashed}-gone/agent-transcripts/a.txt"), tmp_path) is None
    assert project_folder(Path("/x/elsewhere/a.jsonl"), tmp_path) is None


def test_the_same_words_said_twice_are_two_events(tmp_path):
    reading = read(tmp_path, message("user", text("go on")), message("user", text("go on")))
    assert len({event.key for event in reading.events}) == 2


def test_a_sub_agent_names_its_parent_by_its_place(tmp_path):
    path = tmp_path / SESSION / "subagents" / "child.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(message("assistant", text("Found it."))) + "\n")
    [event] = cursor.read(path).events
    assert (event.session, event.parent) == ("child", SESSION)


@pytest.mark.parametrize("odd", [None, 7, True, "text", [], {}, [None, 7, {"type": 7}], {"content": 7}])
@pytest.mark.parametrize("field", ["role", "message", "type", "timestamp"])
def test_a_field_of_another_type_is_no_error(tmp_path, field, odd):
    read(tmp_path, {**message("assistant", text("x")), field: odd})


@pytest.mark.parametrize(
    ("written", "us"),
    [
        ("Friday, Jul 31, 2026, 5:10 PM (UTC-5)", 1_785_535_800_000_000),
        ("Jul 31, 2026, 12:00 AM (UTC)", 1_785_456_000_000_000),
        ("Monday, February 2, 2026, 9:05 AM (UTC+1)", 1_770_019_500_000_000),
        ("Feb 31, 2026, 1:00 PM", None),
        ("Jan 1, 0001, 1:00 AM (UTC+14)", None),
        ("Jul 31, 2026, 5:10 PM (UTC+99)", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_a_written_time_is_read(written, us):
    assert cursor.written_time_us(written) == us


# -- text files

PLAIN = """user:
<user_query>
fix the build
</user_query>

assistant:
[Thinking] The build is broken.
Still thinking.

I will look at it.
[Tool call] Shell
  command: make 2> err.log
  description: Build

[Tool result] Shell
make: *** no rule

assistant:
Fixed.
"""


def plain(folder: Path, content: str) -> Reading:
    path = folder / f"{SESSION}.txt"
    path.write_text(content)
    reading = cursor.read(path)
    assert reading.adds_up
    assert reading.lines == len(content.splitlines())
    return reading


def test_a_text_file_is_told_by_its_marks(tmp_path):
    reading = plain(tmp_path, PLAIN)
    assert [(event.kind, event.text) for event in reading.events] == [
        ("prompt", "fix the build"),
        ("said", "I will look at it."),
        ("tool", ""),
        ("said", "Fixed."),
    ]
    [tool] = tools_of(reading)
    assert (tool.command, tool.input, tool.output) == ("make 2> err.log", "Build", "make: *** no rule")
    assert tool.changes == (("err.log", "created"),)
    assert reading.passed_by["thinking"] == 2


@pytest.mark.parametrize("chars", range(5, len(PLAIN), 7))
def test_a_text_file_cut_anywhere_is_accounted_for(tmp_path, chars):
    path = tmp_path / f"{SESSION}.txt"
    path.write_text(PLAIN[:chars])
    assert read_text_transcript(path).adds_up


# -- the editor's database


def store(folder: Path, *rows: tuple[str, Any], name: str = "state.vscdb") -> Path:
    path = folder / "Cursor" / "User" / "globalStorage" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        database.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        database.execute("INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', 'a-secret')")
        database.executemany(
            "INSERT INTO cursorDiskKV VALUES (?, ?)",
            [(key, value if isinstance(value, str | bytes | None) else json.dumps(value)) for key, value in rows],
        )
        database.commit()
    return path


def session_rows() -> list[tuple[str, Any]]:
    bubbles = {
        "zz-first": {"type": 1, "text": "list the folder", "createdAt": "2026-07-28T10:06:10.000Z"},
        "thought": {"type": 2, "text": "", "thinking": {"text": "hm"}},
        "aa-said": {"type": 2, "text": "Listing.", "modelInfo": {"modelName": "composer-2.5"}},
        "tool": {
            "type": 2,
            "text": "",
            "toolFormerData": {
                "toolCallId": "tool_33e5b6ee-0000",
                "name": "run_terminal_command_v2",
                "status": "completed",
                "rawArgs": "",
                "params": json.dumps({"command": "ls > out.txt", "cwd": ""}),
                "result": json.dumps({"output": "main.go", "exitCode": 0, "rejected": False}),
            },
        },
        "edit": {"type": 2, "toolFormerData": {"name": "edit_file_v2", "status": "error", "params": "{"}},
        "waiting": {"type": 2, "toolFormerData": {"name": "read_file_v2", "status": "loading", "toolCallId": "t9"}},
    }
    about = {
        "name": "Listing",
        "createdAt": 1_785_232_800_000,
        "createdOnBranch": "main",
        "workspaceIdentifier": {"uri": {"fsPath": "/work/app"}},
        "fullConversationHeadersOnly": [{"bubbleId": name} for name in bubbles],
    }
    rows: list[tuple[str, Any]] = [(f"composerData:{SESSION}", about)]
    return rows + [(f"bubbleId:{SESSION}:{name}", bubble) for name, bubble in bubbles.items()]


def test_the_editors_database_is_told_in_the_order_of_its_headers(tmp_path):
    path = store(tmp_path, *session_rows())
    reading = cursor.read(path)
    assert cursor.recognise(path)
    assert reading.adds_up
    assert [event.kind for event in reading.events] == ["prompt", "said", "tool", "tool", "tool"]
    assert {(event.session, event.cwd, event.branch) for event in reading.events} == {(SESSION, "/work/app", "main")}
    assert reading.events[1].model == "composer-2.5"
    shell, edit, waiting = tools_of(reading)
    assert (shell.command, shell.output, shell.outcome, shell.exit_code) == ("ls > out.txt", "main.go", "ok", 0)
    assert (edit.outcome, edit.decided_by) == ("failed", "status error")
    assert not waiting.ended
    assert reading.titles == {SESSION: "Listing"}
    assert dict(reading.passed_by) == {"composerData": 1, "thinking": 1}


def test_every_row_of_the_database_is_accounted_for_and_no_credential_is_read(tmp_path):
    others = [
        ("checkpointId:1", "x"),
        ("checkpointId:2", b"\xff"),
        ("bubbleId:lonely:b", None),
        ("bubbleId:lonely:c", "null"),
        ("bubbleId:lonely:d", b"\xff{"),
        ("bubbleId:lonely:e", "[" * 100_000),
        ("composerData:empty", "{}"),
        ("bubbleId:odd", {"type": 1, "text": 7}),
        ("odd", "x"),
    ]
    reading = cursor.read(store(tmp_path, *session_rows(), *others))
    assert reading.adds_up
    assert reading.lines == 7 + len(others)
    assert len(reading.unreadable) == 2
    assert reading.passed_by["checkpointId"] == 2
    assert reading.passed_by["empty row"] == 2
    assert "a-secret" not in repr(reading)


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_spoilt_rows_are_never_an_error(tmp_path_factory, data):
    rows = []
    for key, value in session_rows():
        field = data.draw(st.sampled_from(sorted(value)))
        inner = value[field] if isinstance(value[field], dict) else {}
        odd = data.draw(ODD | st.fixed_dictionaries({name: ODD | st.just(inner[name]) for name in inner}))
        rows.append((key, {**value, field: odd}))
    reading = cursor.read(store(tmp_path_factory.mktemp("store"), *rows))
    assert reading.adds_up
    assert reading.lines == len(rows)


def test_messages_inside_the_row_of_a_session_are_told(tmp_path):
    inline = {"createdAt": 1_745_000_000_000, "conversation": [{"bubbleId": "i1", "type": 1, "text": "hi"}]}
    reading = cursor.read(store(tmp_path, ("composerData:old", inline)))
    assert [(event.session, event.text) for event in reading.events] == [("old", "hi")]
    assert reading.adds_up


def test_a_session_that_is_a_transcript_too_is_told_once(tmp_path):
    folder = tmp_path / ".cursor" / "projects" / "work-app" / "agent-transcripts" / SESSION
    folder.mkdir(parents=True)
    transcript = folder / f"{SESSION}.jsonl"
    path = store(tmp_path, *session_rows())
    transcript.write_text('{"type":"turn_ended","status":"success"}\n')
    assert len(cursor.read(path).events) == 5
    transcript.write_text(json.dumps(message("user", text("list the folder"))) + "\n")
    reading = cursor.read(path)
    assert reading.events == []
    assert reading.passed_by["kept as a transcript too"] == 6
    assert reading.adds_up


def test_a_damaged_database_is_read_as_far_as_it_goes(tmp_path):
    rows = [(f"bubbleId:{SESSION}:{n:05}", {"type": 2, "text": "words " * 50}) for n in range(300)]
    path = store(tmp_path, *rows)
    content = bytearray(path.read_bytes())
    for at in range(len(content) // 2, len(content), 4096):
        content[at : at + 512] = b"\xff" * len(content[at : at + 512])
    path.write_bytes(content)
    reading = cursor.read(path)
    assert reading.adds_up
    assert any("could not be read on" in note for note in reading.notes)


def test_cursors_files_are_found(tmp_path, monkeypatch):
    monkeypatch.delenv("APPDATA", raising=False)
    folder = tmp_path / ".cursor" / "projects" / "work-app" / "agent-transcripts"
    for name in (f"{SESSION}/{SESSION}.jsonl", "old.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}\n")
    database = store(tmp_path / ".config")
    assert {path.name for path in cursor.find(tmp_path)} == {f"{SESSION}.jsonl", "old.txt", database.name}
    monkeypatch.setenv("APPDATA", str(tmp_path / "roaming"))
    other = store(tmp_path / "roaming")
    assert {database, other} <= set(cursor.find(tmp_path))


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\x00", b"\x00" * 100, b"hello\n", b'{"role": 7}\n'])
def test_what_is_not_cursors_is_not_recognised(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert not cursor.recognise(path)
    assert not cursor.recognise(tmp_path)
