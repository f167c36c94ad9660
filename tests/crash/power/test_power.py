"""A smoke of layer 3: power cuts in both journal modes, and planted bugs that it must find.

`python -m tests.crash.power --images 2000` is the long form; a violation names the seed, the mode and the cut.
"""

from __future__ import annotations

import random
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.stubs import planted_migration

from everkept.ports.clock import VirtualClock
from everkept.prove import power
from everkept.prove.power_disk import Disk, Image, Replay, write_image
from everkept.prove.power_mix import Connect, Mix
from everkept.prove.record import Record
from everkept.store import sqlite
from everkept.store.backup import back_up, restore, verify
from everkept.store.connection import Connection
from everkept.store.dialect import sqlite_dialect
from everkept.store.migrate import SCHEMA, revision, upgrade
from everkept.store.sqlite import open_file
from everkept.store.writer import Call, Writer

pytest.importorskip("apsw")
MODES = pytest.mark.parametrize("wal", [True, False], ids=["wal", "truncate"])
NOW = datetime(2026, 5, 1, tzinfo=UTC)
SEED_OF_A_RESTORE = 3
"""Such a run also erases a project."""


MESSAGES = 10


# ---- nothing is lost


@MODES
def test_power_cut_takes_nothing_that_was_told(tmp_path: Path, *, wal: bool) -> None:
    report = power.cut_runs(
        tmp_path, SEED_OF_A_RESTORE, until=lambda images: images >= 22, modes=[wal], steps=24, cuts=16
    )
    assert (report.not_run, report.violations) == (None, [])
    assert (report.images, report.again, report.drained) == (22, 6, 2)


def test_torture_says_what_it_did_and_leaves_nothing_behind(tmp_path: Path) -> None:
    report = power.torture(tmp_path, seed=1, seconds=0.5)
    assert (report.not_run, report.violations, list(tmp_path.iterdir())) == (None, [], [])


# ---- planted bugs are found


def opened_with(synchronous: str) -> Connect:
    def connect(path: Path, read_only: bool) -> Any:
        raw = open_file(sqlite.choose_driver(), path, read_only=read_only)
        raw.execute(f"pragma synchronous = {synchronous}")
        return raw

    return connect


def losing_cuts(room: Path, *, wal: bool, connect: Connect | None = None, seed: int = 1) -> int:
    """Of the cuts just as an answer had left, how many took what it told."""
    recorded = power.record_talk(room, seed, wal=wal, messages=MESSAGES, connect=connect)
    replay, chance, losing = Replay(recorded.disk), random.Random(seed), 0
    for moment in recorded.answers:
        replay.go_to(moment)
        found = power.check_image(recorded, replay.cut(chance), moment, room)
        losing += "G1" in {violation.guarantee for violation in found}
    return losing


@MODES
def test_sync_as_it_is_loses_nothing_that_was_just_told(tmp_path: Path, *, wal: bool) -> None:
    assert losing_cuts(tmp_path, wal=wal) == 0


@MODES
@pytest.mark.parametrize("synchronous", ["normal", "off"])
def test_weaker_sync_is_found(tmp_path: Path, synchronous: str, *, wal: bool) -> None:
    assert losing_cuts(tmp_path, wal=wal, connect=opened_with(synchronous)) > 0


@MODES
def test_answer_before_the_commit_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, wal: bool) -> None:
    perform, answer = Writer._perform, Call.answer

    def performed_and_answered(self: Writer, connection: Connection, batch: list[Call]) -> None:
        perform(self, connection, batch)
        for call in batch:
            call.answer()

    def answered_once(self: Call) -> None:
        if not self.future.done():
            answer(self)

    monkeypatch.setattr(Writer, "_perform", performed_and_answered)
    monkeypatch.setattr(Call, "answer", answered_once)
    assert losing_cuts(tmp_path, wal=wal) > 0


# ---- what is done once


