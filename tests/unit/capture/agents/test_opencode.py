"""OpenCode's sessions, in folders of files and in a database: the same events, and what became of them."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.capture.agents.mutated import FIXTURES, mutated_line, told

from everkept.capture.agents.opencode import FORMAT
from everkept.capture.agents.reading import Reading
from everkept.domain.session import ToolCall

DATA = FIXTURES / "opencode"
FILES = sorted(DATA.rglob("*.json"))
LARGE, SMALL = sorted((DATA / "storage" / "session" / "proj_test").iterdir())
SCHEMA = """
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL,
  directory text NOT NULL, title text NOT NULL, version text NOT NULL, time_created integer, time_updated integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer, time_updated integer,
  data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer,
  time_updated integer, data text NOT NULL);
"""
"""The columns that matter of OpenCode 1.2."""
USER = {"id": "msg_1", "role": "user", "time": {"created": 1_730_000_001_000}}
ASSISTANT = {"id": "msg_2", "role": "assistant", "time": {"created": 1_730_000_002_000}}


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA / "storage", tmp_path / "opencode" / "storage"))


def put(storage: Path, session: dict[str, Any], messages: list[tuple[dict[str, Any], list[Any]]]) -> Path:
    """A session as OpenCode lays it down."""
    path = storage / "session" / "project" / f"{session['id']}.json"
    files = {path: session}
    for message, parts in messages:
        files[storage / "message" / session["id"] / f"{message['id']}.json"] = message
        for number, part in enumerate(parts):
            files[storage / "part" / message["id"] / f"prt_{number}.json"] = {"id": f"prt_{number}", **part}
    for file, record in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(record))
    return path


def read(tmp_path: Path, *messages: tuple[dict[str, Any], list[Any]], **session: Any) -> Reading:
    head = {"id": "ses_1", "directory": "/repo", "title": "A title", "time": {"created": 1_730_000_000_000}}
    reading = FORMAT.read(put(tmp_path / "storage", head | session, list(messages)))
    assert reading.adds_up
    return reading


def call(tmp_path: Path, tool: str, **state: Any) -> ToolCall:
    part = {"type": "tool", "callID": "call_1", "tool": tool, "state": {"status": "completed", **state}}
    (found,) = [e.tool for e in read(tmp_path, (ASSISTANT, [part])).events if e.tool is not None]
    return found


def database(path: Path, files: Path) -> Path:
    """The sessions of a storage folder, as OpenCode's own migration puts them into its database."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript(SCHEMA)
        for file in (files / "session").rglob("*.json"):
            session = json.loads(file.read_text())
            row = (session["id"], session["projectID"], session["directory"], session["title"], session["version"])
            db.execute(
                "INSERT INTO session VALUES (?, ?, NULL, 's', ?, ?, ?, ?, 0)", (*row, session["time"]["created"])
            )
            for message_file in (files / "message" / session["id"]).iterdir():
                message = json.loads(message_file.read_text())
                own = message.pop("id"), message.pop("sessionID"), message["time"]["created"]
                db.execute("INSERT INTO message VALUES (?, ?, ?, 0, ?)", (*own, json.dumps(message)))
                for part_file in (files / "part" / own[0]).glob("*.json"):
                    part = json.loads(part_file.read_text())
                    ids = f"prt_{own[0]}_{part_file.stem}", own[0], own[1]
                    db.execute("INSERT INTO part VALUES (?, ?, ?, 0, 0, ?)", (*ids, json.dumps(part)))
        db.commit()
    return path


# The genuine files.


def test_a_genuine_session_is_read_over_all_its_files():
    reading = FORMAT.read(SMALL)
    assert (reading.lines, reading.used, reading.merged) == (6, 4, 2)
    assert told(reading) == [
        ("session_start", ""), ("prompt", "Hello"), ("tool", "ls"), ("said", "Found 2 files."),
    ]  # fmt: skip
    assert reading.titles == {"s_stage0_small": "OpenCode Small"}
    assert {(e.session, e.cwd) for e in reading.events} == {("s_stage0_small", "/tmp/repo")}


