"""What a merge moves at a time, and how far it has come in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from everkept.store.connection import Connection

Renamed = tuple[str, str, str]
"""(what it is, its name in the source, its name in the target)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A subject of the source with all that is its, or (subject 0) what the project has beside its subjects."""

    source: int
    target: int
    source_name: str
    change: int | None
    """The target's change after all of the source's that its followers had heard; None until those are there."""
    subject: int
    into: int
    """Whose it is in the target: the same subject, or the one of its name that was there already."""

    @property
    def joined(self) -> bool:
        return self.subject != self.into

    @property
    def params(self) -> dict[str, int]:
        return {"source": self.source, "target": self.target, "subject": self.subject, "into": self.into}


class Place(NamedTuple):
    """How far a stage has come. (0, 0) is its beginning."""

    after: int = 0
    after_seq: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one transaction moved; `go_on` None: the stage is finished."""

    rows: dict[str, int]
    go_on: Place | None
    renamed: tuple[Renamed, ...] = field(default=())


Stage = Callable[[Connection, Part, Place], Chunk]


def another_name(name: str, part: Part, row: int, *, taken: bool, length_max: int) -> str:
    """A name of its own for what is called as something of the target; with its number where that is `taken` too."""
    ending = f"~{part.source_name}" + (f"~{row}" if taken else "")
    return f"{name[: length_max - len(ending)]}{ending}"
