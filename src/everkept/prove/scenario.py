"""One scenario: what it starts from, what is killed in it, and how a part of it is played."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from everkept.ports.faults import Faults
from everkept.prove.stage import FOUNDER, Cast, Stage

Play = Callable[[Stage], None]


def _nothing(_stage: Stage) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """`prepare` plays undisturbed and makes the store that every run starts from; `act` is what is killed."""

    name: str
    act: Play
    prepare: Play = _nothing
    cast: Cast = field(default_factory=Cast)
    prepared_by: Cast | None = None
    """Who prepared it, where that was somebody else."""
    from_nothing: bool = False
    """There is no store yet: the schema itself is made under fire."""
    copy: str | None = None
    """A file that `act` makes: if it is there, it holds all that the store holds."""
    of_a_file: bool = False
    """It is about what only a file has: backups, its log, its pages."""
    damaged: bool = False
    """`prepare` takes something away that the backstops bring back: only the drained store is whole."""

    def play(self, folder: Path, part: str, start_us: int, faults: Faults, *, synced: bool) -> int:
        """Play one part; the time on the clock at its end. `recover` opens what is there and works until it is idle."""
        owner = {"prepare": FOUNDER, "act": "player"}.get(part, f"{part}-{start_us}")
        cast = self.prepared_by or self.cast if part == "prepare" else self.cast
        stage = Stage(folder, cast, start_us=start_us, faults=faults, synced=synced, owner=owner)
        try:
            match part:
                case "prepare":
                    self.prepare(stage)
                case "act":
                    self.act(stage)
                case _:
                    stage.resume_all()
                    stage.embed_again()
                    stage.send_again()
                    stage.drain()
            return stage.clock.now_us()
        finally:
            stage.close()
