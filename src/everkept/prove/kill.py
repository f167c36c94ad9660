"""Kill at every boundary: a player dies before or after the n-th statement; what is left is recovered and checked.

For each scenario one player plays undisturbed, which tells how many instants there are; then one player dies at each.
Nothing is done twice. Instants between which no byte of the folder changed leave the same behind, and one kill may
stand for all of them. A store that was left in a state that was recovered before (row by row, with the same answers
given) is not recovered again: the recovery is repeatable, so its end is known.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from everkept.ports.faults import NoFaults
from everkept.prove.checks import Violation, check, check_drained, opened
from everkept.prove.grounds import DATABASE, DATABASE_URL, Files, Ground, left_in
from everkept.prove.nursery import OUTCOME, Nursery, Played
from everkept.prove.record import read_record
from everkept.prove.scenario import Scenario
from everkept.prove.scenarios import QUIET_S, SCENARIOS
from everkept.prove.stage import RECORD, START_US

NOT_OF_A_STATE = (DATABASE, DATABASE_URL, RECORD, OUTCOME)
Choice = Callable[[str, Played], Iterable[int]]
"""f(scenario, how it plays undisturbed) → at which of its instants it is killed, counted from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallen:
    """A violation, and the one kill that shows it."""

    scenario: str
    die_at: int
    boundary: str
    violation: Violation
    die_again_at: int | None = None
    """Where the recovery was killed too."""

    def __str__(self) -> str:
        again = "" if self.die_again_at is None else f", its recovery at {self.die_again_at}"
        return f"{self.violation} — {self.scenario}, killed at {self.die_at} ({self.boundary}){again}"


@dataclass(slots=True, kw_only=True)
class ScenarioReport:
    """What came of one scenario."""

    name: str
    statements: int = 0
    """Different ones that its player ran."""
    boundaries: int = 0
    """Instants at which it could be killed."""
    changes: int = 0
    """Those of them that leave something else behind than the one before."""
    kills: int = 0
    double_kills: int = 0
    states: int = 0
    """Different states that were left behind, recovered and checked."""
    fallen: list[Fallen] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(slots=True)
class KillReport:
    scenarios: list[ScenarioReport] = field(default_factory=list)
    statements: set[str] = field(default_factory=set)
    """Every statement at which a player could be killed."""
    points: set[str] = field(default_factory=set)
    """Every instant by its name, such as `at runner.after_claim`."""

    @property
    def kills(self) -> int:
        return sum(s.kills + s.double_kills for s in self.scenarios)

    @property
    def fallen(self) -> list[Fallen]:
        return [f for s in self.scenarios for f in s.fallen]


class Theatre:
    """Plays scenarios over and over in folders of its own under `directory`, which it leaves empty."""

    def __init__(
        self, directory: Path, nursery: Nursery, *, ground: Ground | None = None, synced: bool = False
    ) -> None:
        """`ground`: where the stores lie; in files unless it is told."""
        self._directory = directory
        self._ground = ground or Files()
        self._nursery = nursery
        self._synced = synced
        self.report = KillReport()

    def run(
        self, names: Iterable[str], choose: Choice, *, seed: int = 0, double: float = 0.0,
        until_s: float | None = None,
    ) -> KillReport:  # fmt: skip
        """Play each scenario; `choose` says at which of its instants it is killed.

        `double`: in how many of the recoveries, of 1, the recovery is killed too. Ends at `until_s` (monotonic).
        """
        for name in names:
            with _Rehearsed(
                self._directory, SCENARIOS[name], self._nursery, self._ground, synced=self._synced
            ) as rehearsed:
                self.report.scenarios.append(rehearsed.report)
                self.report.statements |= rehearsed.played.statements
                self.report.points |= set(rehearsed.played.boundaries)
                rehearsed.check_undisturbed()
                random_ = random.Random(f"{seed} {name}")
                for die_at in choose(name, rehearsed.played):
                    if until_s is not None and time.monotonic() >= until_s:
                        return self.report
                    rehearsed.kill(die_at, again=random_.random() < double, chance=random_)
        return self.report