def test_the_exit_code_decides_and_completed_does_not():
    (found,) = [e.tool for e in FORMAT.read(LARGE).events if e.tool is not None]
    assert (found.command, found.outcome, found.decided_by, found.exit_code) == (
        "ls /non-existent-directory", "failed", "exit code", 1,
    )  # fmt: skip


def test_every_file_of_a_genuine_session_is_accounted_for():
    reading = FORMAT.read(LARGE)
    assert (reading.lines, reading.used, reading.merged) == (16, 9, 3)
    assert dict(reading.passed_by) == {
        "part: file": 1, "part: reasoning": 1, "part: step-start": 1, "part: step-finish": 1,
    }  # fmt: skip
    assert [e.detail for e in reading.events if e.kind == "turn_end"] == ["interrupted"]
    assert [e.evidence for e in reading.events if e.kind in ("compaction", "said")] == [False, False, True]


def test_a_folder_is_read_with_all_its_sessions():
    reading = FORMAT.read(DATA)
    assert (reading.lines, reading.adds_up, sorted(reading.sessions)) == (
        len(FILES), True, ["s_stage0_large", "s_stage0_small"],
    )  # fmt: skip


def test_files_that_somebody_put_into_one_folder_tell_the_same(tmp_path: Path):
    for file in FILES:
        shutil.copy(file, tmp_path / "_".join(file.relative_to(DATA / "storage").parts))
    sessions = [path for path in sorted(tmp_path.iterdir()) if FORMAT.recognise(path)]
    assert [FORMAT.read(path).events for path in sessions] == [FORMAT.read(path).events for path in (LARGE, SMALL)]
    assert [FORMAT.read(path).lines for path in sessions] == [16, 6]


def test_the_database_tells_the_same_as_the_files_it_was_made_of(tmp_path: Path):
    path = database(tmp_path / "opencode.db", DATA / "storage")
    assert FORMAT.recognise(path)
    reading = FORMAT.read(path)
    assert (reading.lines, reading.adds_up) == (len(FILES), True)
    files = FORMAT.read(DATA)
    assert sorted(told(reading)) == sorted(told(files))
    assert {e.tool for e in reading.events} == {e.tool for e in files.events}
    assert {e.key for e in reading.events if e.kind in ("prompt", "tool")} == {
        e.key for e in files.events if e.kind in ("prompt", "tool")
    }


def test_sessions_are_found_where_opencode_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    data = tmp_path / ".local" / "share" / "opencode"
    shutil.copytree(DATA, data)
    database(data / "opencode.db", DATA / "storage")
    assert sorted(p.name for p in FORMAT.find(tmp_path)) == ["opencode.db", LARGE.name, SMALL.name]
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "empty"))
    assert list(FORMAT.find(tmp_path)) == []


def test_only_sessions_folders_and_databases_of_opencode_are_recognised(tmp_path: Path):
    assert all(map(FORMAT.recognise, (LARGE, SMALL, DATA, DATA / "storage")))
    assert not FORMAT.recognise(FIXTURES)
    assert not [p for p in FIXTURES.iterdir() if p.name != "opencode" and FORMAT.recognise(p)]
    with closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE session (id)")
    assert not FORMAT.recognise(tmp_path / "other.db")


# What messages and parts tell.


def test_a_prompt_is_one_event_of_all_that_was_typed(tmp_path: Path):
    parts = [
        {"type": "text", "text": "Look at"},
        {"type": "text", "text": "Called the Read tool with the following input", "synthetic": True},
        {"type": "text", "text": "this file"},
        {"type": "file", "filename": "a.py"},
    ]
    reading = read(tmp_path, (USER, parts))
    assert [(e.text, e.genuine) for e in reading.events if e.kind == "prompt"] == [("Look at\nthis file", True)]
    assert (reading.used, reading.merged, dict(reading.passed_by)) == (2, 2, {"synthetic text": 1, "part: file": 1})


def test_what_nobody_typed_is_no_genuine_prompt(tmp_path: Path):
    reading = read(tmp_path, (USER, [{"type": "text", "text": "Continue if you have next steps", "synthetic": True}]))
    (prompt,) = [e for e in reading.events if e.kind == "prompt"]
    assert (prompt.genuine, prompt.evidence) == (False, False)


