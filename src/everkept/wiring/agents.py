"""The agents that can be wired, by the names that people type."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from everkept.errors import InvalidInput
from everkept.wiring import claude_code, codex, cursor, gemini, opencode
from everkept.wiring.agent import Agent, Place

AGENTS: Final[Mapping[str, Agent]] = MappingProxyType(
    {each.name: each for each in (claude_code.AGENT, codex.AGENT, cursor.AGENT, gemini.AGENT, opencode.AGENT)}
)


def agent_named(name: str) -> Agent:
    """Raises InvalidInput for a name that is none of these."""
    agent = AGENTS.get(name.strip().lower().replace("_", "-"))
    if agent is None:
        raise InvalidInput(f"{name} is none of the agents that can be wired: {', '.join(AGENTS)}", agent=name)
    return agent


def here(home: Path) -> Place:
    """The files of the person who runs this."""
    return Place(home=home, user=Path.home(), env=os.environ)


def found_agents(place: Place) -> list[str]:
    """The agents that have a folder on this machine."""
    return [name for name, agent in AGENTS.items() if agent.folder(place).is_dir()]
