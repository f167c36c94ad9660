"""Which instruction files a coding agent loads by itself: it needs nobody to tell it what stands in them. Pure.

Sources are those of `page_files`: `file:<path below the checkout>`, or `file:~/…` for a person's own files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loads:
    names: frozenset[str] = frozenset()
    """Of files anywhere in the checkout."""
    folders: tuple[str, ...] = ()
    """In the checkout, each with the slash after it."""
    of_person: tuple[str, ...] = ()
    """Folders in the home, each with the slash after it."""


LOADED: Final = {
    "claude-code": _Loads(
        names=frozenset(["CLAUDE.md", "CLAUDE.local.md"]), folders=(".claude/",), of_person=("~/.claude/",)
    ),
    "codex": _Loads(names=frozenset(["AGENTS.md", "AGENTS.override.md"]), of_person=("~/.codex/",)),
    "gemini": _Loads(names=frozenset(["GEMINI.md"]), of_person=("~/.gemini/",)),
    "cursor": _Loads(names=frozenset(["AGENTS.md", ".cursorrules"]), folders=(".cursor/rules/",)),
    "opencode": _Loads(names=frozenset(["AGENTS.md"])),
}


def loads_itself(agent: str, source: str | None) -> bool:
    """Whether the agent reads the file that a page comes from by itself."""
    own = LOADED.get(agent)
    if own is None or source is None or not source.startswith("file:"):
        return False
    path = source.removeprefix("file:")
    if path.startswith("~/"):
        return path.startswith(own.of_person)
    return path.rpartition("/")[2] in own.names or any(f"/{folder}" in f"/{path}" for folder in own.folders)
