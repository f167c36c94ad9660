"""Torment a throw-away store for as long as there is time, on the user's disk or server, and say what came of it."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

import structlog

from everkept.errors import StoreFull
from everkept.prove import power
from everkept.prove.checks import Violation
from everkept.prove.grounds import Clones, Files
from everkept.prove.kill import KillReport, Theatre, sample
from everkept.prove.nursery import AVAILABLE, Nursery
from everkept.prove.power import PowerReport
from everkept.prove.scenarios import playable
from everkept.prove.storm import run as storming
from everkept.prove.storm.databases import ThrownAwayFile, may_make_databases, throw_away
from everkept.prove.storm.report import StormReport
from everkept.store.sqlite import refuse_network

KILLS_PER_VISIT = 6
"""Instants of a scenario that are tried before the next one has its turn."""
MB = 1_000_000
ROOM_BYTES = 100 * MB
"""What must be free: a store, the copy that is worked on, and all that a run of layer 3 wrote."""
DOUBLE = 0.1
"""How many of the recoveries, of 1, are killed too."""
NO_FORK = "processes cannot be forked on Windows, so none was killed"
NOT_ASKED_FOR = "--only leaves it out"
NO_DISK = "the disk of a server cannot be rebuilt from here"
NO_CLONES = "this role may make no databases, and each kill needs one"
Layer: TypeAlias = Literal["kill", "power", "processes"]
LAYERS: Final[tuple[Layer, ...]] = get_args(Layer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What to torment, and for how long."""

    seed: int
    seconds: float
    layers: tuple[Layer, ...] = LAYERS
    database_url: str | None = None
    """A server of PostgreSQL on which databases are made and dropped again; None: files."""
    workers: int = 4
    clients: int = 16
    restart_command: str | None = None
    """Restarts that server at once; None: it is not restarted."""
    nats_server: Path | None = None
    """The program of a broker; None: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Torture:
    """What was done, and what broke."""

    directory: Path
    orders: Orders
    seconds: float
    kill: KillReport
    kill_not_run: str | None
    power: PowerReport
    storm: StormReport | None
    storm_not_run: str | None

    @property
    def violations(self) -> list[tuple[Violation, str]]:
        """Each with how to see it again."""
        killed = [(f.violation, str(f)) for f in self.kill.fallen]
        cut = [(v, f"{v}, after a power cut") for v in self.power.violations]
        found = [] if self.storm is None else self.storm.violations
        stormed = [(v, f"{v}, after a storm") for v in map(_as_violation, found)]
        return [*killed, *cut, *stormed]

    @property
    def too_short(self) -> list[str]:
        """What could have been done here, and was not for want of time."""
        return [
            *(["nothing was killed"] if self.kill_not_run is None and not self.kill.kills else []),
            *(["no power was cut"] if self.power.not_run is None and not self.power.images else []),
            *(["nobody was struck"] if self.storm is not None and not self.storm.strikes else []),
        ]

    @property
    def looked(self) -> bool:
        """Whether all was tried that can be tried here, and that is something."""
        struck = 0 if self.storm is None else sum(self.storm.strikes.values())
        return not self.too_short and self.kill.kills + self.power.images + struck > 0


def _as_violation(line: str) -> Violation:
    guarantee, _, what = line.partition(": ")
    return Violation(guarantee=guarantee, what=what, where="")


def torture(parent: Path, orders: Orders, *, told: Callable[[str], None] = lambda _words: None) -> Torture:
    """The same time for each layer that can be run, in a new folder under `parent` that is removed at the end.

    `told` hears what is done next. Raises StoreNotSupported on a network file system or where a server lets nothing be
    made, StoreUnavailable where it does not answer, StoreFull where there is too little room, OSError where `parent`
    cannot be written, PlayerFailed where a scenario does not even play undisturbed.
    """
    refuse_network(parent)
    _require_room(parent)
    started = time.monotonic()
    not_run = {
        "kill": _why_no_kills(orders), "power": _why_no_power(orders), "processes": _why_no_processes(orders),
    }  # fmt: skip
    share_s = orders.seconds / max(1, sum(why is None for why in not_run.values()))
    kill = KillReport()
    cut = PowerReport(images=0, violations=[], not_run=not_run["power"])
    storm: StormReport | None = None
    with _throw_away(parent) as directory, silence():
        if not_run["kill"] is None:
            kill = _kill(directory, orders, share_s, told)
        if not_run["power"] is None:
            told("cutting the power, and looking at what is on the disk")
            cut = power.torture(directory, orders.seed, share_s)
        if not_run["processes"] is None:
            storm = _storm(directory, orders, share_s, told)
    return Torture(
        directory=directory, orders=orders, seconds=time.monotonic() - started, kill=kill,
        kill_not_run=not_run["kill"], power=cut, storm=storm, storm_not_run=not_run["processes"],
    )  # fmt: skip


def _why_no_kills(orders: Orders) -> str | None:
    if "kill" not in orders.layers:
        return NOT_ASKED_FOR
    if not AVAILABLE:
        return NO_FORK
    return NO_CLONES if orders.database_url is not None and not may_make_databases(orders.database_url) else None


def _why_no_power(orders: Orders) -> str | None:
    if "power" not in orders.layers:
        return NOT_ASKED_FOR
    return power.why_not() if orders.database_url is None else NO_DISK


def _why_no_processes(orders: Orders) -> str | None:
    return storming.why_not() if "processes" in orders.layers else NOT_ASKED_FOR


def _require_room(parent: Path) -> None:
    free = shutil.disk_usage(parent).free
    if free < ROOM_BYTES:
        raise StoreFull(
            f"nothing was tried: {parent} has {free // MB} MB free, and {ROOM_BYTES // MB} are needed", free_bytes=free
        )


def _kill(directory: Path, orders: Orders, seconds: float, told: Callable[[str], None]) -> KillReport:
    """Scenario after scenario in an order of the seed's, round and round, at other instants each time.

    `seconds` begin when the process that forks is ready, which takes long where the machine is busy.
    """
    told("starting the process whose copies will be killed: each statement is compiled once, which takes seconds")
    server_url = orders.database_url
    order = playable(on_a_server=server_url is not None)
    random.Random(orders.seed).shuffle(order)
    visits = 0
    with Nursery() as nursery, nullcontext(Files()) if server_url is None else Clones(server_url) as ground:
        told("killing processes at their statements, and looking at what they leave behind")
        theatre = Theatre(directory, nursery, ground=ground, synced=True)
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            chosen = sample(orders.seed + visits // len(order), KILLS_PER_VISIT)
            theatre.run([order[visits % len(order)]], chosen, seed=orders.seed, double=DOUBLE, until_s=until_s)
            visits += 1
    return theatre.report


def _storm(directory: Path, orders: Orders, seconds: float, told: Callable[[str], None]) -> StormReport:
    plan = storming.Storm(
        seed=orders.seed, seconds=seconds, workers=orders.workers, clients=orders.clients,
        restart_command=orders.restart_command, nats_server=orders.nats_server,
    )  # fmt: skip
    folder = directory / "storm"
    folder.mkdir()
    if orders.database_url is None:
        return storming.storm(folder, ThrownAwayFile(folder), plan, told=told)
    with throw_away(orders.database_url) as database:
        return storming.storm(folder, database, plan, deaf_url=orders.database_url, told=told)


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
