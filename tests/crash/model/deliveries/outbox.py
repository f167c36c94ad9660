"""What has happened, in which order and under which names: the oracle's own account of the outbox (G11).

It is told by one look at the file after each step, and holds every later look against what it has seen: nothing that
happened changes, is lost, or is there twice, whatever project it is told under since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.crash.model.oracle import must

from everkept.domain.changes import ERASED


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    name: str
    """<the project in which it happened>_<its number there>_<when>."""
    kind: str
    subject: int | None
    """Whose it is by now."""

    @property
    def home(self) -> int:
        return int(self.name.split("_")[0])

    @property
    def number(self) -> int:
        """Under which it happened."""
        return int(self.name.split("_")[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """A filter."""

    kinds: tuple[str, ...] | None = None
    subject: int | None = None

    def of(self, happening: Happening) -> bool:
        if self.kinds is not None and happening.kind not in self.kinds:
            return False
        return self.subject is None or happening.kind == ERASED or happening.subject == self.subject


class Outbox:
    def __init__(self) -> None:
        self.told: dict[int, dict[int, Happening]] = {}
        """Project → number → what; as of the last look."""
        self.place: dict[str, tuple[int, int]] = {}
        """Name → (project, number) where it is told now."""

    def see(self, heads: Mapping[int, int], rows: Iterable[tuple[int, int, Happening]]) -> None:
        """One look: {project: newest number}, and (project, number, what) in order."""
        now: dict[int, dict[int, Happening]] = {project: {} for project in heads}
        place: dict[str, tuple[int, int]] = {}
        for project, seq, what in rows:
            must(what.name not in place, "G11", f"{what.name} is told twice: {place.get(what.name)}, {(project, seq)}")
            now[project][seq] = what
            place[what.name] = project, seq
        lost = self.place.keys() - place.keys()
        must(not lost, "G11", f"what happened is gone: {sorted(lost)}")
        for project, told in now.items():
            self._is_dense(project, list(told), heads[project])
            self._stays(project, told)
            self._keeps_order(project, told)
        self.told, self.place = now, place

    def head(self, project: int) -> int:
        return max(self.told.get(project, {}), default=0)

    def between(self, project: int, after: int, through: int, wants: Wants) -> list[tuple[int, Happening]]:
        """What a follower that wants these must be told, in order."""
        told = self.told.get(project, {})
        return [(seq, told[seq]) for seq in sorted(told) if after < seq <= through and wants.of(told[seq])]

    def _is_dense(self, project: int, seqs: Sequence[int], head: int) -> None:
        """From the first to the newest; of a project that was merged the first ones, or all, are the target's now."""
        if seqs:
            must(seqs == list(range(seqs[0], head + 1)), "G11", f"project {project} of {head} tells {seqs}")

    def _stays(self, project: int, told: Mapping[int, Happening]) -> None:
        for seq, before in self.told.get(project, {}).items():
            after = told.get(seq)
            if after is not None:
                must(after.name == before.name, "G11", f"change {seq} was {before.name}, and is {after.name}")
                must(after.kind == before.kind, "G11", f"{after.name} was {before.kind}, and is {after.kind}")

    def _keeps_order(self, project: int, told: Mapping[int, Happening]) -> None:
        """Of each project that was merged into this one, all in the order in which it happened."""
        last: dict[int, int] = {}
        for seq in sorted(told):
            what = told[seq]
            must(
                what.number > last.get(what.home, 0),
                "G11", f"{what.name} comes after number {last.get(what.home)} of its project",
            )  # fmt: skip
            last[what.home] = what.number
