"""Those who follow the outbox themselves: what each was given, did and acknowledged, and who held it meanwhile."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field

from tests.crash.model.deliveries.outbox import Happening, Outbox, Wants
from tests.crash.model.oracle import must

from everkept.doors.python.inbox import Inbox


class Died(Exception):
    """The follower's process is gone in the middle of an effect."""


class Effects:
    """A follower's own database: what it does for a change, and its inbox, which outlive its processes."""

    def __init__(self) -> None:
        self._database = sqlite3.connect(":memory:")
        self._database.execute("create table effects(name text)")
        self._inbox = Inbox(self._database)

    def close(self) -> None:
        self._database.close()

    def do(self, name: str, *, dies: bool) -> bool:
        """Whether it was new. Raises Died between the effect and its commit."""
        with self._inbox.once(f"chg_{name}") as new:
            if new:
                self._database.execute("insert into effects values(?)", (name,))
            if dies:
                raise Died
            return new

    def done(self) -> list[str]:
        return [name for (name,) in self._database.execute("select name from effects")]


@dataclass(slots=True)
class Lease:
    """The newest lease on a consumer, as its holder was told."""

    owner: str | None = None
    fence: int = 0
    until_us: int = 0

    def is_held(self, now_us: int) -> bool:
        return self.owner is not None and self.until_us > now_us

    def end(self, fence: int) -> None:
        self.owner, self.fence, self.until_us = None, fence, 0


@dataclass(slots=True)
class Holder:
    """One process that follows: what it was given, and how much of that it has done."""

    fence: int
    given: list[tuple[int, Happening]] = field(default_factory=list)
    through: int = 0
    """Up to where was looked; 0: nothing was read yet."""
    done: int = 0

    def is_new(self) -> list[tuple[int, Happening]]:
        return self.given[self.done :]

    def may_acknowledge(self) -> int | None:
        """The newest change of which all up to it is done; None where there is none."""
        if self.through and self.done == len(self.given):
            return self.through
        return self.given[self.done - 1][0] if self.done else None


@dataclass(slots=True)
class Follower:
    """One consumer of one project."""

    name: str
    wants: Wants
    effects: Effects = field(default_factory=Effects)
    lease: Lease = field(default_factory=Lease)
    holders: dict[str, Holder] = field(default_factory=dict)
    cursor: int = 0
    offered: int = 0
    handed_out: int = 0
    """What it may acknowledge: up to here it was given, since it was taken."""
    there: bool = False
    passed: set[str] = field(default_factory=set)
    """By a hand, before it came here, or what it did elsewhere."""

    @property
    def known(self) -> set[str]:
        return self.passed.union(self.effects.done())

    def pass_by(self, outbox: Outbox, project: int, through: int, *, but_of: frozenset[int] = frozenset()) -> None:
        """A hand moved it to `through`, or a merge did: what happened elsewhere is not its to know."""
        self.passed |= {
            what.name for _, what in outbox.between(project, 0, through, self.wants) if what.home not in but_of
        }

    def skips_nothing(self, outbox: Outbox, project: int) -> None:
        known = self.known
        for seq, what in outbox.between(project, 0, self.cursor, self.wants):
            must(
                what.name in known,
                "G11", f"{self.name} of project {project} is at {self.cursor}, and never did change {seq}, {what.name}",
            )  # fmt: skip

    def does_nothing_twice(self) -> None:
        done = self.effects.done()
        must(len(done) == len(set(done)), "G11", f"{self.name} did something twice: {sorted(done)}")
