"""Those who follow a project's changes: two rivals for one consumer, and one inbox that knows what had its effect.

A rival holds the consumer's lease, reads, makes the effect, acknowledges; at random it dies before that, and comes back
knowing nothing. Effects are what a consumer's own database would hold: each change exactly once, in order.
"""

from __future__ import annotations

import random
import threading
from typing import Final

from everkept.errors import Conflict, EverkeptError
from everkept.prove.storm.ways import Gone, Lost, PlainHttp

CONSUMER: Final = "storm"
LEASE_S: Final = 5
PAGE: Final = 100
PAUSE_S: Final = 0.5
DIES: Final = 0.1
"""How many pages, of 1, a rival does not acknowledge because it dies first."""


class Inbox:
    """What had its effect, shared by the rivals as their database would be."""

    def __init__(self, project: str) -> None:
        self.project = project
        self.last = 0
        self.violations: list[str] = []
        self.given_again = 0
        self._lock = threading.Lock()

    def once(self, seq: int) -> None:
        """Let a change have its effect unless it had it."""
        with self._lock:
            if seq <= self.last:
                self.given_again += 1
                return
            if seq != self.last + 1:
                self.violations.append(f"G11: after change {self.last} of {self.project} its follower was given {seq}")
            self.last = seq


class Rival:
    """One follower; runs until it is stopped, and at the end to the last change."""

    def __init__(self, name: str, way: PlainHttp, inbox: Inbox, chance: random.Random) -> None:
        self._name = name
        self._way = way
        self._inbox = inbox
        self._random = chance
        self._fence: int | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.deaths = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def close(self) -> None:
        self._way.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            moved = self.step(DIES)
            self._stop.wait(0.0 if moved else PAUSE_S * self._random.uniform(0.5, 1.5))

    def step(self, dies: float) -> bool:
        """Take a page; whether there was anything."""
        try:
            return self._take(dies)
        except (Lost, Gone):
            return False
        except Conflict:
            self._fence = None
            return False
        except EverkeptError as error:
            self._inbox.violations.append(f"G11: {self._name} was refused: {error}")
            return False

    def _take(self, dies: float) -> bool:
        leased = self._way.ask("POST", "changes/lease", {
            "consumer": CONSUMER, "owner": self._name, "lease_s": LEASE_S, "fence": self._fence})  # fmt: skip
        self._fence = int(leased["fence"])
        page = self._way.ask("GET", f"changes?consumer={CONSUMER}&limit={PAGE}")
        seqs = [int(change["seq"]) for change in page["changes"]]
        for seq in seqs:
            self._inbox.once(seq)
        if not seqs:
            return False
        if self._random.random() < dies:
            self._fence = None
            self.deaths += 1
            return False
        self._way.ask("POST", "changes/ack", {"consumer": CONSUMER, "up_to": seqs[-1], "fence": self._fence})
        return True
