"""Codex: hooks in `hooks.json`, the server in `config.toml`, the block in `AGENTS.md`.

Codex runs a hook only after a person has looked at it (`/hooks`). It keeps that in `config.toml`, under the hook's
place in the file, as a hash of event, matcher, command, time limit and message: `hook_trust` reads it again.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any, Final, Literal

from everkept.wiring.agent import SERVER, Agent, Part, Place
from everkept.wiring.command import is_our_hook
from everkept.wiring.json_parts import HookPart
from everkept.wiring.text_parts import BlockPart, TomlServerPart

NAME: Final = "codex"
EVENTS: Final = (
    "SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "PostCompact", "SubagentStart", "SubagentStop",
    "Stop", "SessionEnd", "Interrupt",
)  # fmt: skip
"""A version that does not know the younger ones passes them by."""
TIMEOUT_S: Final = 10
END_TIMEOUT_S: Final = 3
"""SessionEnd is given no more by Codex."""
DEFAULT_TIMEOUT_S: Final = 600
"""What Codex takes, and hashes, where a hook has no limit of its own."""
_MATCHED: Final = ("PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact", "PostCompact", "SessionStart")
_MATCHED_AGENTS: Final = ("SubagentStart", "SubagentStop")
Trust = Literal["trusted", "untrusted", "changed", "switched off"]


def handler(event: str, command: str) -> dict[str, Any]:
    return {"type": "command", "command": command, "timeout": END_TIMEOUT_S if event == "SessionEnd" else TIMEOUT_S}


def _folder(place: Place) -> Path:
    return place.folder("CODEX_HOME", ".codex")


def _instructions(folder: Path) -> Path:
    """`AGENTS.override.md`, where there is one, is read instead of `AGENTS.md`."""
    override = folder / "AGENTS.override.md"
    return override if override.is_file() and override.stat().st_size else folder / "AGENTS.md"


def _parts(place: Place) -> tuple[Part, ...]:
    folder = _folder(place)
    return (
        HookPart(path=folder / "hooks.json", home=place.home, events=EVENTS, handler=handler),
        TomlServerPart(path=folder / "config.toml", table=("mcp_servers", SERVER)),
        BlockPart(path=_instructions(folder)),
    )


def hook_trust(hooks_file: Path, hooks: dict[str, Any], config: dict[str, Any], home: Path) -> dict[str, Trust]:
    """Whether Codex will run our hook, for each event that has it, as far as its files tell."""
    kept = config.get("hooks", {})
    states = kept.get("state", {}) if isinstance(kept, dict) else {}
    found: dict[str, Trust] = {}
    for event, groups in hooks.items():
        for group_index, group in enumerate(groups if isinstance(groups, list) else []):
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for index, each in enumerate(handlers if isinstance(handlers, list) else []):
                if isinstance(each, dict) and is_our_hook(each.get("command"), home):
                    key = f"{hooks_file}:{_label(event)}:{group_index}:{index}"
                    found[event] = _trust(states.get(key), trust_hash(event, group.get("matcher"), each))
    return found


def trust_hash(event: str, matcher: str | None, each: dict[str, Any]) -> str:
    """The hash that Codex keeps for a hook that was trusted: SHA-256 over JSON with sorted keys and no blanks."""
    identity: dict[str, Any] = {
        "event_name": _label(event),
        "hooks": [
            {
                "type": "command",
                "command": each["command"],
                "timeout": max(1, each.get("timeout", DEFAULT_TIMEOUT_S)),
                "async": each.get("async", False),
            }
            | ({"statusMessage": each["statusMessage"]} if each.get("statusMessage") is not None else {})
        ],
    }
    if matcher is not None and event in (*_MATCHED, *_MATCHED_AGENTS):
        identity["matcher"] = matcher
    canonical = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"


def hooks_switched_off(config: dict[str, Any]) -> bool:
    """Whether `[features]` says so; `codex_hooks` is the older name."""
    features = config.get("features")
    return isinstance(features, dict) and features.get("hooks", features.get("codex_hooks")) is False


def _trust(state: Any, wanted: str) -> Trust:
    if not isinstance(state, dict):
        return "untrusted"
    if state.get("enabled") is False:
        return "switched off"
    known = state.get("trusted_hash")
    return "untrusted" if known is None else "trusted" if known == wanted else "changed"


def _label(event: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()


AGENT: Final = Agent(
    name=NAME, title="Codex", variables=("CODEX_HOME",), folder=_folder, parts=_parts,
    notes=lambda _: (
        "Codex runs a new hook only after you trusted it: start `codex` and look at `/hooks`",
        "versions of early 2026 and before also need `codex_hooks = true` under `[features]` in config.toml",
    ),
)  # fmt: skip
