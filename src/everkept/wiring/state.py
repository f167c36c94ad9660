"""How an agent is wired now, as its files tell; for `doctor`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from everkept.errors import CannotWire
from everkept.wiring import agents, blocks, codex, files, record, toml_edit
from everkept.wiring.agent import Agent, Commands, Part, Place
from everkept.wiring.command import words_of
from everkept.wiring.json_parts import HookPart, ServerPart
from everkept.wiring.jsonc import JsonFault, parse
from everkept.wiring.text_parts import BlockPart, TomlServerPart, WholePart

Is = Literal["ok", "missing", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What is there of one agent. `problems` says the same in words, and what to do."""

    agent: str
    found: bool
    """Whether the agent has a folder on this machine."""
    wired: bool
    """Whether anything of ours is in its files."""
    hooks: dict[str, Is]
    """Each event that should have our hook; `other`: with another command than an install would put there today."""
    command: str | None
    """The command that the hooks run."""
    interpreter: str | None
    interpreter_exists: bool
    hook_exists: bool
    """Whether `<home>/hook.py` is there."""
    server: Is
    block: Is
    trust: dict[str, codex.Trust]
    """Codex only: whether it will run the hook, for each event that has it."""
    switched_off: str | None
    """The setting that keeps the agent from running any hook."""
    problems: tuple[str, ...]


def wired(home: Path, agent: str, place: Place | None = None) -> Wiring:
    """How the agent is wired; a file that cannot be read is a problem, no error. Raises InvalidInput for its name."""
    chosen = agents.agent_named(agent)
    where = place or agents.here(home)
    return _Look(chosen, where).wiring()


class _Look:
    def __init__(self, agent: Agent, place: Place) -> None:
        self.agent = agent
        self.place = place
        self.folder = agent.folder(place)
        known = record.load(record.path_of(place.home, agent.name, self.folder))
        self.recorded = known.interpreter if known else None
        self.problems: list[str] = []
        self.hooks: dict[str, Is] = {}
        self.command: str | None = None
        self.server: Is = "missing"
        self.block: Is = "missing"
        self.trust: dict[str, codex.Trust] = {}
        self.switched_off: str | None = None

    def wiring(self) -> Wiring:
        for part in self.agent.parts(self.place):
            try:
                self._look_at(part)
            except (CannotWire, JsonFault) as fault:
                self.problems.append(f"{part.path}: {fault}")
        interpreter = words_of(self.command)[0] if self.command else self.recorded
        present = self.command is not None or self.server == "ok" or self.block == "ok"
        exists = interpreter is not None and os.access(interpreter, os.X_OK)
        hook_exists = (self.place.home / "hook.py").is_file()
        if present:
            self._judge(interpreter, exists=exists, hook_exists=hook_exists)
        return Wiring(
            agent=self.agent.name, found=self.folder.is_dir(), wired=present, hooks=self.hooks, command=self.command,
            interpreter=interpreter, interpreter_exists=exists, hook_exists=hook_exists, server=self.server,
            block=self.block, trust=self.trust, switched_off=self.switched_off, problems=tuple(self.problems),
        )  # fmt: skip

    def _look_at(self, part: Part) -> None:
        content = files.read_bytes(part.path)
        text = files.decoded(content or b"", part.path)[1]
        match part:
            case HookPart():
                self._hooks(part, text)
            case WholePart():
                self._plugin(part, text)
            case ServerPart():
                self._server(part.find(text)[1], part)
            case TomlServerPart():
                self._server(part.find(text), part)
                self._codex(toml_edit.parse_toml(text))
            case BlockPart():
                self.block = "ok" if blocks.has_block(text) else "missing"

    def _hooks(self, part: HookPart, text: str) -> None:
        found = part.wired_events(text)
        self.command = next(iter(found.values()), None)
        wanted = Commands.of(self.place, self.agent.name, self.recorded).hook if self.recorded else self.command
        for event in part.events:
            self.hooks[event] = "missing" if event not in found else "ok" if found[event] == wanted else "other"
        settings = parse(text).root.value if text.strip() else {}
        self._switches(settings if isinstance(settings, dict) else {})

    def _plugin(self, part: WholePart, text: str) -> None:
        ours = text.startswith(part.mark)
        wanted = Commands.of(self.place, self.agent.name, self.recorded) if self.recorded else None
        if ours and wanted is not None:
            self.command = wanted.hook
        self.hooks["plugin"] = "missing" if not ours else "ok" if wanted and text == part.content(wanted) else "other"

    def _server(self, entry: Any, part: ServerPart | TomlServerPart) -> None:
        self.server = "missing" if entry is None else "ok" if part.is_ours(entry) else "other"

    def _switches(self, settings: dict[str, Any]) -> None:
        switch = settings.get("hooksConfig")
        if settings.get("disableAllHooks") is True:
            self.switched_off = "disableAllHooks"
        elif isinstance(switch, dict) and switch.get("enabled") is False:
            self.switched_off = "hooksConfig.enabled"

    def _codex(self, config: dict[str, Any]) -> None:
        path = self.folder / "hooks.json"
        content = files.read_bytes(path)
        text = files.decoded(content or b"", path)[1]
        hooks = parse(text).root.value.get("hooks", {}) if text.strip() else {}
        self.trust = codex.hook_trust(path, hooks, config, self.place.home) if isinstance(hooks, dict) else {}
        if codex.hooks_switched_off(config):
            self.switched_off = "features.hooks"

    def _judge(self, interpreter: str | None, *, exists: bool, hook_exists: bool) -> None:
        again = f"run `everkept install {self.agent.name}`"
        missing = [event for event, state in self.hooks.items() if state == "missing"]
        other = [event for event, state in self.hooks.items() if state == "other"]
        said = (
            (missing, f"no hook at {', '.join(missing)}; {again}"),
            (other, f"another command than expected at {', '.join(other)}; {again}"),
            (not exists, f"the hook's Python {interpreter} is not there any more; {again}"),
            (not hook_exists, f"{self.place.home / 'hook.py'} is missing; {again}"),
            (self.server != "ok", f"its MCP server entry is {_WORDS[self.server]}; {again}"),
            (self.switched_off, f"`{self.switched_off}` switches all hooks off in {self.agent.title}'s settings"),
            *self._distrust(),
        )
        self.problems += [words for wrong, words in said if wrong]

    def _distrust(self) -> list[tuple[bool, str]]:
        advice = {
            "untrusted": "not trusted yet, so Codex passes it by: look at `/hooks` in Codex",
            "changed": "changed since it was trusted, so Codex passes it by: look at `/hooks` in Codex",
            "switched off": "switched off in Codex: look at `/hooks` there",
        }
        found = [(state, [event for event, each in self.trust.items() if each == state]) for state in advice]
        return [(True, f"the hook at {', '.join(events)} is {advice[state]}") for state, events in found if events]


_WORDS = {"missing": "missing", "other": "not ours", "ok": "there"}
