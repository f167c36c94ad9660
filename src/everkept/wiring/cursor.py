"""Cursor: hooks in `hooks.json` (flat), the server in `mcp.json`, the block in `AGENTS.md`, all in `~/.cursor`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from everkept.wiring.agent import Agent, Part, Place
from everkept.wiring.claude_code import words
from everkept.wiring.json_parts import HookPart, ServerPart
from everkept.wiring.text_parts import BlockPart

NAME: Final = "cursor"
EVENTS: Final = (
    "sessionStart", "beforeSubmitPrompt", "postToolUse", "postToolUseFailure", "preCompact", "afterAgentResponse",
    "stop", "subagentStart", "subagentStop", "sessionEnd",
)  # fmt: skip
TIMEOUT_S: Final = 10


def handler(_event: str, command: str) -> dict[str, Any]:
    return {"command": command, "timeout": TIMEOUT_S}


def server(argv: list[str]) -> dict[str, Any]:
    return {"command": argv[0], "args": argv[1:]}


def _folder(place: Place) -> Path:
    return place.user / ".cursor"


def _parts(place: Place) -> tuple[Part, ...]:
    folder = _folder(place)
    return (
        HookPart(
            path=folder / "hooks.json", home=place.home, events=EVENTS, handler=handler, nested=False,
            scaffold={"version": 1},
        ),
        ServerPart(path=folder / "mcp.json", entry=server, words=words),
        BlockPart(path=folder / "AGENTS.md"),
    )  # fmt: skip


AGENT: Final = Agent(name=NAME, title="Cursor", variables=(), folder=_folder, parts=_parts)
