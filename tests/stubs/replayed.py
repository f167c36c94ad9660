"""A recorded session of Claude Code, replayed as it happened: its transcript grows, and its hooks are processes."""

from __future__ import annotations

import json
import os
import py_compile
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from everkept.hook import install_hook
from everkept.hook.hook_script import BUDGET_S

RECORDED = Path(__file__).parents[1] / "data" / "transcripts"
WAIT_S = 60
Line = dict[str, Any]


def install_patient_hook(home: Path) -> None:
    """Put the hook into the home, as it is but for how long it waits for an answer: a busy machine takes its time, and
    whoever asks what an agent is told does not ask how soon."""
    install_hook(home)
    script = home / "everkept_hook.py"
    source = script.read_text("utf-8")
    patient = source.replace(
        f"BUDGET_S = {json.dumps(BUDGET_S)}\n", f"BUDGET_S = {json.dumps(dict.fromkeys(BUDGET_S, WAIT_S / 2))}\n"
    )
    assert patient != source, "its budgets are written in another way"
    script.write_text(patient, "utf-8")
    py_compile.compile(str(script), doraise=True)


def plain_environment(**own: str) -> dict[str, str]:
    hidden = ("EVERKEPT_", "CLAUDE_", "CODEX_", "GEMINI_")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)} | own


def hook(home: Path, agent: str, event: str, cwd: Path, **payload: Any) -> str:
    """Run the installed hook as the agent does; what it printed. It must end with 0 and complain of nothing."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(home / "hook.py"), "--agent", agent],
        input=json.dumps({"hook_event_name": event, "cwd": str(cwd), **payload}),
        capture_output=True, encoding="utf-8", env=plain_environment(), cwd=cwd, timeout=WAIT_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@dataclass(kw_only=True)
class Replay:
    """One recorded session, at work in `folder`, its transcript in `file`."""

    home: Path
    folder: Path
    recorded: str
    """Below `tests/data/transcripts`."""
    file: Path
    at_recorded_times: bool = False
    """Else it happens now."""
    writes: bool = True
    """False: its hooks fire again over a transcript that is there."""
    lines: list[Line] = field(init=False)
    session: str = field(init=False)
    prompts: list[str] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        text = (RECORDED / self.recorded).read_text("utf-8")
        found = re.search(r'"cwd":"([^"]+)"', text)
        assert found is not None
        self.lines = [json.loads(line) for line in text.replace(found[1], str(self.folder)).splitlines()]
        self.session = next(line["sessionId"] for line in self.lines if line.get("sessionId"))

    def start(self, source: str = "startup") -> str:
        """What the agent is told at its start."""
        return self.fire("SessionStart", source=source)

    def work(self, until: int | None = None) -> None:
        """Everything that was asked and done, up to a line."""
        said, busy = "", False
        for line in self.lines[:until]:
            prompt = typed(line)
            if prompt and busy:
                self.fire("Stop", stop_hook_active=False, last_assistant_message=said)
            if prompt:
                self.prompts.append(prompt)
                self.fire("UserPromptSubmit", prompt=prompt)
                busy = True
            self._write(line)
            said = spoken(line) or said
            for call in results(line, self.lines):
                self.fire(call.pop("event"), **call)
        self.fire("Stop", stop_hook_active=False, last_assistant_message=said)

    def end(self, reason: str = "prompt_input_exit") -> None:
        self.fire("SessionEnd", reason=reason)

    def whole(self) -> None:
        self.start()
        self.work()
        self.end()

    def fire(self, event: str, **payload: Any) -> str:
        payload = {"session_id": self.session, "transcript_path": str(self.file), **payload}
        return hook(self.home, "claude-code", event, self.folder, **payload)

    def again(self) -> Replay:
        """The same session; its hooks fire once more."""
        return Replay(home=self.home, folder=self.folder, recorded=self.recorded, file=self.file, writes=False)

    def _write(self, line: Line) -> None:
        if not self.writes:
            return
        if "timestamp" in line and not self.at_recorded_times:
            line["timestamp"] = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _blocks(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = (line.get("message") or {}).get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def typed(line: Mapping[str, Any]) -> str:
    """What a person typed in this line."""
    content = (line.get("message") or {}).get("content")
    if line.get("type") != "user" or line.get("isMeta") or not isinstance(content, str):
        return ""
    return "" if content.startswith(("<", "Stop hook")) else content


def spoken(line: Mapping[str, Any]) -> str:
    """What the agent said in this line."""
    return "".join(b["text"] for b in _blocks(line) if line.get("type") == "assistant" and b["type"] == "text")


def results(line: Mapping[str, Any], lines: list[Line]) -> Iterator[dict[str, Any]]:
    """The hook's payload of each call that came to its end in this line."""
    calls = {b["id"]: b for each in lines for b in _blocks(each) if b["type"] == "tool_use"}
    for block in _blocks(line):
        if block["type"] != "tool_result":
            continue
        call = calls[block["tool_use_id"]]
        told = {"tool_name": call["name"], "tool_input": call["input"], "tool_use_id": call["id"]}
        if block.get("is_error"):
            yield {"event": "PostToolUseFailure", **told, "error": block["content"], "is_interrupt": False}
        else:
            yield {"event": "PostToolUse", **told, "tool_response": line.get("toolUseResult") or block["content"]}
