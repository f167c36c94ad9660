"""What is written, checked strictly against the form that each agent documents."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.unit.wiring.conftest import PYTHON

from everkept.errors import CannotWire
from everkept.wiring import AGENTS, apply, codex, opencode, plan_install, write_plugin
from everkept.wiring.agent import Commands, Place


def strict(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


TEXT = {"type": "string", "minLength": 1}
TEXTS = {"type": "array", "items": TEXT}
SECONDS = {"type": "integer", "minimum": 1, "maximum": 30}
COMMAND = {"const": "command"}
CLAUDE_HANDLER = strict(["type", "command"], type=COMMAND, command=TEXT, timeout=SECONDS)
GEMINI_HANDLER = strict(
    ["type", "command"], type=COMMAND, command=TEXT, name=TEXT, timeout={"type": "integer", "minimum": 1000}
)
CLAUDE_EVENTS = [
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure",
    "Notification", "SubagentStart", "SubagentStop", "Stop", "PreCompact", "PostCompact", "SessionEnd",
]  # fmt: skip
CODEX_EVENTS = [
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact", "PostCompact",
    "SubagentStart", "SubagentStop", "Stop", "SessionEnd", "Interrupt",
]  # fmt: skip
CURSOR_EVENTS = [
    "sessionStart", "sessionEnd", "preToolUse", "postToolUse", "postToolUseFailure", "subagentStart", "subagentStop",
    "beforeShellExecution", "afterShellExecution", "beforeMCPExecution", "afterMCPExecution", "beforeReadFile",
    "afterFileEdit", "beforeSubmitPrompt", "preCompact", "stop", "afterAgentResponse", "afterAgentThought",
]  # fmt: skip
GEMINI_EVENTS = [
    "SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "BeforeModel", "AfterModel", "BeforeToolSelection",
    "BeforeTool", "AfterTool", "PreCompress", "Notification",
]  # fmt: skip


def nested(handler: dict[str, Any], events: list[str]) -> dict[str, Any]:
    group = strict(["hooks"], matcher={"type": "string"}, hooks={"type": "array", "minItems": 1, "items": handler})
    return strict([], **{event: {"type": "array", "minItems": 1, "items": group} for event in events})


def flat(events: list[str]) -> dict[str, Any]:
    entry = strict(["command"], command=TEXT, timeout=SECONDS, type=COMMAND, matcher={"type": "string"})
    return strict([], **{event: {"type": "array", "minItems": 1, "items": entry} for event in events})


def servers(entry: dict[str, Any]) -> dict[str, Any]:
    return strict(["everkept"], everkept=entry)


STDIO = strict(["command", "args"], command=TEXT, args=TEXTS, type={"const": "stdio"}, env={"type": "object"})
LOCAL = strict(["type", "command"], type={"const": "local"}, command=TEXTS, enabled={"type": "boolean"})
SCHEMAS = {
    ".claude/settings.json": strict(["hooks"], hooks=nested(CLAUDE_HANDLER, CLAUDE_EVENTS)),
    ".claude.json": strict(["mcpServers"], mcpServers=servers(STDIO)),
    ".codex/hooks.json": strict(["hooks"], hooks=nested(CLAUDE_HANDLER, CODEX_EVENTS)),
    ".codex/config.toml": strict(
        ["mcp_servers"], mcp_servers=servers(strict(["command", "args"], command=TEXT, args=TEXTS))
    ),
    ".cursor/hooks.json": strict(["version", "hooks"], version={"const": 1}, hooks=flat(CURSOR_EVENTS)),
    ".cursor/mcp.json": strict(["mcpServers"], mcpServers=servers(STDIO)),
    ".gemini/settings.json": strict(
        ["hooks", "mcpServers"], hooks=nested(GEMINI_HANDLER, GEMINI_EVENTS), mcpServers=servers(STDIO)
    ),
    ".config/opencode/opencode.json": strict(["mcp"], **{"$schema": TEXT, "mcp": servers(LOCAL)}),
}


@pytest.fixture
def written(place: Place) -> dict[str, Any]:
    apply(plan_install(place, list(AGENTS), PYTHON), place.home)
    loads = {".json": json.loads, ".toml": tomllib.loads}
    return {name: loads[Path(name).suffix]((place.user / name).read_text()) for name in SCHEMAS}


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_settings_file_has_its_agents_documented_form(name: str, written: dict[str, Any]) -> None:
    jsonschema_rs.validate(SCHEMAS[name], written[name])


def test_every_hook_runs_one_and_the_same_command_of_its_agent(written: dict[str, Any], place: Place) -> None:
    for name, agent in (
        (".claude/settings.json", "claude-code"),
        (".codex/hooks.json", "codex"),
        (".gemini/settings.json", "gemini"),
    ):
        commands = {
            each["command"] for groups in written[name]["hooks"].values() for group in groups for each in group["hooks"]
        }
        assert commands == {f"{PYTHON} -I -S {place.home}/hook.py --agent {agent}"}


def test_the_prompt_and_failed_tools_are_heard_and_calls_are_not_told_twice(written: dict[str, Any]) -> None:
    claude = written[".claude/settings.json"]["hooks"]
    assert {"UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "SubagentStop", "Notification"} <= claude.keys()
    assert "PreToolUse" not in claude
    assert {"BeforeAgent", "AfterAgent"} <= written[".gemini/settings.json"]["hooks"].keys()
    assert {"beforeSubmitPrompt", "postToolUseFailure"} <= written[".cursor/hooks.json"]["hooks"].keys()


# ---- Codex's trust


def test_the_trust_hash_is_the_one_that_codex_makes() -> None:
    """Over the hook as sorted JSON without blanks; absent fields are left out, and the default limit is 600 s."""
    canonical = b'{"event_name":"pre_compact","hooks":[{"async":false,"command":"x","timeout":600,"type":"command"}]}'
    expected = f"sha256:{hashlib.sha256(canonical).hexdigest()}"
    assert codex.trust_hash("PreCompact", None, {"type": "command", "command": "x"}) == expected
    assert codex.trust_hash("Stop", "ignored", {"command": "x"}) == codex.trust_hash("Stop", None, {"command": "x"})
    assert codex.trust_hash("PreCompact", "manual", {"command": "x"}) != expected


# ---- the plugin for Claude Code


def test_the_plugin_has_the_documented_form(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "plugin"
    found = {str(path.relative_to(folder)) for path in write_plugin(folder, place.home, PYTHON)}
    assert found == {
        ".claude-plugin/plugin.json", "hooks/hooks.json", ".mcp.json", "skills/recall-memory/SKILL.md",
        "skills/hand-off/SKILL.md",
    }  # fmt: skip
    manifest = json.loads((folder / ".claude-plugin/plugin.json").read_text())
    assert manifest["name"] == "everkept"
    hooks = json.loads((folder / "hooks/hooks.json").read_text())
    jsonschema_rs.validate(strict(["hooks"], description=TEXT, hooks=nested(CLAUDE_HANDLER, CLAUDE_EVENTS)), hooks)
    jsonschema_rs.validate(SCHEMAS[".claude.json"], json.loads((folder / ".mcp.json").read_text()))
    for name in ("recall-memory", "hand-off"):
        lines = (folder / "skills" / name / "SKILL.md").read_text().splitlines()
        assert lines[:2] == ["---", f"name: {name}"]
        assert lines[2].startswith("description: ")
        assert lines[3] == "---"


def test_the_plugin_is_written_again_over_itself_and_over_nothing_else(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "plugin"
    write_plugin(folder, place.home, PYTHON)
    write_plugin(folder, place.home, "/new/python")
    assert "/new/python" in (folder / "hooks/hooks.json").read_text()
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    with pytest.raises(CannotWire, match="holds something else"):
        write_plugin(other, place.home, PYTHON)
    assert [path.name for path in other.iterdir()] == ["mine.txt"]


# ---- the plugin for OpenCode

DRIVER = """
import { Everkept } from "./plugin.mjs"
const hooks = await Everkept({ directory: "/w", worktree: "/w" })
await hooks.event({ event: { type: "session.created", properties: { info: { id: "s1" } } } })
await hooks.event({ event: { type: "file.edited", properties: { file: "x" } } })
const typed = [{ type: "text", text: "do it" }, { type: "file", filename: "a.py" }]
const parts = [...typed, { type: "text", text: "not typed", synthetic: true }]
await hooks["chat.message"]({ sessionID: "s1", messageID: "m1" }, { parts })
const output = { system: ["theirs"] }
await hooks["experimental.chat.system.transform"]({ sessionID: "s1" }, output)
const call = { tool: "bash", sessionID: "s1", callID: "c1", args: { command: "ls" } }
await hooks["tool.execute.after"](call, { title: "t", output: "o", metadata: { exit: 1 } })
const state = { status: "error", input: { command: "rm" }, error: "denied" }
const part = { type: "tool", tool: "bash", callID: "c2", sessionID: "s1", state }
await hooks.event({ event: { type: "message.part.updated", properties: { part } } })
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "s1" } } })
await hooks.dispose()
console.log(JSON.stringify(output.system))
"""
LISTENER = """
import json, sys
payload = json.load(sys.stdin)
with open(sys.argv[1], "a") as file:
    file.write(json.dumps(payload) + "\\n")
