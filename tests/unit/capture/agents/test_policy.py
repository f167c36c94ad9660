"""A folder's `.everkept.toml` keeps the same out of an import as out of the hook."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.stubs.replayed import RECORDED, Line, results, typed

from everkept.api.transcripts import read_allowed
from everkept.capture.agents import claude_code
from everkept.capture.agents.hook_payload import events_of
from everkept.capture.agents.keeping import redacted
from everkept.capture.agents.policy import NOT_KEPT, narrowed, policy_at
from everkept.domain.session import AgentEvent, ToolCall, kept
from everkept.hook.hook_script import record_of

RECORDING = RECORDED / "entireio-cli" / "claude-code-2.1.3.jsonl"
POLICIES = {
    "open": 'project = "acme"\n',
    "no prompts": "prompts = false\n",
    "metadata": "metadata_only = true\n",
    "ignored": 'ignore = ["*.md", "**/secrets/**", "docs"]\n',
    "both": 'prompts = false\nignore = ["*.go"]\n',
    "torn": "prompts = \n",
    "off": "off = true\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the recorded session worked."""
    top = tmp_path / "app"
    (top / ".git").mkdir(parents=True)
    return top


def transcript(folder: Path) -> tuple[Path, list[Line]]:
    text = RECORDING.read_text("utf-8")
    first = next(cwd for line in text.splitlines() if (cwd := json.loads(line).get("cwd")))
    path = folder.parent / "session.jsonl"
    path.write_text(text.replace(first, str(folder)))
    return path, [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def heard_by_hook(folder: Path, event: str, **payload: Any) -> list[AgentEvent]:
    said = {"hook_event_name": event, "session_id": "s-1", "cwd": str(folder), **payload}
    record = record_of(json.dumps(said).encode(), "claude-code", event)
    return [] if record is None else events_of({**record, "name": "1-1-0.json"})


def content(call: ToolCall) -> Mapping[str, Any]:
    """What a call says beside how it ended, which a transcript may know better."""
    return {"name": call.name, "command": call.command, "paths": call.paths, "changes": call.changes,
            "input": call.input, "output": bool(call.output)}  # fmt: skip


@pytest.mark.parametrize("name", POLICIES)
def test_hook_and_import_keep_the_same_of_every_call_and_prompt(name: str, folder: Path) -> None:
    path, lines = transcript(folder)
    (folder / ".everkept.toml").write_text(POLICIES[name])
    reading, _ = read_allowed(claude_code.FORMAT, path, home=folder.parent)
    hooked = [e for line in lines for call in results(line, lines) for e in heard_by_hook(folder, **call)]
    imported = {e.key: e.tool for e in reading.events if e.tool is not None}
    calls = {e.key: e.tool for e in hooked if e.tool is not None}
    assert (name == "off") == (calls == {}) == (imported == {})
    both = calls.keys() & imported.keys()
    assert {k: content(calls[k]) for k in both} == {k: content(imported[k]) for k in both}
    assert {call.name for key, call in calls.items() if key not in both} <= {"TodoWrite"}  # plans: nothing is left
    typed_words = [words for line in lines if (words := typed(line))]
    asked = [e for words in typed_words for e in heard_by_hook(folder, "UserPromptSubmit", prompt=words)]
    prompts = [e for e in reading.events if e.kind == "prompt" and e.genuine]
    assert [(e.text, e.detail, "withheld" in e.extra) for e in asked] == [
        (e.text, e.detail, "withheld" in e.extra) for e in prompts
    ]


def test_nothing_of_what_is_kept_out_is_left_anywhere(folder: Path) -> None:
    path, lines = transcript(folder)
    (folder / ".everkept.toml").write_text("metadata_only = true\n")
    reading, left_out = read_allowed(claude_code.FORMAT, path, home=folder.parent)
    stored = "\n".join(part for event in reading.events for part in kept(event))
    words = [w for line in lines if (w := typed(line))]
    assert words
    assert not any(each in stored for each in words)
    assert left_out == {"metadata_only = true": left_out.total()}
    assert reading.adds_up
    assert reading.titles == {}
    assert (
        f"kept out as the folder's .everkept.toml says: {left_out.total():,} by metadata_only = true" in reading.notes
    )


def test_prompts_off_keeps_the_summary_of_a_compaction_and_titles_out(folder: Path) -> None:
    (folder / ".everkept.toml").write_text("prompts = false\n")
    events = [
        event("compaction", text="The user asked for a login"),
        event("said", text="Done.", extra={"title": "Add a login", "version": "2"}),
    ]
    found, counts = narrowed(events, policy_at(folder), str(folder))
    assert [(e.text, dict(e.extra)) for e in found] == [("", {"withheld": True}), ("Done.", {"version": "2"})]
    assert counts == {"prompts = false": 1}


def test_a_prompt_that_is_kept_out_leaves_that_there_was_one(folder: Path) -> None:
    (folder / ".everkept.toml").write_text("prompts = false\n")
    (found,), _ = narrowed([event("prompt", text="my words", key="k")], policy_at(folder), str(folder))
    assert (found.text, found.detail, found.key, found.genuine) == ("", NOT_KEPT, "k", True)


@pytest.mark.parametrize(
    ("call", "is_kept"),
    [
        ({"command": "cat secrets/key.txt"}, False),
        ({"command": "cat ./secrets/../notes.txt"}, True),
        ({"command": "cat sec*/key.txt"}, False),
        ({"input": '{"glob": "src/*/key.?"}'}, False),
        ({"command": "cat src/*.py"}, True),
        ({"paths": ("src/secrets/a",)}, False),
        ({"changes": (("old.txt", "moved to secrets/new.txt"),)}, False),
        ({"input": '{"path": "my secrets/a", "glob": "secrets/with a space.txt"}'}, False),
        ({"command": "cat secretary.txt", "output": "see secrets/key.txt"}, True),
    ],
)
def test_a_call_that_names_an_ignored_path_keeps_no_content(folder: Path, call: dict[str, Any], is_kept: bool) -> None:
    (folder / ".everkept.toml").write_text('ignore = ["**/secrets"]\n')
    tool = ToolCall(name="Bash", family="shell", outcome="ok", **call)
    (found,), counts = narrowed([event("tool", tool=tool)], policy_at(folder), str(folder))
    assert found.tool == (tool if is_kept else ToolCall(name="Bash", family="shell", outcome="ok"))
    assert counts == ({} if is_kept else {"ignored paths": 1})


def test_a_session_may_go_through_folders_of_different_policies(folder: Path) -> None:
    private = folder / "private"
    private.mkdir()
    (folder / ".everkept.toml").write_text('ignore = ["private"]\n')
    path, lines = transcript(folder)
    for number, line in enumerate(lines):
        if "cwd" in line and number > len(lines) // 2:
            line["cwd"] = str(private)
    path.write_text("\n".join(map(json.dumps, lines)))
    reading, left_out = read_allowed(claude_code.FORMAT, path, home=folder.parent)
    assert left_out["ignored folder"] > 0
    assert {e.cwd for e in reading.events} == {str(folder)}


def test_an_open_folder_changes_nothing(folder: Path) -> None:
    path, _ = transcript(folder)
    reading, left_out = read_allowed(claude_code.FORMAT, path, home=folder.parent)
    assert left_out == Counter()
    assert reading.events == claude_code.FORMAT.read(path).events


def test_private_words_go_the_same_way(folder: Path) -> None:
    words = "Use <private>hunter2 and more</private>this"
    (heard,) = heard_by_hook(folder, "UserPromptSubmit", prompt=words)
    assert redacted(heard).text == redacted(event("prompt", text=words)).text == "Use this"


def event(kind: Any, **fields: Any) -> AgentEvent:
    plain = AgentEvent(kind=kind, agent="claude-code", session="s-1", key="k-1", source="transcript")
    return replace(plain, **fields)
