"""Which program an agent is, and which agents this machine has."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Final, NamedTuple

from everkept.errors import NotFound

PROGRAMS: Final[Mapping[str, str]] = MappingProxyType({
    "claude-code": "claude", "codex": "codex", "gemini": "gemini", "opencode": "opencode", "cursor": "cursor-agent",
})  # fmt: skip
"""{agent, as its sessions are called here: its program}; any other word is an agent that is called as its program."""
_AGENTS: Final = {program: agent for agent, program in PROGRAMS.items()}


class Program(NamedTuple):
    agent: str
    path: str


def program_named(word: str) -> Program:
    """By the name of the agent or of its program. Raises NotFound where PATH has none of that name."""
    agent = _AGENTS.get(word, PurePath(word).name)
    program = PROGRAMS.get(agent, word)
    path = shutil.which(program)
    if path is None:
        here = available()
        others = f"; here are: {', '.join(here)}" if here else ""
        raise NotFound(f"there is no program {program!r} on PATH{others}", program=program)
    return Program(agent, path)


def available() -> list[str]:
    """The agents whose programs are on PATH."""
    return [agent for agent, program in PROGRAMS.items() if shutil.which(program) is not None]
