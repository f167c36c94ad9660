"""Looks at the database the whole time: how long leases stand that have ended, and whether it met deadlocks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from everkept.errors import StoreUnavailable
from everkept.prove.storm.databases import ThrownAway

EVERY_S: Final = 0.5
_LEASED = "select id, kind, lease_until from jobs where state = 'leased' and lease_until is not null"
_SERVERS_NOW = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
_FILES_NOW = "cast((julianday('now') - 2440587.5) * 86400000000 as integer)"


@dataclass(slots=True)
class Seen:
    """What was seen over the whole storm."""

    looks: int = 0
    longest_overdue_s: float = 0.0
    """How long, at most, a lease that had ended was left standing while there was somebody to take its job back."""
    deadlocks: int = 0
    violations: list[str] = field(default_factory=list)


class Watch:
    """Runs until it is stopped. `calm_s`: for how long there has been a worker and a database to work with."""

    def __init__(self, database: ThrownAway, *, lease_s: float, calm_s: Callable[[], float], settle_s: float) -> None:
        """`settle_s`: how long after a calm begins nothing is expected yet, as processes start."""
        self.seen = Seen()
        self._database = database
        self._lease_s = lease_s
        self._settle_s = settle_s
        self._calm_s = calm_s
        self._counted = 0
        self._told: set[int] = set()
        self._query = f"select id, kind, {{now}} - lease_until from ({_LEASED}) l where lease_until < {{now}}".format(
            now=_SERVERS_NOW if database.is_server else _FILES_NOW
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> Seen:
        self._stop.set()
        self._thread.join()
        return self.seen

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            try:
                self.look()
            except StoreUnavailable:  # it was restarted, or its connections cut
                continue

    def look(self) -> None:
        calm_s = self._calm_s() - self._settle_s
        self._compare(self._database.rows(self._query), calm_s)
        deadlocks = self._database.deadlocks()
        self.seen.deadlocks += max(0, deadlocks - self._counted) if deadlocks >= self._counted else deadlocks
        self._counted = deadlocks
        self.seen.looks += 1

    def _compare(self, ended: Sequence[tuple[int, str, int]], calm_s: float) -> None:
        """Only the part of the time counts in which somebody was there to take a job back."""
        for job, kind, overdue_us in ended:
            overdue_s = min(overdue_us / 1e6, calm_s)
            self.seen.longest_overdue_s = max(self.seen.longest_overdue_s, overdue_s)
            if overdue_s > self._lease_s and job not in self._told:
                self._told.add(job)
                self.seen.violations.append(
                    f"G7: {kind} (job_{job}) stood under a lease that had ended {overdue_us / 1e6:.1f} s before"
                )