def test_a_sub_agents_session_has_a_parent(tmp_path: Path):
    reading = read(tmp_path, (USER, [{"type": "text", "text": "Find tests"}]), parentID="ses_0")
    assert [(e.parent, e.genuine) for e in reading.events] == [("ses_0", True), ("ses_0", False)]


def test_a_turn_ends_with_the_message_that_finishes_it(tmp_path: Path):
    step = {**ASSISTANT, "finish": "tool-calls"}
    last = {**ASSISTANT, "id": "msg_3", "finish": "stop", "time": {"created": 1, "completed": 1_730_000_009_000}}
    reading = read(tmp_path, (step, [{"type": "text", "text": "I look"}]), (last, [{"type": "text", "text": "Done"}]))
    assert [(e.kind, e.detail) for e in reading.events if e.kind == "turn_end"] == [("turn_end", "stop")]
    assert next(e.occurred_at_us for e in reading.events if e.kind == "turn_end") == 1_730_000_009_000_000


def test_a_compaction_has_the_summary_that_follows_it(tmp_path: Path):
    summary = {**ASSISTANT, "summary": True}
    reading = read(
        tmp_path, (USER, [{"type": "compaction", "auto": True}]), (summary, [{"type": "text", "text": "So far"}])
    )
    assert [(e.text, e.evidence) for e in reading.events if e.kind == "compaction"] == [("So far", False)]


@pytest.mark.parametrize(
    ("state", "outcome", "code"),
    [
        ({"metadata": {"exit": 0}}, "ok", 0),
        ({"metadata": {"exit": None}, "output": "…\n<metadata>\nUser aborted the command"}, "interrupted", None),
        ({"metadata": {"exit": None}, "output": "…terminated command after exceeding timeout 1000 ms"}, "failed", None),
        ({"metadata": {}}, "unknown", None),
        ({"status": "error", "error": "The user rejected permission to use this specific tool call."}, "denied", None),
        ({"status": "error", "error": "Tool execution aborted"}, "interrupted", None),
        ({"status": "error", "error": "no such tool"}, "failed", None),
    ],
)
def test_a_state_tells_how_a_command_ended(tmp_path: Path, state: dict[str, Any], outcome: str, code: int | None):
    found = call(tmp_path, "bash", input={"command": "make"}, **state)
    assert (found.outcome, found.exit_code, found.ended) == (outcome, code, True)


def test_a_running_command_has_not_ended(tmp_path: Path):
    assert not call(tmp_path, "bash", input={"command": "make"}, status="running").ended


def test_edits_tell_what_they_changed(tmp_path: Path):
    files = [{"filePath": "/r/a.py", "type": "add"}, {"filePath": "/r/b.py", "type": "move", "movePath": "/r/c.py"}]
    cases: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, str]]] = [
        ("write", {"filePath": "a.py"}, {"exists": False}, {"a.py": "created"}),
        ("write", {"filePath": "a.py"}, {"exists": True}, {"a.py": "edited"}),
        ("edit", {"filePath": "a.py", "oldString": "x"}, {}, {"a.py": "edited"}),
        ("edit", {"filePath": "a.py", "oldString": ""}, {}, {"a.py": "created"}),
        ("apply_patch", {"patchText": "…"}, {"files": files}, {"/r/a.py": "created", "/r/b.py": "moved to /r/c.py"}),
        ("read", {"filePath": "a.py"}, {}, {}),
    ]
    for tool, asked, metadata, changes in cases:
        assert dict(call(tmp_path, tool, input=asked, metadata=metadata).changes) == changes


def test_todos_are_a_plan_with_its_open_ends(tmp_path: Path):
    todos = [
        {"content": "read", "status": "completed", "priority": "high"},
        {"content": "write", "status": "cancelled"},
    ]
    part = {
        "type": "tool",
        "callID": "c",
        "tool": "todowrite",
        "state": {"status": "completed", "input": {"todos": todos}},
    }
    (plan,) = [e for e in read(tmp_path, (ASSISTANT, [part])).events if e.kind == "plan"]
    assert plan.items == (("read", "completed"), ("write", "cancelled"))