print("what " + payload["hook_event_name"] + " says")
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="the plugin is run by node here, and there is none")
def test_the_opencode_plugin_tells_the_hook_in_order_and_gives_its_words_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "listener.py").write_text(LISTENER)
    heard = tmp_path / "heard"
    commands = Commands(hook=f"{sys.executable} {tmp_path}/listener.py {heard}", server=[])
    (tmp_path / "plugin.mjs").write_text(opencode.plugin_source(commands))
    (tmp_path / "driver.mjs").write_text(DRIVER)
    done = subprocess.run(["node", "driver.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["theirs", "what session.created says", "what chat.message says"]
    events = [json.loads(line) for line in heard.read_text().splitlines()]
    names = ["session.created", "chat.message", "tool.execute.after", "tool.execute.after", "session.idle"]
    assert [event["hook_event_name"] for event in events] == names
    assert {(event["sessionID"], event["cwd"]) for event in events} == {("s1", "/w")}
    assert events[1]["prompt"] == "do it\na.py"
    assert (events[2]["callID"], events[2]["metadata"]) == ("c1", {"exit": 1})
    assert (events[3]["callID"], events[3]["error"]) == ("c2", "denied")


@pytest.mark.skipif(shutil.which("node") is None, reason="the plugin is run by node here, and there is none")
def test_the_opencode_plugin_lives_on_without_its_hook(tmp_path: Path) -> None:
    commands = Commands(hook="/nowhere/python hook.py", server=[])
    (tmp_path / "plugin.mjs").write_text(opencode.plugin_source(commands))
    (tmp_path / "driver.mjs").write_text(DRIVER)
    done = subprocess.run(["node", "driver.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, '["theirs"]\n'), done.stderr
