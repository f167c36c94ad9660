"""What is done to the processes, in an order that the seed draws: one blow after another until it is told to stop.

Who is frozen stays so for twice its lease, while others are struck. At the end all are thawed and started again.
"""

from __future__ import annotations

import heapq
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from everkept.errors import StoreUnavailable
from everkept.prove.storm.processes import Program

FROZEN_LEASES: Final = 2.1
"""For how many leases who is frozen stays so."""
RECOVERS_S: Final = 3.0
"""Within how long after its start a process is killed for the second time."""
DRAINS_S: Final = 0.5
"""Between two looks whether one that drains has ended."""
DEAD_S: Final = 2.0
"""How long one stays dead, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    """One way of striking, and how often it is drawn beside the others."""

    name: str
    weight: int
    strike: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """The processes of a storm."""

    servers: Sequence[Program]
    workers: Sequence[Program]

    @property
    def all(self) -> list[Program]:
        return [*self.servers, *self.workers]

    def working_since_s(self) -> float | None:
        """Since when, at the least, there has been one who works jobs, in monotonic seconds."""
        since = [each.up_since_s for each in (self.workers or self.servers) if each.up_since_s is not None]
        return min(since, default=None)


@dataclass(order=True, slots=True)
class _Later:
    at_s: float
    what: Callable[[], None] = field(compare=False)


class Strikes:
    """A thread that strikes; `counts` says how often in each way."""

    def __init__(
        self, crew: Crew, blows: Sequence[Blow], chance: random.Random, *, mean_s: float, lease_s: float
    ) -> None:
        """`blows`: what is struck beside the processes. `mean_s`: between two strikes."""
        self.counts: Counter[str] = Counter()
        self.deaths = 0
        self.failure: Exception | None = None
        self._crew = crew
        self._random = chance
        self._mean_s = mean_s
        self._frozen_s = FROZEN_LEASES * lease_s
        self._later: list[_Later] = []
        self._draining: list[Program] = []
        self.drained_too_slowly: list[str] = []
        """Who did not end though nobody was frozen any more."""
        self._away: set[str] = set()
        """Names of those that are dead or frozen, and come back by themselves."""
        self._blows = [
            Blow(name="killed", weight=30, strike=self._kill),
            Blow(name="killed while it recovered", weight=10, strike=self._kill_twice),
            Blow(name="frozen for two leases", weight=18, strike=self._freeze),
            Blow(name="drained", weight=6, strike=self._drain),
            *blows,
        ]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="strikes", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Leaves everybody up. Raises what ended the strikes early."""
        self._stop.set()
        self._thread.join()
        while self._later:
            heapq.heappop(self._later).what()
        for one in self._draining:
            self.drained_too_slowly += [] if one.stop() else [one.name]
            one.start()
        self._revive()
        if self.failure is not None:
            raise self.failure

    # ---- the thread

    def _run(self) -> None:
        next_s = time.monotonic() + self._wait_s()
        try:
            while not self._stop.wait(max(0.0, min(next_s, self._first_later_s()) - time.monotonic())):
                while self._first_later_s() <= time.monotonic():
                    heapq.heappop(self._later).what()
                if next_s <= time.monotonic():
                    self._strike()
                    next_s = time.monotonic() + self._wait_s()
        except Exception as error:  # noqa: BLE001  (it is raised again by `stop`)
            self.failure = error

    def _wait_s(self) -> float:
        return self._random.expovariate(1 / self._mean_s)

    def _first_later_s(self) -> float:
        return self._later[0].at_s if self._later else float("inf")

    def _strike(self) -> None:
        self._revive()
        blow = self._random.choices(self._blows, [each.weight for each in self._blows])[0]
        with suppress(StoreUnavailable):  # a database that is away anyhow cannot be struck
            blow.strike()
            self.counts[blow.name] += 1

    def _revive(self) -> None:
        """Start again, as a supervisor does, who ended without a blow: a start without a database is such an end."""
        for each in self._crew.all:
            if each.name not in self._away and not each.is_alive():
                self.counts["ended by itself"] += 1
                each.start()

    def _one(self) -> Program | None:
        """Somebody who is up."""
        there = [each for each in self._crew.all if each.name not in self._away]
        return self._random.choice(there) if there else None

    # ---- blows

    def _kill(self) -> None:
        if (one := self._one()) is not None:
            self._kill_now(one)
            self._comes_back(one, self._random.uniform(0.0, DEAD_S), one.start)

    def _kill_twice(self) -> None:
        if (one := self._one()) is None:
            return
        self._kill_now(one)
        one.start()

        def again() -> None:
            self._kill_now(one)
            one.start()

        self._comes_back(one, self._random.uniform(0.0, RECOVERS_S), again)

    def _kill_now(self, one: Program) -> None:
        one.kill()
        self.deaths += 1

    def _freeze(self) -> None:
        if (one := self._one()) is not None:
            one.freeze()
            self._comes_back(one, self._frozen_s, one.thaw)

    def _drain(self) -> None:
        if (one := self._one()) is not None:
            one.ask_to_stop()
            self._comes_back(one, DRAINS_S, lambda: self._start_again(one))

    def _start_again(self, one: Program) -> None:
        """Once it has drained. Nobody waits for it here: what it waits for may be held by one who is frozen."""
        if not one.is_alive():
            one.start()
        elif self._stop.is_set():
            self._draining.append(one)
        else:
            self._comes_back(one, DRAINS_S, lambda: self._start_again(one))

    def _comes_back(self, one: Program, after_s: float, how: Callable[[], None]) -> None:
        self._away.add(one.name)

        def back() -> None:
            self._away.discard(one.name)
            how()

        heapq.heappush(self._later, _Later(time.monotonic() + after_s, back))