def test_our_own_words_are_no_evidence_when_they_come_back(tmp_path: Path):
    ours = call(tmp_path, "everkept_recall", input={"question": "x"}, output="found")
    part = {
        "type": "tool",
        "callID": "c",
        "tool": "read",
        "state": {"status": "completed", "output": "everkept:offer off_1"},
    }
    reading = read(tmp_path, (ASSISTANT, [part, {"type": "tool", "callID": "d", "tool": ours.name, "state": {}}]))
    assert [e.evidence for e in reading.events if e.tool] == [False, False]


# Whatever became of them.


def test_a_torn_message_keeps_its_parts_that_can_be_told(storage: Path):
    (storage / "message" / "s_stage0_small" / "msg_0002.json").write_text('{"id": "m_assis')
    (storage / "part" / "m_assistant_small").rename(storage / "part" / "msg_0002")
    reading = FORMAT.read(storage / "session" / "proj_test" / SMALL.name)
    assert (reading.adds_up, len(reading.unreadable)) == (True, 1)
    assert dict(reading.passed_by) == {"text of a message that cannot be read": 1}
    assert [e.tool.command for e in reading.events if e.tool] == ["ls"]


def test_a_damaged_database_is_read_as_far_as_it_goes_and_says_so(tmp_path: Path):
    path = database(tmp_path / "opencode.db", DATA / "storage")
    content = path.read_bytes()
    for seed in range(12):
        at = random.Random(seed).randrange(100, len(content) - 600)
        path.write_bytes(content[:at] + b"\xa5" * 600 + content[at + 600 :])
        assert FORMAT.read(path).adds_up
    path.write_bytes(content[: len(content) // 2])
    assert "could be read in part only" in FORMAT.read(path).notes[0]


def test_what_cannot_be_opened_is_an_error(tmp_path: Path):
    for name in ("gone.db", "gone.json"):
        with pytest.raises(OSError, match="gone"):
            FORMAT.read(tmp_path / name)


def test_rows_with_rubbish_are_counted(tmp_path: Path):
    path = database(tmp_path / "opencode.db", DATA / "storage")
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE part SET data = x'ff00fe' WHERE rowid % 2 = 0")
        db.execute("UPDATE message SET data = 17")
        db.execute("UPDATE session SET title = x'ff', time_created = 'soon'")
        db.commit()
    reading = FORMAT.read(path)
    assert (reading.adds_up, reading.lines) == (True, len(FILES))
    assert len(reading.unreadable) > 8


@pytest.mark.parametrize("seed", range(3))
def test_files_cut_anywhere_add_up(storage: Path, seed: int):
    for file in storage.rglob("*.json"):
        content = file.read_bytes()
        file.write_bytes(content[: random.Random(f"{seed}{file.name}").randrange(len(content))])
    for session in (storage / "session" / "proj_test").iterdir():
        reading = FORMAT.read(session)
        assert reading.adds_up
        assert reading.unreadable


@st.composite
def spoilt_files(draw: st.DrawFn) -> list[tuple[Path, bytes]]:
    """Some of the genuine files, with what became of them."""
    chosen = draw(st.lists(st.sampled_from(FILES), min_size=1, max_size=5, unique=True))
    return [(path, draw(mutated_line(path.read_text().strip()))) for path in chosen]


@settings(max_examples=40, deadline=None)
@given(spoilt_files())
def test_no_rubbish_raises_and_every_file_is_counted(
    tmp_path_factory: pytest.TempPathFactory, spoilt: list[tuple[Path, bytes]]
):
    folder = tmp_path_factory.mktemp("spoilt")
    shutil.copytree(DATA, folder, dirs_exist_ok=True)
    for path, content in spoilt:
        (folder / path.relative_to(DATA)).write_bytes(content)
    FORMAT.recognise(folder)
    assert FORMAT.read(folder).adds_up
    shutil.rmtree(folder)
