"""Gemini CLI: hooks and the server in `settings.json`, the block in `GEMINI.md`, all in `~/.gemini`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from everkept.wiring.agent import SERVER, Agent, Part, Place
from everkept.wiring.claude_code import words
from everkept.wiring.cursor import server
from everkept.wiring.json_parts import HookPart, ServerPart
from everkept.wiring.text_parts import BlockPart

NAME: Final = "gemini"
EVENTS: Final = (
    "SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "PreCompress", "Notification", "SessionEnd",
)  # fmt: skip
"""BeforeAgent has the prompt, AfterAgent the answer. Not BeforeTool: a call is known whole when it has ended."""
TIMEOUT_MS: Final = 10_000


def handler(_event: str, command: str) -> dict[str, Any]:
    return {"type": "command", "command": command, "name": SERVER, "timeout": TIMEOUT_MS}


def _folder(place: Place) -> Path:
    return place.folder("GEMINI_CLI_HOME", "") / ".gemini"


def _parts(place: Place) -> tuple[Part, ...]:
    folder = _folder(place)
    settings = folder / "settings.json"
    return (
        HookPart(path=settings, home=place.home, events=EVENTS, handler=handler),
        ServerPart(path=settings, entry=server, words=words),
        BlockPart(path=folder / "GEMINI.md"),
    )


AGENT: Final = Agent(name=NAME, title="Gemini CLI", variables=("GEMINI_CLI_HOME",), folder=_folder, parts=_parts)
