"""Both sides of one run of a move, and whoever is told how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from everkept.store.moving.kept import Kept
from everkept.store.moving.side import Side

Phase = Literal["begin", "copy", "follow", "compare", "switch", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How far a move is."""

    phase: Phase
    name: str
    """The table at hand; empty where it is none."""
    rows_done: int
    rows: int
    """In all of this phase, as far as is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    source: Side
    target: Side
    kept: tuple[Kept, ...]
    run: str
    """This run's own name: a target takes rows only from the run that came last."""
    told: Callable[[Told], None]

    def tell(self, phase: Phase, name: str = "", rows_done: int = 0, rows: int = 0) -> None:
        self.told(Told(phase=phase, name=name, rows_done=rows_done, rows=rows))
