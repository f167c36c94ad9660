"""OpenCode: a plugin that hands its events to the hook, the server in `opencode.json(c)`, the block in `AGENTS.md`."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from everkept.wiring.agent import Agent, Commands, Part, Place
from everkept.wiring.command import words_of
from everkept.wiring.json_parts import ServerPart
from everkept.wiring.text_parts import BlockPart, WholePart

NAME: Final = "opencode"
MARK: Final = "// Written by `everkept install opencode`"
_ARGV: Final = "__EVERKEPT_HOOK_ARGV__"


def plugin_source(commands: Commands) -> str:
    """The plugin, with the words that start the hook."""
    source = (files("everkept.wiring") / "data" / "opencode" / "everkept.ts").read_text(encoding="utf-8")
    return source.replace(_ARGV, json.dumps(words_of(commands.hook), ensure_ascii=False))


def server(argv: list[str]) -> dict[str, Any]:
    return {"type": "local", "command": argv}


def _words(entry: dict[str, Any]) -> Any:
    return entry.get("command")


def _above(settings: Any) -> tuple[str, ...]:
    """Servers stand under `mcp`; a file in the form of version 2 has them under `mcp.servers`."""
    servers = settings.get("mcp", {}) if isinstance(settings, dict) else {}
    inner = servers.get("servers") if isinstance(servers, dict) else None
    return ("mcp", "servers") if isinstance(inner, dict) and not inner.keys() & {"type", "enabled"} else ("mcp",)


def _folder(place: Place) -> Path:
    return place.folder("XDG_CONFIG_HOME", ".config") / "opencode"


def _settings(folder: Path) -> Path:
    commented = folder / "opencode.jsonc"
    return commented if commented.is_file() else folder / "opencode.json"


def _parts(place: Place) -> tuple[Part, ...]:
    folder = _folder(place)
    instructions = folder / "AGENTS.md"
    parts: list[Part] = [
        WholePart(path=folder / "plugins" / "everkept.ts", mark=MARK, content=plugin_source),
        ServerPart(
            path=_settings(folder), entry=server, words=_words, above=_above,
            scaffold={"$schema": "https://opencode.ai/config.json"},
        ),
    ]  # fmt: skip
    if instructions.exists() or not _reads_claudes(place):
        parts.append(BlockPart(path=instructions))
    return tuple(parts)


def _reads_claudes(place: Place) -> bool:
    """Whether OpenCode takes its rules from Claude Code's file, which an `AGENTS.md` of its own would hide."""
    return (place.user / ".claude" / "CLAUDE.md").is_file()


def _notes(place: Place) -> tuple[str, ...]:
    if (_folder(place) / "AGENTS.md").exists() or not _reads_claudes(place):
        return ()
    return ("OpenCode reads ~/.claude/CLAUDE.md here; an AGENTS.md of its own would hide that, so none was made",)


AGENT: Final = Agent(
    name=NAME, title="OpenCode", variables=("XDG_CONFIG_HOME",), folder=_folder, parts=_parts, notes=_notes
)