def test_folders_of_a_new_store_last_before_anything_is_told(tmp_path: Path) -> None:
    """Nobody else syncs the name of a folder: without it the whole of a synced store is gone."""
    disk = Disk(tmp_path)
    place = "homes/ana/everkept.db"
    with power.recording(disk, wal=True) as driver, closing(open_file(driver, disk.root / place)) as raw:
        raw.execute("create table told(x)")
    replay = Replay(disk)
    replay.go_to(disk.moment)
    assert [image for image in (replay.cut(random.Random(seed)) for seed in range(20)) if place not in image] == []


def cuts(disk: Disk, *, first: int = 0, images: int, seed: int = 1) -> list[tuple[int, Image]]:
    """(moment, what a power cut then may leave), spread over what was done from `first` on."""
    chance, replay = random.Random(seed), Replay(disk)
    found = []
    for moment in sorted(chance.randint(first, disk.moment) for _ in range(images)):
        replay.go_to(moment)
        found.append((moment, replay.cut(chance)))
    replay.go_to(disk.moment)
    return [*found, (disk.moment, replay.cut(chance))]


def unclosed_store(room: Path) -> Image:
    """A disk with a store, a backup of it, and what was said after the backup in the store's log."""
    (room / "before").mkdir()
    disk = Disk(room / "before")
    with power.recording(disk, wal=True):
        mix = Mix(disk.root / power.PLACE, Record(room / "record.jsonl"), 1)
        mix.say_alone()
        back_up(disk.root / power.PLACE, disk.root / power.BACKUP)
        mix.say_alone()
        replay = Replay(disk)
        replay.go_to(disk.moment)
        image = replay.whole()
        mix.close()
    return image


def test_log_of_a_lost_store_is_not_played_into_the_restored_one(tmp_path: Path) -> None:
    image = unclosed_store(tmp_path)
    root = tmp_path / "disk"
    root.mkdir()
    write_image(image, root)
    (root / power.PLACE).unlink()
    disk = Disk(root)
    with power.recording(disk, wal=True):
        restore(root / power.BACKUP, root / power.PLACE, NOW)
    wrong = []
    by_names = {frozenset(left): (moment, left) for moment, left in cuts(disk, first=disk.moment - 8, images=400)}
    for number, (moment, left) in enumerate(by_names.values()):
        place = tmp_path / f"image-{number}"
        place.mkdir()
        write_image(left, place)
        if (place / power.PLACE).exists():
            wrong += [(moment, said) for said in [messages(place / power.PLACE)] if said != 1]
        elif moment == disk.moment:
            wrong.append((moment, 0))
    assert wrong == []


def messages(store: Path) -> int:
    with closing(sqlite.choose_driver().module.connect(str(store))) as raw:
        count: int = raw.execute("select count(*) from events").fetchone()[0]
        return count


@MODES
def test_migration_is_whole_or_not_there(tmp_path: Path, *, wal: bool) -> None:
    image = unclosed_store(tmp_path)
    root = tmp_path / "disk"
    root.mkdir()
    write_image(image, root)
    migrations = planted_migration.plant(tmp_path / "planted")
    with closing(open_file(sqlite.choose_driver(), root / power.PLACE)) as raw:
        raw.execute("pragma wal_checkpoint(truncate)").fetchall()
        raw.execute(f"pragma journal_mode = {'wal' if wal else 'truncate'}")
    disk = Disk(root)
    with power.recording(disk, wal=wal) as driver, closing(open_file(driver, root / power.PLACE)) as raw:
        begun = disk.moment
        upgrade(Connection(raw, sqlite_dialect(), VirtualClock()), root / power.PLACE, migrations)
        told = disk.moment
    old, new = (SCHEMA, revision(SCHEMA), "ok", False), (SCHEMA + 1, revision(SCHEMA + 1), "ok", True)
    wrong = []
    for number, (moment, left) in enumerate(cuts(disk, first=begun, images=40)):
        place = tmp_path / f"image-{number}"
        place.mkdir()
        write_image(left, place)
        found = planted_migration.state(place / power.PLACE)
        if found != new and (moment >= told or found != old):
            wrong.append((moment, found))
        if found == new:
            verify(place / "home" / f"everkept.before-{SCHEMA + 1}.db")
    assert wrong == []
