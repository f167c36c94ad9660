"""What reading a transcript gives: its events, and an account of its lines (used, merged, passed by, unreadable)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from everkept.domain.session import AgentEvent


class Line(NamedTuple):
    """One line of a JSONL file, or one record of a file that is JSON as a whole."""

    number: int
    """From 1."""
    raw: str


@dataclass(slots=True, kw_only=True)
class Reading:
    """One file, or one session of a store of many files, read as far as it goes.

    A line that gave events counts once under `used`, however many it gave.
    """

    agent: str
    path: Path
    sessions: list[str] = field(default_factory=list)
    """Native ids in the order met; a file may hold several."""
    events: list[AgentEvent] = field(default_factory=list)
    """In the order of the file. A call and its result are one event, complete where both were found."""
    lines: int = 0
    used: int = 0
    merged: int = 0
    """Lines that only completed the event of another one: results, ends, repeated messages, progress."""
    passed_by: Counter[str] = field(default_factory=Counter)
    """{why or native type: lines} of what is no event of the session."""
    unreadable: list[tuple[int, str]] = field(default_factory=list)
    """(line number, the line as it stands), kept raw."""
    titles: dict[str, str] = field(default_factory=dict)
    """{session: its own title or summary}, where the file names one."""
    notes: list[str] = field(default_factory=list)
    """What a person should know of this reading."""

    @property
    def adds_up(self) -> bool:
        return self.lines == self.used + self.merged + sum(self.passed_by.values()) + len(self.unreadable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How one agent keeps its sessions. To add an agent: one module with a `FORMAT`, one line in `formats.py`."""

    agent: str
    find: Callable[[Path], Iterator[Path]]
    """Below a home folder (`~`): every transcript, oldest first. Variables of the agent such as CODEX_HOME count."""
    recognise: Callable[[Path], bool]
    """Whether a file (or folder) given by hand is one of these, by its content rather than its name."""
    read: Callable[[Path], Reading]
    """Raises OSError where the file cannot be opened; whatever is in it is counted, never raised."""


def as_text(content: Any) -> str:
    """A message's content as agents send it: a string, or blocks of which the texts count."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part for part in map(as_text, content) if part)
    if isinstance(content, dict):
        return as_text(content.get("text") or content.get("content") or "")
    return ""
