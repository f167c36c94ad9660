"""A plugin for Claude Code: the same hooks and server as an install, in a folder of its own."""

from __future__ import annotations

import json
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, Final

from everkept.errors import CannotWire
from everkept.wiring import claude_code, files
from everkept.wiring.agent import SERVER
from everkept.wiring.apply import put_hook
from everkept.wiring.command import hook_command, mcp_argv

MANIFEST: Final = ".claude-plugin/plugin.json"
_SKILLS: Final = ("recall-memory", "hand-off")


def write_plugin(folder: Path, home: Path, interpreter: str) -> list[Path]:
    """Write the plugin into a folder that is new, empty, or holds an earlier one; the files. Raises CannotWire."""
    _check(folder)
    put_hook(home, interpreter)
    written: list[Path] = []
    try:
        for name, content in plugin_files(home, interpreter).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if files.read_bytes(path) != content.encode():
                files.replace(path, content.encode())
            written.append(path)
    except OSError as error:
        raise CannotWire(f"the plugin cannot be written to {folder}: {error.strerror}", path=str(folder)) from error
    return written


def plugin_files(home: Path, interpreter: str) -> dict[str, str]:
    """Each file of the plugin, by its path in the folder."""
    from importlib.metadata import version  # costs 20 ms, and only the manifest needs it

    command = hook_command(home, claude_code.NAME, interpreter)
    hooks = {event: [{"hooks": [claude_code.handler(event, command)]}] for event in claude_code.EVENTS}
    server = mcp_argv(claude_code.NAME, interpreter)
    manifest = {
        "name": SERVER,
        "version": version("everkept"),
        "description": "Durable memory across coding sessions: capture, recall, handoffs.",
        "author": {"name": "Everkept"},
        "license": "Apache-2.0",
        "keywords": ["memory", "handoff", "mcp"],
    }
    skills = package_files("everkept.wiring") / "data" / "plugin" / "skills"
    return {
        MANIFEST: _json(manifest),
        "hooks/hooks.json": _json({"description": "Tells Everkept what happens in a session.", "hooks": hooks}),
        ".mcp.json": _json({"mcpServers": {SERVER: {"command": server[0], "args": server[1:]}}}),
        **{f"skills/{name}/SKILL.md": (skills / name / "SKILL.md").read_text(encoding="utf-8") for name in _SKILLS},
    }


def _check(folder: Path) -> None:
    if not folder.exists():
        return
    manifest = files.read_bytes(folder / MANIFEST) if folder.is_dir() else None
    try:
        ours = manifest is not None and json.loads(manifest).get("name") == SERVER
    except (ValueError, AttributeError):
        ours = False
    if not folder.is_dir() or (not ours and any(folder.iterdir())):
        raise CannotWire(f"{folder} holds something else; name a new or empty folder", path=str(folder))


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
