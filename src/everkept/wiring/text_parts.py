"""Our parts in other files: a table in TOML, a block in Markdown, and a file that is all ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from everkept.errors import CannotWire
from everkept.wiring import blocks, toml_edit
from everkept.wiring.agent import Commands, Kept
from everkept.wiring.command import is_our_server

OPEN_END: Final = "open end"
"""Among what is kept: the last line had no line end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlServerPart:
    """Our MCP server as a table of a TOML file."""

    path: Path
    table: tuple[str, ...]

    def add(self, text: str, commands: Commands) -> str:
        values = {"command": commands.server[0], "args": commands.server[1:]}
        found = self.find(text)
        if found is None:
            return toml_edit.add_table(text, self.table, values)
        if not self.is_ours(found) or all(found.get(key) == value for key, value in values.items()):
            return text
        return toml_edit.set_values(text, self.table, values)

    def remove(self, text: str, kept: Kept) -> str:
        if not self.is_ours(self.find(text)):
            return text
        return _end_as_before(text, toml_edit.remove_table(text, self.table), kept)

    def foreign(self, text: str) -> object:
        parsed = toml_edit.parse_toml(text)
        return toml_edit.without_table(parsed, self.table) if self.is_ours(self.find(text)) else parsed

    def find(self, text: str) -> Any:
        return toml_edit.table_at(toml_edit.parse_toml(text), self.table)

    def is_ours(self, entry: Any) -> bool:
        return isinstance(entry, dict) and is_our_server(entry.get("args"))

    def kept(self, text: str) -> Kept:
        toml_edit.parse_toml(text)
        return _open_end(text)

    def is_bare(self, text: str) -> bool:
        return not text.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPart:
    """Our block in an instruction file."""

    path: Path

    def add(self, text: str, commands: Commands) -> str:
        return blocks.add_block(text)

    def remove(self, text: str, kept: Kept) -> str:
        return _end_as_before(text, blocks.remove_block(text), kept)

    def foreign(self, text: str) -> object:
        return blocks.remove_block(text).strip()

    def kept(self, text: str) -> Kept:
        blocks.remove_block(text)
        return _open_end(text)

    def is_bare(self, text: str) -> bool:
        return not text.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class WholePart:
    """A file that is all ours, known by its first line."""

    path: Path
    mark: str
    content: Callable[[Commands], str]

    def add(self, text: str, commands: Commands) -> str:
        self._check(text)
        return self.content(commands)

    def remove(self, text: str, kept: Kept) -> str:
        return "" if text.startswith(self.mark) else text

    def foreign(self, text: str) -> object:
        return "" if text.startswith(self.mark) else text.strip()

    def _check(self, text: str) -> None:
        if text.strip() and not text.startswith(self.mark):
            raise CannotWire(f"{self.path} is there and is not ours; move it away first", path=str(self.path))

    def kept(self, text: str) -> Kept:
        self._check(text)
        return frozenset()

    def is_bare(self, text: str) -> bool:
        return not text.strip()


def _open_end(text: str) -> Kept:
    return frozenset() if not text or text.endswith("\n") else frozenset({OPEN_END})


def _end_as_before(text: str, bare: str, kept: Kept) -> str:
    """Without the line end that had to be put before us, where we were the last thing."""
    if OPEN_END not in kept or bare == text or not text.startswith(bare):
        return bare
    return bare.removesuffix("\n").removesuffix("\r")
