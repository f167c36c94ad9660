"""Claude Code: hooks in `settings.json`, the server in `.claude.json`, the block in `CLAUDE.md`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from everkept.wiring.agent import Agent, Part, Place
from everkept.wiring.json_parts import HookPart, ServerPart
from everkept.wiring.text_parts import BlockPart

NAME: Final = "claude-code"
EVENTS: Final = (
    "SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "PreCompact", "Stop", "SessionEnd",
    "SubagentStart", "SubagentStop", "Notification",
)  # fmt: skip
"""Not PreToolUse: a call is known whole when it has ended, and a failed one fires PostToolUseFailure."""
TIMEOUT_S: Final = 10


def handler(_event: str, command: str) -> dict[str, Any]:
    return {"type": "command", "command": command, "timeout": TIMEOUT_S}


def server(argv: list[str]) -> dict[str, Any]:
    return {"type": "stdio", "command": argv[0], "args": argv[1:]}


def words(entry: dict[str, Any]) -> Any:
    return entry.get("args")


def _folder(place: Place) -> Path:
    return place.folder("CLAUDE_CONFIG_DIR", ".claude")


def _parts(place: Place) -> tuple[Part, ...]:
    folder = _folder(place)
    moved = place.env.get("CLAUDE_CONFIG_DIR", "").strip()
    servers = (folder if moved else place.user) / ".claude.json"
    return (
        HookPart(path=folder / "settings.json", home=place.home, events=EVENTS, handler=handler),
        ServerPart(path=servers, entry=server, words=words),
        BlockPart(path=folder / "CLAUDE.md"),
    )


AGENT: Final = Agent(
    name=NAME, title="Claude Code", variables=("CLAUDE_CONFIG_DIR",), folder=_folder, parts=_parts,
    notes=lambda _: ("sessions that are open now have the hooks after they are started again",),
)  # fmt: skip
