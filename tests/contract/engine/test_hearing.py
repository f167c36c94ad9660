"""What one process commits is heard by another: only on a server, where processes share no memory and no file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.factories import World

from everkept.store.changes import NewChange, record_changes
from everkept.store.store import Store

pytestmark = pytest.mark.only_on("postgresql", reason="a file tells nobody: other processes poll")
PATIENCE_S = 20.0


@contextmanager
def other_process(world: World) -> Iterator[Store]:
    """Another store over the same database, with threads and connections of its own."""
    store = Store(world.store.database)
    store.open()
    try:
        yield store
    finally:
        store.close()


def wait_until(holds: Callable[[], bool]) -> bool:
    ends = time.monotonic() + PATIENCE_S
    while not holds() and time.monotonic() < ends:
        time.sleep(0.02)
    return holds()


def change(world: World) -> None:
    world.write(record_changes, world.project.id, [NewChange(kind="fact.added", ref="x")])


def is_heard(other: Store) -> bool:
    return other.read_now(lambda conn: conn.raw.execute(_LISTENERS).fetchone()[0]) == 1


_LISTENERS = """
select count(*) from pg_stat_activity where datname = current_database() and application_name = 'everkept-listener'
  and query like 'listen everkept_due%' and state = 'idle'"""


def test_a_change_of_another_process_rings_the_bell_of_its_project(world: World) -> None:
    with other_process(world) as other:
        assert wait_until(lambda: is_heard(other))

        async def both() -> tuple[bool, bool]:
            with other.bell.listening(world.project.id) as ours, other.bell.listening(world.project.id + 1) as theirs:
                change(world)
                await asyncio.wait_for(ours.wait(), PATIENCE_S)
                return ours.is_set(), theirs.is_set()

        assert asyncio.run(both()) == (True, False)


def test_work_that_another_process_schedules_is_told_with_its_moment(world: World) -> None:
    told: list[int] = []
    with other_process(world) as other:
        other.on_due = told.append
        assert wait_until(lambda: is_heard(other))
        world.schedule("soon", due_in=5)
        assert wait_until(lambda: bool(told))
    assert told == [world.clock.now_us() + 5_000_000]


def test_nothing_is_told_of_what_was_rolled_back(world: World) -> None:
    told: list[int] = []

    def fails(conn: object) -> None:
        record_changes(conn, world.project.id, [NewChange(kind="fact.added", ref="x")])  # type: ignore[arg-type]
        raise ValueError("no")

    with other_process(world) as other:
        other.bell.ring = told.append  # type: ignore[assignment, method-assign]
        other._deafen()
        other._deafen = other.database.listen(changed=told.append, due=lambda _at: None)
        assert wait_until(lambda: is_heard(other))
        with pytest.raises(ValueError, match="no"):
            world.write(fails)
        assert not told
        change(world)
        assert wait_until(lambda: bool(told))
    assert told == [world.project.id]


def test_a_listener_that_lost_its_connection_hears_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everkept.store.postgres_listening.AGAIN_S", 0.05)
    told: list[int] = []
    with other_process(world) as other:
        other.on_due = told.append
        assert wait_until(lambda: is_heard(other))
        world.do("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'everkept-listener'")
        assert wait_until(lambda: is_heard(other))
        world.schedule("soon", due_in=5)
        assert wait_until(lambda: bool(told))


def test_a_server_that_is_gone_is_a_named_error(world: World) -> None:
    from everkept.errors import StoreUnavailable

    world.do("select 1")
    with pytest.raises(StoreUnavailable, match="not available"):
        world.write(lambda conn: conn.raw.execute("select pg_terminate_backend(pg_backend_pid())"))
    assert world.store.failing() is not None
    world.do("select 1")
    assert world.store.failing() is None


def test_a_reader_whose_connection_the_server_ended_reads_again(world: World) -> None:
    from everkept.errors import StoreUnavailable

    assert world.value("select 1") == 1
    with pytest.raises(StoreUnavailable, match="not available"):
        world.read(lambda conn: conn.raw.execute("select pg_terminate_backend(pg_backend_pid())"))
    assert world.value("select 1") == 1
