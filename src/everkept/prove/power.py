"""Layer 3 of the proof: power cuts (G1, G2, G5, G6, G10, G11).

The real store, service and jobs work on a disk that remembers every write and sync. Afterwards the disk is built again
as a power cut at any moment may have left it, the store is opened there as after any other end, and what clients had
been told by that moment is looked for.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from everkept.errors import EverkeptError
from everkept.ports.clock import SystemClock, VirtualClock
from everkept.prove.checks import Violation, check, check_drained
from everkept.prove.power_disk import Disk, Image, Replay, read_image, write_image
from everkept.prove.power_mix import SIDE, Connect, House, Mix
from everkept.prove.record import Asked, History, Record
from everkept.store.backup import back_up, restore, verify
from everkept.store.sqlite import Driver, choose_driver, open_file
from everkept.store.store import Store

PLACE: Final = "home/everkept.db"
BACKUP: Final = "backup.db"
STEPS: Final = 40
"""Things done in one recorded run."""
CUTS_PER_RUN: Final = 50
"""Moments at which one recorded run is cut, spread over all of it."""
DRAIN_EVERY: Final = 10
"""Of so many images one is worked to its end, and one is cut again in the middle of its recovery."""
CUTS_AGAIN: Final = 3
DAY_US: Final = 86_400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerReport:
    images: int
    """Disks that were built and opened."""
    violations: list[Violation]
    not_run: str | None
    """Why nothing was done; None where something was."""
    runs: int = 0
    again: int = 0
    """Images of these that were left by a second cut, in the middle of the recovery from a first."""
    drained: int = 0
    """Images that were worked to their end."""

    @property
    def cuts(self) -> int:
        """How often the power was cut: each image is what one cut left."""
        return self.images


def torture(directory: Path, seed: int, seconds: float) -> PowerReport:
    """Record and cut until the time is over, in both journal modes by turns. Needs apsw, and the process for itself.

    `directory` is an existing folder; what is made in it is removed again.
    """
    missing = why_not()
    if missing is not None:
        return PowerReport(images=0, violations=[], not_run=missing)
    clock = SystemClock()
    end_s = clock.monotonic_s() + seconds
    return cut_runs(directory, seed, until=lambda _images: clock.monotonic_s() >= end_s)


def why_not() -> str | None:
    return None if find_spec("apsw") else "apsw is not installed: pip install 'everkept[prove]'"


def cut_runs(
    directory: Path, seed: int, *, until: Callable[[int], bool], modes: Sequence[bool] = (True, False),
    steps: int = STEPS, cuts: int = CUTS_PER_RUN,
) -> PowerReport:  # fmt: skip
    """Run after run until `until(images)`; the same seed and mode make the same run again.

    `modes`, by turns: with WAL or, as older libraries get it, without. `steps` and `cuts` are of one run.
    """
    tally = _Tally(until)
    number = 0
    while not tally.full:
        with _room(directory, f"power-{seed}-{number}") as room:
            recorded = record(room, seed + number, wal=modes[number % len(modes)], steps=steps)
            tally.runs += 1
            cut_up(recorded, room, tally, cuts)
        number += 1
    return tally.report()


@dataclass(slots=True)
class _Tally:
    until: Callable[[int], bool]
    runs: int = 0
    images: int = 0
    again: int = 0
    drained: int = 0
    violations: list[Violation] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return self.until(self.images)

    def report(self) -> PowerReport:
        return PowerReport(
            images=self.images, violations=self.violations, not_run=None, runs=self.runs, again=self.again,
            drained=self.drained,
        )  # fmt: skip


@contextmanager
def _room(directory: Path, name: str) -> Iterator[Path]:
    """An empty folder for as long as it is needed."""
    room = directory / name
    room.mkdir()
    try:
        yield room
    finally:
        shutil.rmtree(room)


# ---- recording


class DatedRecord(Record):
    """A record that knows how far the disk was at each of its lines."""

    def __init__(self, path: Path, disk: Disk, earlier: Sequence[bytes] = ()) -> None:
        """`earlier`: lines of another record that it goes on from."""
        path.write_bytes(b"".join(line + b"\n" for line in earlier))
        super().__init__(path)
        self._disk = disk
        self._earlier = len(earlier)
        self._moments = [0] * len(earlier)

    def _write(self, entry: Mapping[str, Any]) -> None:
        super()._write(entry)
        self._moments.append(self._disk.moment)

    @property
    def lines(self) -> list[bytes]:
        return self.path.read_bytes().split(b"\n")[:-1]

    @cached_property
    def _whole(self) -> History:
        return self.read()

    @property
    def answers(self) -> list[int]:
        """The moments at which somebody was told something."""
        lines = [a.told_line for a in self._whole.asked if a.told_line is not None]
        return [self._moments[line] for line in lines if line >= self._earlier]

    def at(self, moment: int) -> History:
        """What had been asked and told by then."""
        return History([self._as_of(a, moment) for a in self._whole.asked if self._moments[a.line] <= moment])

    def at_line(self, lines: int) -> History:
        """What had been asked and told in its first lines."""
        return History([self._as_of(a, sys.maxsize) for a in self._whole.asked if a.line < lines])

    def _as_of(self, asked: Asked, moment: int) -> Asked:
        if asked.told_line is None or self._moments[asked.told_line] <= moment:
            return asked
        return replace(asked, told=None, told_line=None, refused=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """A store and its record, from when it may be in place until the next one must be."""

    record: DatedRecord
    asked: int
    told: int
    gone: str | None = None
    """A text that this store does not hold, and the one before it did."""


Promise = Callable[[Path, int], list[Violation]]
"""f(root of an image, its moment) → what is wrong there, besides the store."""


@dataclass(slots=True, kw_only=True)
class Recorded:
    """One run on a disk that remembers."""

    seed: int
    wal: bool
    disk: Disk
    eras: list[Era]
    promises: list[Promise] = field(default_factory=list)
    model: bool = False
    now_us: int = 0
    """The virtual clock at the end."""

    @property
    def answers(self) -> list[int]:
        """The moments at which somebody was told something, in order."""
        return [moment for era in self.eras for moment in era.record.answers]

    def eras_at(self, moment: int) -> list[Era]:
        """Any one of them may be there after a cut at this moment."""
        followed = zip(self.eras, [era.told for era in self.eras[1:]] + [sys.maxsize], strict=True)
        return [era for era, until in followed if era.asked <= moment < until]


@contextmanager
def recording(disk: Disk, *, wal: bool) -> Iterator[Driver]:
    """All of Everkept in this process uses the disk that remembers, until the end."""
    from everkept.prove import power_driver, power_vfs

    driver, ordinary = power_driver.driver(wal=wal), choose_driver
    users = [
        module for name, module in sorted(sys.modules.items())
        if name.startswith("everkept.") and vars(module).get("choose_driver") is ordinary
    ]  # fmt: skip
    vfs = power_vfs.RecordingVfs(disk)
    for module in users:
        vars(module)["choose_driver"] = lambda: driver
    try:
        with power_vfs.recorded_calls(disk):
            yield driver
    finally:
        for module in users:
            vars(module)["choose_driver"] = ordinary
        vfs.unregister()


def record(room: Path, seed: int, *, wal: bool, steps: int = STEPS) -> Recorded:
    """A seeded run: use, a backup, more use, the backup put back, and use again. Every other run erases a project."""
    recorded = _begin(room, seed, wal=wal)
    disk, first = recorded.disk, recorded.eras[0].record
    with recording(disk, wal=wal):
        mix = Mix(disk.root / PLACE, first, seed)
        mix.live(steps // 2)
        if seed % 3 == 0:
            _with_restore(recorded, mix, room, steps)
        mix.live(steps // 2)
        if seed % 2:
            mix.erase_project(SIDE)
            mix.live(steps // 4)
        mix.close()
    recorded.model, recorded.now_us = mix.model, mix.now_us
    _require_complete(disk)
    return recorded


def record_talk(room: Path, seed: int, *, wal: bool, messages: int, connect: Connect | None = None) -> Recorded:
    """Messages, each answered before the next: the shortest run in which there is something to lose.

    `connect` opens the store's connections in place of its own way.
    """
    recorded = _begin(room, seed, wal=wal)
    with recording(recorded.disk, wal=wal):
        mix = Mix(recorded.disk.root / PLACE, recorded.eras[0].record, seed, connect=connect)
        for _ in range(messages):
            mix.say_alone()
        mix.close()
    recorded.model, recorded.now_us = mix.model, mix.now_us
    return recorded


def _begin(room: Path, seed: int, *, wal: bool) -> Recorded:
    (room / "disk").mkdir()
    disk = Disk(room / "disk")
    first = DatedRecord(room / "record-1.jsonl", disk)
    return Recorded(seed=seed, wal=wal, disk=disk, eras=[Era(record=first, asked=0, told=0)])


def _require_complete(disk: Disk) -> None:
    """What was written down is all that was done: replayed without a loss it is the disk itself."""
    end = Replay(disk)
    end.go_to(disk.moment)
    seen, real = end.whole(), read_image(disk.root)
    wrong = sorted(place for place in seen.keys() | real.keys() if seen.get(place) != real.get(place))
    assert not wrong, f"the recording missed what was done to {', '.join(wrong)}"


def _with_restore(recorded: Recorded, mix: Mix, room: Path, steps: int) -> None:
    """Back up, go on, put the backup back. Whoever wrote in between has to read that it is gone."""
    disk, store, target = recorded.disk, recorded.disk.root / PLACE, recorded.disk.root / BACKUP
    first = recorded.eras[0].record
    kept, before = mix.known(), len(first.lines)
    back_up(store, target)
    recorded.promises.append(partial(_backup_holds, first, before, disk.moment))
    gone = mix.say_alone()
    mix.live(steps // 4)
    mix.close()
    asked = disk.moment
    second = DatedRecord(room / "record-2.jsonl", disk, first.lines[:before])
    restore(target, store, datetime.fromtimestamp(mix.now_us / 1e6, UTC))
    recorded.eras.append(Era(record=second, asked=asked, told=disk.moment, gone=gone))
    mix.go_on(second, kept)


def _backup_holds(record: DatedRecord, lines: int, told: int, root: Path, moment: int) -> list[Violation]:
    """A backup is whole or not there; once it was told it is there, with all that had been told before it began."""
    target = root / BACKUP
    if not target.exists():
        gone = Violation(guarantee="G1", what="a backup that was told is gone", where=BACKUP)
        return [gone] if moment >= told else []
    try:
        verify(target)
    except EverkeptError as error:
        return [Violation(guarantee="G1", what="a backup is not whole", where=error.message)]
    return check(target, record.at_line(lines))


# ---- cutting


def cut_up(recorded: Recorded, room: Path, tally: _Tally, cuts: int) -> None:
    """Cut one run at many moments; each image is opened and checked, some are worked on, some are cut again."""
    chance = random.Random(f"{recorded.seed}/moments")
    replay = Replay(recorded.disk)
    for number, moment in enumerate(_moments(recorded, chance, cuts)):
        if tally.full:
            return
        replay.go_to(moment)
        image = replay.cut(random.Random(f"{recorded.seed}/{number}"))
        tally.images += 1
        found = check_image(recorded, image, moment, room)
        if not found and number % DRAIN_EVERY == 0:
            found = check_drain(recorded, image, moment, room)
            tally.drained += 1
        if not found and number % DRAIN_EVERY == DRAIN_EVERY // 2:
            found = cut_again(recorded, image, moment, room, tally)
        mode = "wal" if recorded.wal else "truncate"
        cut = f"seed {recorded.seed}, {mode}, image {number}, cut after deed {moment} of {recorded.disk.moment}"
        tally.violations += [replace(violation, where=f"{violation.where}; {cut}") for violation in found]


def _moments(recorded: Recorded, chance: random.Random, cuts: int) -> list[int]:
    """Half of them anywhere, half just as an answer had left: then all that it promises is due."""
    answers = recorded.answers
    anywhere = [chance.randint(0, recorded.disk.moment) for _ in range(cuts // 2)]
    return sorted([*anywhere, *chance.sample(answers, min(len(answers), cuts // 2))])


def check_image(recorded: Recorded, image: Image, moment: int, room: Path, *, deaths: int = 1) -> list[Violation]:
    """Open the store as a power cut left it, and look for what was told by then."""
    with _room(room, "image") as root:
        write_image(image, root)
        try:
            with closing(Store(root / PLACE, threads=False, connect=_ordinary(wal=recorded.wal))) as store:
                store.open()
                store.read_now(lambda _conn: None)  # stays open, so that the end of the check has nothing to sync
                failing = store.writer.failing
                found = _any_era(recorded, moment, root, partial(check, deaths=deaths))
        except EverkeptError as error:
            return [Violation(guarantee="G1", what="the store does not open after a power cut", where=error.message)]
        if failing is not None:
            found.append(Violation(guarantee="G1", what="the store can only be read after a power cut", where=failing))
        return found + [violation for promise in recorded.promises for violation in promise(root, moment)]


def check_drain(recorded: Recorded, image: Image, moment: int, room: Path) -> list[Violation]:
    """Work an image to its end: everything is remembered or visibly failed, and nothing erased is left."""
    with _room(room, "drain") as root:
        write_image(image, root)
        with closing(_house(recorded, root, _ordinary(wal=recorded.wal))) as house:
            house.drain()
        return _any_era(recorded, moment, root, partial(check_drained, deaths=1))


def cut_again(recorded: Recorded, image: Image, moment: int, room: Path, tally: _Tally) -> list[Violation]:
    """The power goes again while the store recovers and goes on."""
    chance = random.Random(f"{recorded.seed}/{moment}/again")
    with _room(room, "again") as root:
        write_image(image, root)
        disk = Disk(root)
        with recording(disk, wal=recorded.wal), closing(_house(recorded, root, None)) as house:
            house.work(1.0)
        replay = Replay(disk)
        for second in sorted(chance.randint(0, disk.moment) for _ in range(CUTS_AGAIN)):
            replay.go_to(second)
            tally.images += 1
            tally.again += 1
            found = check_image(recorded, replay.cut(chance), moment, room, deaths=2)
            if found:
                return [replace(v, where=f"{v.where}; again after deed {second} of {disk.moment}") for v in found]
    return []


def _house(recorded: Recorded, root: Path, connect: Connect | None) -> House:
    """A process that is started on the disk a day later."""
    clock = VirtualClock(recorded.now_us + DAY_US)
    return House(root / PLACE, clock, model=recorded.model, connect=connect)


def _ordinary(*, wal: bool) -> Connect:
    """The driver that the store chooses, in the journal mode of the run. An image is cut once, so it need not sync."""
    driver = replace(choose_driver(), wal=wal)

    def connect(path: Path, read_only: bool) -> Any:  # noqa: FBT001  (the store's own signature)
        raw = open_file(driver, path, read_only=read_only)
        raw.execute("pragma synchronous = off")
        return raw

    return connect


def _any_era(
    recorded: Recorded, moment: int, root: Path, look: Callable[[Path, History], list[Violation]]
) -> list[Violation]:  # fmt: skip
    """What is wrong with the store by the record that fits it best."""
    found = [_in_era(era, moment, root, look) for era in recorded.eras_at(moment)]
    return min(found, key=len)


def _in_era(
    era: Era, moment: int, root: Path, look: Callable[[Path, History], list[Violation]]
) -> list[Violation]:  # fmt: skip
    try:
        found = look(root / PLACE, era.record.at(moment))
    except choose_driver().module.DatabaseError as error:
        found = [Violation(guarantee="G1", what="the store cannot be read after a power cut", where=str(error))]
    if era.gone is not None and _says(root / PLACE, era.gone):
        found.append(Violation(guarantee="G1", what="a restore that was told did not last", where=era.gone))
    return found


def _says(store: Path, text: str) -> bool:
    raw = choose_driver().module.connect(str(store))
    try:
        return raw.execute("select 1 from events where content = ?", (text,)).fetchone() is not None
    finally:
        raw.close()