class _Rehearsed:
    """One scenario with its template, and how it plays undisturbed."""

    def __init__(self, directory: Path, scenario: Scenario, nursery: Nursery, ground: Ground, *, synced: bool) -> None:
        self._scenario = scenario
        self._nursery = nursery
        self._ground = ground
        self._synced = synced
        self._home = directory / f"scenario-{scenario.name}"
        self._home.mkdir()
        self._runs = 0
        self._recovered: set[str] = set()
        self._started = time.monotonic()
        self.report = ScenarioReport(name=scenario.name)
        self.start_us = START_US
        self._template = self._home / "template"
        ground.make(self._template)
        if not scenario.from_nothing:
            self.start_us = self._play(self._template, "prepare", START_US).clock_us
        self._whole = self._copy()
        self.played = self._play(self._whole, "act", self.start_us)
        self.report.boundaries = len(self.played.boundaries)
        self.report.changes = len(self.played.changed)
        self.report.statements = len(self.played.statements)

    def __enter__(self) -> _Rehearsed:
        return self

    def __exit__(self, *_: object) -> None:
        self.report.seconds = time.monotonic() - self._started
        for folder in (self._template, self._whole):
            self._ground.remove(folder)
        shutil.rmtree(self._home, ignore_errors=True)

    # ---- folders

    def _copy(self) -> Path:
        self._runs += 1
        folder = self._home / f"run-{self._runs}"
        self._ground.copy(self._template, folder)
        return folder

    def _play(self, folder: Path, part: str, start_us: int) -> Played:
        """Play a part to its end. A store is prepared without waiting for the disk: nobody is killed there."""
        synced = self._synced and part != "prepare"
        played = self._nursery.play(
            self._scenario.name, folder, part=part, start_us=start_us, die_at=None, synced=synced
        )
        assert played is not None
        return played

    # ---- runs

    @property
    def _after_us(self) -> int:
        """When whoever recovers comes along."""
        return self.played.clock_us + int(QUIET_S * 1e6)

    def check_undisturbed(self) -> None:
        """The run that nobody killed has to be right too, and its recovery has nothing to mend."""
        self._settle_up(self._whole, 0, None, deaths=0)

    def kill(self, die_at: int, *, again: bool, chance: random.Random) -> None:
        folder = self._copy()
        try:
            lived = self._nursery.play(
                self._scenario.name, folder, part="act", start_us=self.start_us, die_at=die_at, synced=self._synced
            )
            assert lived is None, "it plays the same each time, so it passes this instant again"
            self.report.kills += 1
            if again and _holds_a_store(folder):
                self._kill_again(folder, die_at, chance)
            else:
                self._settle_up(folder, die_at, None, deaths=1)
        finally:
            self._ground.remove(folder)

    def _kill_again(self, folder: Path, die_at: int, chance: random.Random) -> None:
        die_again_at = 1 + int(600 * chance.random() ** 2)  # a recovery is longer than this seldom
        lived = self._nursery.play(
            self._scenario.name, folder, part="recover", start_us=self._after_us, die_at=die_again_at,
            synced=self._synced,
        )  # fmt: skip
        self.report.double_kills += lived is None
        self._settle_up(folder, die_at, die_again_at, deaths=2)

    def _settle_up(self, folder: Path, die_at: int, die_again_at: int | None, *, deaths: int) -> None:
        """Check what was left, recover it, and check again; whatever is wrong is noted with how to see it again."""
        boundary = self.played.boundaries[die_at - 1] if die_at else "nothing was killed"
        for violation in self._violations(folder, deaths):
            self.report.fallen.append(Fallen(
                scenario=self._scenario.name, die_at=die_at, boundary=boundary, violation=violation,
                die_again_at=die_again_at,
            ))  # fmt: skip

    def _violations(self, folder: Path, deaths: int) -> list[Violation]:
        record = folder / RECORD
        paid: dict[Any, Any] = {}
        found: list[Violation] = []
        state: str | None = None
        try:
            with left_in(folder) as store:
                if store is not None:
                    state = _fingerprint(folder, store)
                    if state in self._recovered:
                        return []
                    if not self._scenario.damaged:
                        found += check(store, record, deaths=deaths)
                    paid = _paid(store)
            if self._scenario.copy is not None and (folder / self._scenario.copy).exists():
                found += check(folder / self._scenario.copy, record)
            self._scenario.play(folder, "recover", self._after_us + deaths, NoFaults(), synced=False)
            with left_in(folder) as store:
                found += check_drained(store, record, deaths=deaths)
                found += _paid_twice(paid, _paid(store))
        except Exception as error:  # noqa: BLE001  (whatever keeps a store from being recovered is what we look for)
            found.append(Violation(guarantee="G1", what="the store could not be recovered", where=repr(error)[:300]))
        self.report.states += 1
        if state is not None and not found:
            self._recovered.add(state)
        return found


