"""A store that cannot be written for a while, step by step: what waits in the process, and what is said meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.factories import World, connect_unsynced, open_store, plain_reply

from everkept.errors import StoreFull, StoreUnavailable
from everkept.ports.clock import VirtualClock
from everkept.ports.models import Question
from everkept.store.sqlite import choose_driver, translate
from everkept.store.store import Store


class FullDisk:
    """While `full`, the driver refuses each statement that begins with `at`, and checkpoints."""

    def __init__(self) -> None:
        self.full = False
        self.at = "commit"
        self.text = "database or disk is full"

    def connect(self, path: Path, read_only: bool) -> Any:
        raw = connect_unsynced(path, read_only)
        return raw if read_only else _Refusing(raw, self)


class _Refusing:
    def __init__(self, raw: Any, disk: FullDisk) -> None:
        self._raw = raw
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def execute(self, sql: str, *args: Any) -> Any:
        if self._disk.full and (sql.startswith(self._disk.at) or "wal_checkpoint" in sql):
            raise choose_driver().module.OperationalError(self._disk.text)
        return self._raw.execute(sql, *args)


@pytest.fixture
def disk() -> FullDisk:
    return FullDisk()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def store(tmp_path: Path, clock: VirtualClock, disk: FullDisk) -> Iterator[Store]:
    store = open_store(tmp_path / "everkept.db", clock, connect=disk.connect)
    store.write_now(lambda conn: conn.raw.execute("create table kept(what text)"))
    yield store
    disk.full = False
    store.close()


def keep(conn: Any) -> None:
    conn.raw.execute("insert into kept values('x')")


def test_a_paid_reply_and_a_failure_wait_for_a_store_that_can_be_written(
    store: Store, tmp_path: Path, clock: VirtualClock, disk: FullDisk
) -> None:
    """Neither is the question paid for again, nor does the job wait for the end of its lease (10 minutes)."""
    asked: list[str] = []

    def fill_after_the_first(question: Question) -> dict[str, Any]:
        disk.full = not asked
        asked.append(question.step)
        return plain_reply(question)

    world = World(store, tmp_path / "home", clock, script=fill_after_the_first)
    world.add("t", "I live in Lisbon.")
    world.end("t")
    world.step()
    world.step()
    assert len(asked) == 1
    with pytest.raises(StoreFull):
        world.step()
    disk.full = False
    world.live(30)
    world.close()
    assert sorted(asked) == ["facts", "summary"]
    assert set(world.states().values()) == {"done"}
    assert world.counter("asked_again") == 0


def test_a_store_that_refuses_a_statement_says_so_until_it_takes_one(store: Store, disk: FullDisk) -> None:
    """A file that can only be read lets a transaction begin and end."""
    disk.at, disk.text, disk.full = "insert", "attempt to write a readonly database", True
    for _ in range(2):
        with pytest.raises(StoreFull, match="permissions"):
            store.write_now(keep)
        assert "permissions" in str(store.failing())
    disk.full = False
    store.write_now(keep)
    assert store.failing() is None


def test_a_store_on_a_full_disk_can_be_closed(tmp_path: Path, clock: VirtualClock, disk: FullDisk) -> None:
    store = open_store(tmp_path / "x.db", clock, connect=disk.connect)
    store.write_now(lambda conn: conn.raw.execute("create table kept(what text)"))
    disk.full = True
    store.close()
    disk.full = False
    again = open_store(tmp_path / "x.db", clock)
    assert again.read_now(lambda conn: conn.raw.execute("select count(*) from kept").fetchone()) == (0,)
    again.close()


@pytest.mark.parametrize(
    ("number", "kind"), [(28, StoreFull), (30, StoreFull), (27, StoreFull), (13, StoreUnavailable)]
)  # no space, read-only file system, file too large, no permission
def test_an_error_of_the_disk_is_one_of_ours_and_names_the_file(number: int, kind: type[StoreUnavailable]) -> None:
    ours = translate(OSError(number, "told by the system", "/data/everkept.db"))
    assert type(ours) is kind
    assert str(ours) == "/data/everkept.db: told by the system"
