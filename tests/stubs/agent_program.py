"""A program that behaves as a coding agent: `agent_program.py AGENT STEP…`, each step a word or `word=value`.

It fires the installed hook, writes a transcript as Claude Code does, uses its terminal, and ends as it is told.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def show(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Agent:
    def __init__(self, name: str) -> None:
        self.name = name
        self.id = str(uuid.uuid4())
        self.hooks = True
        self.last = ""

    # ---- what it does

    def session(self, value: str) -> None:
        self.id = value

    def without_hooks(self, _: str) -> None:
        self.hooks = False

    def start(self, _: str) -> None:
        show(self._hook("SessionStart", source="startup"))

    def prompt(self, value: str) -> None:
        self._write("user", value)
        self._hook("UserPromptSubmit", prompt=value)

    def say(self, value: str) -> None:
        """Into the transcript alone."""
        self.last = value
        self._write("assistant", [{"type": "text", "text": value}])

    def stop(self, _: str) -> None:
        self._hook("Stop", last_assistant_message=self.last)

    def end(self, _: str) -> None:
        self._hook("SessionEnd", reason="other")

    def ready(self, value: str) -> None:
        """Tell that it came so far, and its number."""
        new = Path(f"{value}.new")
        new.write_text(f"{os.getpid()} {os.environ.get('EVERKEPT_LAUNCH', '')}")
        new.rename(value)

    def until(self, value: str) -> None:
        while not Path(value).exists():
            time.sleep(0.02)

    def signals(self, value: str) -> None:
        """Note each signal that comes, instead of ending."""

        def note(signum: int, _frame: Any) -> None:
            with Path(value).open("a") as file:
                file.write(f"{signal.Signals(signum).name}\n")

        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH, signal.SIGCONT):
            signal.signal(signum, note)

    def read(self, _: str) -> None:
        show(f"read {sys.stdin.readline().strip()!r}")

    def terminal(self, _: str) -> None:
        size = tuple(os.get_terminal_size(0)) if os.isatty(0) else ()
        show(f"terminal {[os.isatty(file) for file in (0, 1, 2)]} {size}")

    def echo(self, value: str) -> None:
        show(value)

    def exit(self, value: str) -> None:
        sys.exit(int(value))

    def die(self, value: str) -> None:
        os.kill(os.getpid(), getattr(signal, value))

    # ---- how

    def _hook(self, event: str, **payload: Any) -> str:
        if not self.hooks:
            return ""
        cwd = os.getcwd()
        told = {"hook_event_name": event, "cwd": cwd, "session_id": self.id, "transcript_path": str(self._file())}
        done = subprocess.run(
            [sys.executable, "-I", "-S", f"{os.environ['EVERKEPT_HOME']}/hook.py", "--agent", self.name],
            input=json.dumps({**told, **payload}), capture_output=True, encoding="utf-8", check=True,
        )  # fmt: skip
        with contextlib.suppress(ValueError, KeyError):
            return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"])
        return ""

    def _file(self) -> Path:
        return Path.home() / ".claude" / "projects" / "app" / f"{self.id}.jsonl"

    def _write(self, role: str, content: Any) -> None:
        line = {
            "type": role, "uuid": str(uuid.uuid4()), "parentUuid": None, "sessionId": self.id, "version": "2.0.76",
            "cwd": os.getcwd(), "isSidechain": False, "userType": "external",
            "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "message": {"role": role, "content": content, "id": f"msg_{uuid.uuid4().hex}", "type": "message"},
        }  # fmt: skip
        self._file().parent.mkdir(parents=True, exist_ok=True)
        with self._file().open("a") as file:
            file.write(json.dumps(line) + "\n")


def main(name: str, *steps: str) -> None:
    agent = Agent(name)
    for step in steps:
        word, _, value = step.partition("=")
        getattr(agent, word)(value)


if __name__ == "__main__":
    main(*sys.argv[1:])