# ---- what was left


def _holds_a_store(folder: Path) -> bool:
    with left_in(folder) as store:
        return store is not None


def _fingerprint(folder: Path, store: Path | Any) -> str:
    """Names all that is in a store and what its client was told."""
    digest = hashlib.blake2b(digest_size=16)
    with opened(store) as raw:
        tables = [r[0] for r in raw.execute("select name from sqlite_master where type = 'table' order by name")]
        for table in tables:
            if table != "passage_terms":  # the index's terms, of which the rows are read anyhow
                rows = raw.execute(f'select * from "{table}"').fetchall()
                digest.update(repr((table, rows)).encode())
    for asked in read_record(folder / RECORD).asked if (folder / RECORD).exists() else ():
        digest.update(repr((asked.verb, sorted(asked.what.items(), key=str), asked.told, asked.refused)).encode())
    others = sorted(f for f in folder.iterdir() if f.is_file() and not f.name.startswith(NOT_OF_A_STATE))
    for file in others:
        if ".partial-" not in file.name:  # an unfinished copy has its process's number for a name, and no meaning
            digest.update(repr((file.name, file.read_bytes())).encode())
    return digest.hexdigest()


def _paid(store: Path | Any) -> dict[Any, Any]:
    """{question: (its committed reply, how often it was asked)}."""
    with opened(store) as raw:
        rows = raw.execute(
            "select id, project_id, work, step, version, model, ask, text, asked from replies where text is not null"
        ).fetchall()
    return {row[:7]: row[7:] for row in rows}


def _paid_twice(before: dict[Any, Any], after: dict[Any, Any]) -> Iterator[Violation]:
    for question, kept in before.items():
        if question in after and after[question] != kept:
            where = f"{question[2]} {question[3]}"
            yield Violation(guarantee="G8", what="a question with a committed reply was asked again", where=where)


# ---- how often


def everywhere(_name: str, played: Played) -> Iterable[int]:
    """Each instant in turn."""
    return range(1, len(played.boundaries) + 1)


def at_changes(_name: str, played: Played) -> Iterable[int]:
    """The instants that leave something else behind than the one before them: they stand for all."""
    return played.changed


def beginning(words: str, most: int) -> Choice:
    """So many instants in a row, from the first that has these words in its name."""

    def choose(_name: str, played: Played) -> Iterable[int]:
        first = next(n for n, what in enumerate(played.boundaries, 1) if words in what)
        return range(first, min(first + most, len(played.boundaries) + 1))

    return choose


def sample(seed: int, most: int, *, pipeline: Sequence[str] = ()) -> Choice:
    """A seeded choice of at most `most` instants of each scenario, every second one of those that change something.

    Of the scenarios in `pipeline`, all that do.
    """

    def choose(name: str, played: Played) -> Iterable[int]:
        if name in pipeline:
            return played.changed
        chance = random.Random(f"{seed} {name}")
        some = set(chance.sample(played.changed, min(len(played.changed), (most + 1) // 2)))
        rest = [n for n in everywhere(name, played) if n not in some]
        return sorted(some | set(chance.sample(rest, min(len(rest), most - len(some)))))

    return choose
