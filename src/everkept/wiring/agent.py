"""What an agent is to us: its folder, and the parts that are put into its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from everkept.wiring.command import hook_command, mcp_argv

Kept = frozenset[str]
"""Containers (`hooks`, `hooks/Stop`, …) that were there before us, and so stay when they are empty again."""
SERVER = "everkept"
"""The name of our MCP server in every agent's settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Whose files, and where."""

    home: Path
    """Everkept's own folder."""
    user: Path
    env: Mapping[str, str]

    def folder(self, variable: str, default: str) -> Path:
        """A folder that an environment variable moves."""
        value = self.env.get(variable, "").strip()
        return Path(value).expanduser() if value else self.user / default


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """What is put into the files of one agent."""

    hook: str
    server: list[str]

    @classmethod
    def of(cls, place: Place, agent: str, interpreter: str) -> Commands:
        return cls(hook=hook_command(place.home, agent, interpreter), server=mcp_argv(agent, interpreter))


class Part(Protocol):
    """One thing of ours in one file. Its functions go from text to text, and raise CannotWire or JsonFault."""

    @property
    def path(self) -> Path: ...

    def add(self, text: str, commands: Commands) -> str:
        """The text with our part as it should be; the same text where it is."""

    def remove(self, text: str, kept: Kept) -> str:
        """The text without our part."""

    def kept(self, text: str) -> Kept:
        """The containers that are there without us."""

    def foreign(self, text: str) -> object:
        """What the text means without us: no change of ours may alter that."""

    def is_bare(self, text: str) -> bool:
        """Whether nothing is left but what a file needs that we made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    name: str
    title: str
    variables: tuple[str, ...]
    """Environment variables that move its files."""
    folder: Callable[[Place], Path]
    parts: Callable[[Place], tuple[Part, ...]]
    notes: Callable[[Place], tuple[str, ...]] = field(default=lambda _: ())
    """What a person should know or do after an install."""
