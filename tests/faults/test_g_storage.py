"""G: storage. Several processes on one file, full and read-only disks, backups, and a store that does not swell.

The migrations and restores of G04 die at every statement in `tests/contract/test_migrations.py` and `test_backup.py`.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.factories import HOUR_S
from tests.faults.adapter import (
    Added,
    Died,
    MemorySystem,
    Message,
    OpensSystems,
    Rejected,
    contents,
    copies,
    finds,
    let_it_work,
)
from tests.faults.wire import Failed
from tests.faults.worlds import a_world, say
from tests.stubs.planted_migration import plant, state, upgrade_and_die

from everkept import config
from everkept.errors import ConfigInvalid, EverkeptError, StoreFull, StoreNotSupported
from everkept.ports.clock import VirtualClock
from everkept.store.backup import back_up, restore
from everkept.store.connection import Connection
from everkept.store.dialect import sqlite_dialect
from everkept.store.facts import events_of_facts, facts_by_id
from everkept.store.migrate import SCHEMA, upgrade
from everkept.store.receipts import receipts_of
from everkept.store.search import delete_passages, find_passages_of
from everkept.store.sqlite import choose_driver, open_file, translate
from everkept.store.store import Store
from everkept.store.streams import events_at
from everkept.store.tables import metadata

pytestmark = pytest.mark.usefixtures("each_database")
of_a_file = pytest.mark.only_on("sqlite", reason="it is about a file; test_g_server.py has what a server has instead")
SAID = "I live in Lisbon."
DAY_S = 24 * HOUR_S
PATIENCE_S = 30.0
"""What is not deadlocked is done within this, also on a slow machine."""


def tell(
    system: MemorySystem, text: str = SAID, *, thread: str = "t1", subject: str = "ana", key: str | None = None
) -> Added:
    return system.add(thread, [Message(content=text)], subject=subject, key=key)


# ---- G01: one file, several processes


def test_g01_three_processes_write_and_work_one_store_at_once(another: OpensSystems) -> None:
    systems = [another() for _ in range(3)]

    def write(one: MemorySystem, name: str) -> None:
        for n in range(4):
            tell(one, f"I like {name} number {n}.", thread=f"{name}-{n % 2}", subject=name, key=f"{name}-{n}")

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(write, one, f"n{i}{j}") for i, one in enumerate(systems) for j in range(2)]:
            done.result(PATIENCE_S * 2)
    for one in systems:
        one.pass_time(0.6 * HOUR_S)
    assert all(one.wait_idle(60) for one in systems)
    for i in range(3):
        for j in range(2):
            assert len(contents(systems[j], f"n{i}{j}", "message")) == 4
            kept = Counter(contents(systems[0], f"n{i}{j}", "fact"))
            assert len(kept) == 4
            assert set(kept.values()) == {1}
    assert [one.trouble() for one in systems] == [[]] * 3


def test_g01_what_one_session_takes_back_destroys_nothing_of_another(another: OpensSystems) -> None:
    """Refused batches of one process between the writes of another, also at the same moment."""
    good, bad = another(), another()
    tell(good, "the first", key="same", subject="ana", thread="t0")

    def refuse() -> int:
        refused = 0
        for n in range(20):
            try:
                bad.add("t0", [Message(content=f"fine {n}"), Message(content="\x00")], subject="ana", key=f"bad-{n}")
            except Rejected:
                refused += 1
            try:
                tell(bad, f"another {n}", key="same", subject="ana", thread="t0")
            except Rejected:
                refused += 1
        return refused

    with ThreadPoolExecutor(2) as pool:
        refusing = pool.submit(refuse)
        for n in range(40):
            tell(good, f"line {n}", key=f"good-{n}", subject="ana", thread="t1")
        assert refusing.result(PATIENCE_S) == 40
    assert Counter(contents(good, "ana", "message")) == Counter(["the first", *[f"line {n}" for n in range(40)]])


def test_g01_a_writer_that_dies_in_its_transaction_locks_nobody_out(another: OpensSystems) -> None:
    dying, living = another(die_at="writer.before_commit:15"), another()  # its start has some commits of its own

    def write_until_it_dies() -> None:
        for n in range(40):
            tell(dying, f"maybe {n}", thread="d", subject="bob", key=f"d{n}")

    with pytest.raises(Died):
        write_until_it_dies()
    start = time.monotonic()
    tell(living)
    assert time.monotonic() - start < PATIENCE_S
    assert finds(living, "ana", "Lisbon")


# ---- G02: long lists, many sessions


@pytest.mark.own_engine("store functions that take lists")
def test_g02_a_list_of_ten_thousand_is_one_statement(tmp_path: Path) -> None:
    many = list(range(1, 10_001))
    with a_world(tmp_path) as world:
        say(world, SAID)
        world.live(60, every=20)
        project = world.project.id
        assert len(world.read(facts_by_id, project, many)) == 1
        assert len(world.read(events_of_facts, many)) == 1
        assert len(world.read(events_at, project, [(1, n) for n in many])) == 1
        assert len(world.read(receipts_of, project, [(1, 1)] * 2_000, world.settings)) == 2_000
        assert len(world.read(find_passages_of, "fact", many)) == 1
        world.write(delete_passages, project, many)
        assert world.value("select count(*) from passages") == 0


def test_g02_a_batch_as_large_as_is_allowed_and_one_larger(system: MemorySystem) -> None:
    most = [Message(content=f"line {n}") for n in range(1_000)]
    assert len(system.add("t", most, subject="ana", key="k").ids) == 1_000
    assert len(contents(system, "ana", "message")) == 1_000
    with pytest.raises(Rejected, match=r"1[, ]?000"):
        system.add("t", [*most, Message(content="one more")], subject="ana", key="k2")
    assert len(contents(system, "ana", "message")) == 1_000


def test_g02_writes_reads_and_deletes_at_once_wait_for_nobody_for_ever(system: MemorySystem) -> None:
    def busy(n: int) -> None:
        for turn in range(4):
            tell(system, f"I like tea {turn}.", thread=f"t{n}-{turn}", subject=f"s{n}")
            finds(system, f"s{n}", "tea")
            if turn % 2:
                system.delete(thread=f"t{n}-{turn}")
        system.delete(subject=f"s{n}")

    with ThreadPoolExecutor(12) as pool:
        for done in [pool.submit(busy, n) for n in range(12)]:
            done.result(PATIENCE_S * 2)
    assert [system.list(subject=f"s{n}") for n in range(12)] == [[]] * 12


# ---- G03: disks


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of its own that holds no more than `size`. Skips where nobody may mount one."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def fill(system: MemorySystem) -> list[str]:
    """Write until it is refused; the texts that were accepted."""
    accepted: list[str] = []
    for n in range(400):
        text = f"box {n} " + f"holds {n} " * 1_500
        try:
            tell(system, text, thread=f"t{n}", key=f"k{n}")
        except Failed as full:
            if "free space" not in str(full):
                raise
            return accepted
        accepted.append(text)
    raise AssertionError("the disk never filled")


@of_a_file
@pytest.mark.own_engine("a disk that fills")
def test_g03_a_full_disk_is_said_costs_nothing_and_is_recovered_from(another: OpensSystems, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "4m") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(b"\x00" * 1_500_000)
        system = another(disk)
        accepted = fill(system)
        assert accepted
        assert contents(system, "ana", "message") == accepted
        assert finds(system, "ana", "box")
        ballast.unlink()
        tell(system, "room again", thread="after", key="after")
        assert contents(system, "ana", "message") == [*accepted, "room again"]
        system.kill()
        system.open()
        assert contents(system, "ana", "message") == [*accepted, "room again"]
        system.kill()


@of_a_file
@pytest.mark.own_engine("a file that may not grow")
@pytest.mark.parametrize("most", [700_000, 1_500_000])
def test_g03_a_file_that_may_not_grow_refuses_and_keeps_what_it_has(another: OpensSystems, most: int) -> None:
    """What the log or the database cannot hold is refused, and nothing else is lost."""
    first = another()
    tell(first, "the first of all", thread="first", key="first")
    first.close()
    system = another(limits={"RLIMIT_FSIZE": most})
    accepted: list[str] = []
    for n in range(200):
        text = f"box {n} " + f"holds {n} " * 1_500
        try:
            tell(system, text, thread=f"t{n}", key=f"k{n}")
        except Failed:
            break
        accepted.append(text)
    else:
        raise AssertionError("the limit was never reached")
    assert contents(system, "ana", "message") == ["the first of all", *accepted]
    system.kill()
    free = another()
    assert contents(free, "ana", "message") == ["the first of all", *accepted]
    tell(free, "room again", thread="after", key="after")
    let_it_work(free)
    assert finds(free, "ana", "room again")


@of_a_file
@pytest.mark.own_engine("a file system that is read-only")
def test_g03_a_read_only_file_system_is_said_and_recovered_from(another: OpensSystems, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "16m") as disk:
        system = another(disk)
        tell(system)
        system.close()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        reader = another(disk)
        assert finds(reader, "ana", "Lisbon")
        with pytest.raises(Failed, match="mend"):
            tell(reader, "I like black tea.", thread="t2")
        assert contents(reader, "ana", "message") == [SAID]
        reader.kill()
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        again = another(disk)
        assert contents(again, "ana", "message") == [SAID]
        tell(again, "I like green tea.", thread="t2")
        assert finds(again, "ana", "tea")
        again.kill()
        system.kill()


@of_a_file
@pytest.mark.own_engine("the errors of its database")
@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("database or disk is full", "free space"),
        ("disk I/O error", "look at its disk"),
        ("attempt to write a readonly database", "can only be read"),
        ("unable to open database file", "mend the permissions"),
    ],
)
def test_g03_what_the_database_says_of_the_disk_becomes_an_error_that_says_what_to_do(text: str, mend: str) -> None:
    told = translate(choose_driver().module.OperationalError(text))
    assert isinstance(told, StoreFull)
    assert mend in str(told)


# ---- G04: upgrades, backups, restores


@of_a_file
@pytest.mark.own_engine("its migrations")
def test_g04_an_upgrade_killed_half_way_keeps_everything_and_is_done_at_the_next_start(tmp_path: Path) -> None:
    planted = plant(tmp_path / "planted")
    with a_world(tmp_path) as world:
        say(world, SAID)
        file = world.file
    half = 12
    child = os.fork()
    if child == 0:
        upgrade_and_die(file, planted, half)
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])

    assert state(file)[0] == SCHEMA
    raw = open_file(choose_driver(), file)
    upgrade(Connection(raw, sqlite_dialect(), VirtualClock()), file, planted)
    assert raw.execute("select content from events").fetchall() == [(SAID,)]
    raw.close()
    assert state(file)[0] == SCHEMA + 1


@of_a_file
@pytest.mark.own_engine("its schema's number")
def test_g04_a_store_of_a_newer_program_is_refused_by_name_and_not_touched(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        say(world, SAID)
        world.do(f"pragma user_version = {SCHEMA + 1}")
        file = world.file
    before = file.read_bytes()
    with pytest.raises(StoreNotSupported, match=f"schema {SCHEMA + 1}"):
        Store(file, threads=False).open()
    assert file.read_bytes() == before


@of_a_file
@pytest.mark.own_engine("its backups")
def test_g04_a_backup_beside_a_writer_is_one_instant_and_a_restore_brings_exactly_that(tmp_path: Path) -> None:
    """Two rows of one commit, over and over: a copy that holds one without the other is two instants."""
    with a_world(tmp_path) as world:
        file, stop = world.file, threading.Event()
        world.write(lambda conn: conn.raw.execute("create table pairs(side text, n integer)"))

        def write() -> None:
            raw, n = open_file(choose_driver(), file), 0
            while not stop.is_set():
                n += 1
                raw.execute("begin immediate")
                raw.execute("insert into pairs values('left', ?)", (n,))
                raw.execute("insert into pairs values('right', ?)", (n,))
                raw.execute("commit")
            raw.close()

        writer = threading.Thread(target=write)
        writer.start()
        copies_made = [tmp_path / f"{n}.db" for n in range(5)]
        for copy in copies_made:
            back_up(file, copy)
        stop.set()
        writer.join()
    seen = [sides(copy) for copy in copies_made]
    assert [left for left, right in seen if left != right] == []
    assert seen == sorted(seen, key=lambda pair: len(pair[0]))
    restore(copies_made[2], file, datetime(2026, 3, 1, tzinfo=UTC))
    assert sides(file) == seen[2]


def sides(file: Path) -> tuple[list[int], list[int]]:
    raw = choose_driver().module.connect(str(file))
    try:
        left, right = (
            [n for (n,) in raw.execute("select n from pairs where side = ? order by n", (side,))]
            for side in ("left", "right")
        )
    finally:
        raw.close()
    return left, right


@of_a_file
@pytest.mark.own_engine("its backups")
def test_g04_a_restore_of_a_damaged_backup_moves_nothing(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        say(world, SAID)
        file = world.file
        back_up(file, tmp_path / "b.db")
    whole = file.read_bytes()
    damaged = bytearray((tmp_path / "b.db").read_bytes())
    damaged[4096 * 3 : 4096 * 30] = bytes(4096 * 27)
    (tmp_path / "b.db").write_bytes(damaged)
    with pytest.raises(EverkeptError):
        restore(tmp_path / "b.db", file, datetime(2026, 3, 1, tzinfo=UTC))
    assert file.read_bytes() == whole


# ---- G05: growth


@pytest.mark.own_engine("its tables")
def test_g05_nothing_is_written_again_for_every_message(tmp_path: Path) -> None:
    """Rows grow with what was said, by a constant, and nothing is a page that each event makes longer."""
    with a_world(tmp_path) as world:

        def rows() -> Counter[str]:
            return Counter({t.name: world.value(f"select count(*) from {t.name}") for t in metadata.sorted_tables})

        def talk(first: int) -> Counter[str]:
            before = rows()
            for n in range(first, first + 100):
                world.add("t", f"line {n}")
            world.end("t")
            world.live(120, every=20)
            return rows() - before

        talk(0)
        second, third = talk(100), talk(200)
        assert second == third, (second - third, third - second)
        assert second["events"] == 100
        assert max(second.values()) <= 300


@pytest.mark.own_engine("its tables")
def test_g05_what_is_done_is_pruned(tmp_path: Path) -> None:
    with a_world(tmp_path, work__job_retention_s=3600, store__changes_retention_s=3600) as world:
        for n in range(30):
            say(world, f"I like number {n}.", thread=f"t{n}")
        world.live(120, every=20)
        assert world.value("select count(*) from jobs where state = 'done'") > 30
        assert world.value("select count(*) from changes") > 30
        world.tick(2 * DAY_S)
        world.live(DAY_S, every=4 * HOUR_S)
        assert world.value("select count(*) from jobs where state = 'done'") == 0
        assert world.value("select count(*) from changes") == 0
        assert world.value("select count(*) from events") == 30


# ---- G06: one place


@of_a_file
@pytest.mark.own_engine("its settings")
def test_g06_the_place_of_the_store_does_not_depend_on_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    places: dict[str, set[str]] = {}
    for given in ({}, {"EVERKEPT_HOME": str(tmp_path / "home")}, {"EVERKEPT_DATABASE_URL": "sqlite:///memory.db"}):
        for folder in (one, two):
            monkeypatch.chdir(folder)
            settings = config.load({**given, "HOME": str(tmp_path)})
            places.setdefault(str(given), set()).add(settings.database_url)
    assert {name: len(found) for name, found in places.items()} == dict.fromkeys(places, 1), places


@of_a_file
@pytest.mark.own_engine("its settings")
@pytest.mark.parametrize("relative", ["memory", "./memory", "../memory"])
def test_g06_a_home_that_would_follow_the_current_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: str
) -> None:
    (tmp_path / "one").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    with pytest.raises(ConfigInvalid, match="in full"):
        config.load({"EVERKEPT_HOME": relative})
    assert list((tmp_path / "one").iterdir()) == []


def test_g06_a_process_started_elsewhere_finds_what_was_said(
    another: OpensSystems, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = another()
    tell(one)
    one.close()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert copies(another(), "ana", "Lisbon") == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []
