"""Kill and cut a throw-away store on the user's own disk, for as long as there is time, and say what came of it."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from everkept.errors import StoreFull
from everkept.prove import power
from everkept.prove.checks import Violation
from everkept.prove.kill import KillReport, Theatre, sample
from everkept.prove.nursery import AVAILABLE, Nursery
from everkept.prove.power import PowerReport
from everkept.prove.scenarios import SCENARIOS
from everkept.store.sqlite import refuse_network

KILLS_PER_VISIT = 6
"""Instants of a scenario that are tried before the next one has its turn."""
MB = 1_000_000
ROOM_BYTES = 100 * MB
"""What must be free: a store, the copy that is worked on, and all that a run of layer 3 wrote."""
DOUBLE = 0.1
"""How many of the recoveries, of 1, are killed too."""
NO_FORK = "processes cannot be forked on Windows, so none was killed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Torture:
    """What was done, and what broke."""

    directory: Path
    seed: int
    seconds: float
    kill: KillReport
    kill_not_run: str | None
    power: PowerReport

    @property
    def violations(self) -> list[tuple[Violation, str]]:
        """Each with how to see it again."""
        killed = [(f.violation, str(f)) for f in self.kill.fallen]
        return killed + [(v, f"{v}, after a power cut") for v in self.power.violations]

    @property
    def too_short(self) -> list[str]:
        """What could have been done here, and was not for want of time."""
        return [
            *(["nothing was killed"] if self.kill_not_run is None and not self.kill.kills else []),
            *(["no power was cut"] if self.power.not_run is None and not self.power.images else []),
        ]

    @property
    def looked(self) -> bool:
        """Whether all was tried that can be tried here, and that is something."""
        return not self.too_short and self.kill.kills + self.power.images > 0


def torture(parent: Path, *, seed: int, seconds: float, told: Callable[[str], None] = lambda _words: None) -> Torture:
    """Half of the time for kills, half for power cuts, in a new folder under `parent` that is removed at the end.

    `told` hears what is done next. Raises StoreNotSupported on a network file system, StoreFull where there is too
    little room, OSError where `parent` cannot be written, PlayerFailed where a scenario does not even play undisturbed.
    """
    refuse_network(parent)
    _require_room(parent)
    started = time.monotonic()
    with _throw_away(parent) as directory, silence():
        cuts = power.why_not() is None
        kill = KillReport()
        if AVAILABLE:
            kill = _kill(directory, seed, seconds / 2 if cuts else seconds, told)
        if cuts:
            told("cutting the power, and looking at what is on the disk")
        cut = power.torture(directory, seed, seconds / 2)
    return Torture(
        directory=directory, seed=seed, seconds=time.monotonic() - started, kill=kill,
        kill_not_run=None if AVAILABLE else NO_FORK, power=cut,
    )  # fmt: skip


def _require_room(parent: Path) -> None:
    free = shutil.disk_usage(parent).free
    if free < ROOM_BYTES:
        raise StoreFull(
            f"nothing was tried: {parent} has {free // MB} MB free, and {ROOM_BYTES // MB} are needed", free_bytes=free
        )


def _kill(directory: Path, seed: int, seconds: float, told: Callable[[str], None]) -> KillReport:
    """Scenario after scenario in an order of the seed's, round and round, at other instants each time.

    `seconds` begin when the process that forks is ready, which takes long where the machine is busy.
    """
    told("starting the process whose copies will be killed: each statement is compiled once, which takes seconds")
    order = list(SCENARIOS)
    random.Random(seed).shuffle(order)
    visits = 0
    with Nursery() as nursery:
        told("killing processes at their statements, and looking at what they leave behind")
        theatre = Theatre(directory, nursery, synced=True)
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            chosen = sample(seed + visits // len(order), KILLS_PER_VISIT)
            theatre.run([order[visits % len(order)]], chosen, seed=seed, double=DOUBLE, until_s=until_s)
            visits += 1
    return theatre.report


@contextmanager
def _throw_away(parent: Path) -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="everkept-torture-", dir=parent))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


@contextmanager
def silence() -> Iterator[None]:
    """What a store that is tormented would log is no news to anybody."""
    before = structlog.get_config() if structlog.is_configured() else None
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    try:
        yield
    finally:
        structlog.reset_defaults()
        if before is not None:
            structlog.configure(**before)
