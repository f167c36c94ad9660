"""A memory moves from a file to PostgreSQL and back, whole, while it is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.contract.moving import all_of, file_at, lived_in, open_on, server, small, with_world
from tests.factories import World

from everkept.errors import Conflict, NotFound, StoreMoved, StoreNotSupported
from everkept.ports.clock import VirtualClock
from everkept.store.database import Database
from everkept.store.moving.following import ROUND_KEYS
from everkept.store.moving.kept import digest, everything
from everkept.store.moving.mover import cancel_move, move_memory
from everkept.store.moving.pair import Told
from everkept.store.moving.side import name_of
from everkept.store.sqlite_database import SqliteDatabase

pytestmark = pytest.mark.only_on("sqlite", reason="each of these has both databases, or chooses one by itself")
DATABASES = ("sqlite", "postgresql")
REACHING = {
    "sqlite": "pragma foreign_keys = off",
    "postgresql": "select set_config('everkept.everything', 'on', false)",
}
Place = Callable[[str], Database]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty place on a database, by the database's name."""
    numbers = iter(range(99))
    return lambda kind: file_at(tmp_path / f"{next(numbers)}.db") if kind == "sqlite" else server()


@pytest.fixture
def memory(place: Place, tmp_path: Path, clock: VirtualClock) -> SqliteDatabase:
    """A small one, in a file."""
    made = place("sqlite")
    assert isinstance(made, SqliteDatabase)
    with_world(made, tmp_path / "home", clock, small)
    return made


def change(database: Database, *statements: str) -> None:
    raw = database.connect(read_only=False)
    try:
        raw.execute(REACHING[database.dialect.name])
        for statement in statements:
            raw.execute(statement)
    finally:
        raw.close()


def ask(database: Database, query: str) -> list[Any]:
    raw = database.connect(read_only=True)
    try:
        raw.execute(REACHING[database.dialect.name])
        return [tuple(row) for row in raw.execute(query).fetchall()]
    finally:
        raw.close()


def allocate(database: Database, clock: VirtualClock, table: str, count: int) -> int:
    store = open_on(database, clock)
    try:
        first: int = store.write_now(lambda conn: conn.allocate(table, count))
        return first
    finally:
        store.close()


class Meanwhile:
    """Acts once, as a move comes to a phase."""

    def __init__(self, phase: str, act: Callable[[], None]) -> None:
        self._phase = phase
        self._act: Callable[[], None] | None = act

    def __call__(self, told: Told) -> None:
        if told.phase == self._phase and self._act is not None:
            act, self._act = self._act, None
            act()


# ---- it is all there


def test_a_memory_is_the_same_on_the_server_and_in_a_file_again(
    place: Place, tmp_path: Path, clock: VirtualClock
) -> None:
    first, there, back = place("sqlite"), place("postgresql"), place("sqlite")
    lived_in(first, tmp_path / "home", clock)
    last = allocate(first, clock, "facts", 10) + 9
    before = all_of(first, clock)

    moved = move_memory(first, there, clock)
    assert all_of(there, clock) == before
    assert moved.rows["events"] == len(before[0]["events"]) > 0
    assert moved.compared == sum(moved.rows.values())

    move_memory(there, back, clock)
    assert all_of(back, clock) == before
    assert ask(back, "pragma foreign_key_check") == []
    assert allocate(back, clock, "facts", 1) == last + 1, "a row number is never given out again"
    assert allocate(back, clock, "webhooks", 1) == 1


def test_the_server_has_the_schema_of_a_new_one_though_a_unique_value_changed_hands(
    memory: SqliteDatabase, place: Place, clock: VirtualClock
) -> None:
    moved, new = place("postgresql"), place("postgresql")
    swap = (
        "update streams set name = 'x' where id = 1",
        "update streams set name = 'one' where id = 2",
        "update streams set name = 'two' where id = 1",
    )
    move_memory(memory, moved, clock, Meanwhile("compare", lambda: change(memory, *swap)))
    assert ask(moved, "select name from streams order by id") == [("two",), ("one",)]
    for what in (
        "select conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated from pg_constraint"
        " where connamespace = current_schema()::regnamespace order by 1, 2",
        "select indexname, indexdef from pg_indexes where schemaname = current_schema() order by 1",
        "select relname, relkind, relforcerowsecurity, relrowsecurity from pg_class"
        " where relnamespace = current_schema()::regnamespace order by 1",
        "select tgrelid::regclass::text, tgname from pg_trigger where not tgisinternal order by 1, 2",
        "select version_num from alembic_version",
    ):
        assert ask(moved, what) == ask(new, what)


@pytest.mark.parametrize("target", DATABASES)
def test_what_is_written_meanwhile_is_there(
    target: str, memory: SqliteDatabase, place: Place, tmp_path: Path, clock: VirtualClock
) -> None:
    there = place(target)
    phases: dict[str, int] = {}

    def write(told: Told) -> None:
        """A message at the beginning of each phase and in the midst of it, a row that is gone, and one that changed."""
        if told.phase != "begin":
            with pytest.raises(StoreNotSupported, match="being moved into"):
                there.prepare(clock)
        phases[told.phase] = phases.get(told.phase, 0) + 1
        if phases[told.phase] in (1, 2) and told.phase != "end":
            with_world(memory, tmp_path / "home", clock, lambda world: world.add("more", f"{told.phase} {told.name}"))
            change(memory, "delete from embeddings", "update streams set name = name || '.' where id = 1")

    move_memory(memory, there, clock, write)
    assert phases.keys() == {"begin", "copy", "follow", "compare", "switch", "end"}
    assert all_of(there, clock) == all_of(memory, clock)
    assert len(ask(there, "select 1 from events where content like 'co%'")) >= 4


def test_more_is_written_than_a_round_takes(memory: SqliteDatabase, place: Place, clock: VirtualClock) -> None:
    there = place("postgresql")

    def write() -> None:
        """So much that not all of it follows at one instant, and a unique value changes hands in between."""
        many = ["insert into counters(name, value) values('spun', 0)"]
        many += ["update counters set value = value + 1 where name = 'spun'"] * ROUND_KEYS
        first = "update streams set name = 'x' where id = 1", "update streams set name = 'one' where id = 2"
        change(memory, "begin", first[0], *many, first[1], "commit")

    move_memory(memory, there, clock, Meanwhile("compare", write))
    assert ask(there, "select value from counters where name = 'spun'") == [(ROUND_KEYS,)]
    assert ask(there, "select name from streams order by id") == [("x",), ("one",)]


def test_a_job_that_was_leased_waits_again(
    memory: SqliteDatabase, place: Place, tmp_path: Path, clock: VirtualClock
) -> None:
    there = place("sqlite")

    def leave_it_leased(world: World) -> None:
        world.schedule("leased")
        world.promote()
        world.claimed()

    with_world(memory, tmp_path / "home", clock, leave_it_leased)
    [(job, fence)] = ask(memory, "select id, fence from jobs where state = 'leased'")
    move_memory(memory, there, clock)
    assert ask(there, f"select state, owner, fence from jobs where id = {job}") == [("waiting", None, fence + 1)]
    assert ask(there, "select sum(running) from lanes") == [(0,)]


# ---- what it moves into


@pytest.mark.parametrize("kind", DATABASES)
def test_a_place_that_holds_a_memory_is_refused(
    kind: str, memory: SqliteDatabase, place: Place, clock: VirtualClock
) -> None:
    other = place(kind)
    other.prepare(clock)
    change(other, "insert into counters(name, value) values('kept', 1)")
    with pytest.raises(Conflict, match="holds a memory"):
        move_memory(memory, other, clock)
    assert ask(other, "select name, value from counters") == [("kept", 1)]
    assert ask(memory, "select name from sqlite_master where name like 'move%'") == []


@pytest.mark.parametrize(
    ("kind", "statement", "named"),
    [
        (
            "sqlite",
            "update events set content = 'altered' where stream_id = 1 and seq = 1",
            r"1 rows of events \(1 1\)",
        ),
        ("postgresql", "update subjects set revision = 99 where id = 1", r"1 rows of subjects \(1\)"),
        ("sqlite", "delete from subjects where id = 2", r"1 rows of subjects \(2\)"),
        ("sqlite", "insert into counters(name, value) values('more', 1)", "rows of counters"),
    ],
)
def test_a_copy_that_is_not_the_same_is_found_and_named(
    kind: str, statement: str, named: str, memory: SqliteDatabase, place: Place, clock: VirtualClock
) -> None:
    there = place(kind)
    with pytest.raises(Conflict, match=named):
        move_memory(memory, there, clock, Meanwhile("follow", lambda: change(there, statement)))
    store = open_on(memory, clock)  # which is used as before
    store.write_now(lambda conn: conn.allocate("facts", 1))
    store.close()


def test_a_second_mover_goes_on_and_the_first_writes_nothing_more(
    memory: SqliteDatabase, place: Place, clock: VirtualClock
) -> None:
    there = place("sqlite")
    assert isinstance(there, SqliteDatabase)

    def go_on() -> None:
        with pytest.raises(RuntimeError, match="stopped here"):
            move_memory(memory, SqliteDatabase(there.path), clock, Meanwhile("compare", stop))

    def stop() -> None:
        raise RuntimeError("stopped here")

    with pytest.raises(Conflict, match="another `everkept move`"):
        move_memory(memory, there, clock, Meanwhile("copy", go_on))
    move_memory(memory, there, clock)
    assert all_of(there, clock) == all_of(memory, clock)


# ---- what it moves out of


@pytest.mark.parametrize("kind", DATABASES)
def test_a_memory_that_has_moved_is_only_read_and_says_where_it_is(
    kind: str, memory: SqliteDatabase, place: Place, tmp_path: Path, clock: VirtualClock
) -> None:
    source, target = memory, place("sqlite")
    if kind == "postgresql":
        source = place("postgresql")  # type: ignore[assignment]
        move_memory(memory, source, clock)
    move_memory(source, target, clock)
    before = all_of(source, clock)
    with pytest.raises(StoreMoved, match=f"this memory has moved to {name_of(target)}"):
        with_world(source, tmp_path / "home", clock, lambda world: world.add("one", "once more"))
    for kept in everything():
        table, (key, *_) = kept.place(source.dialect.name)
        if ask(source, f"select count(*) from {table}") != [(0,)]:
            with pytest.raises(Exception, match="this memory has moved to"):
                change(source, f'update {table} set "{key}" = "{key}"')
    assert all_of(source, clock) == before
    assert move_memory(source, target, clock).switch_s is None
    with pytest.raises(StoreMoved):
        move_memory(source, place("sqlite"), clock)
    with pytest.raises(StoreMoved):
        cancel_move(source, target, clock)


@pytest.mark.parametrize("kind", DATABASES)
def test_a_move_that_is_cancelled_has_never_been(
    kind: str, memory: SqliteDatabase, place: Place, clock: VirtualClock
) -> None:
    target, new = place(kind), place("sqlite")
    objects, before = ask(memory, "select name, sql from sqlite_master"), all_of(memory, clock)

    def stop() -> None:
        raise RuntimeError("stopped here")

    with pytest.raises(RuntimeError, match="stopped here"):
        move_memory(memory, target, clock, Meanwhile("compare", stop))
    with pytest.raises(Conflict, match="is under way"):
        move_memory(memory, new, clock)
    cancel_move(memory, target, clock)
    assert ask(memory, "select name, sql from sqlite_master") == objects
    assert all_of(memory, clock) == before
    with pytest.raises(NotFound):
        cancel_move(memory, target, clock)
    move_memory(memory, target, clock)
    assert all_of(target, clock) == before


def test_a_part_of_a_copy_is_emptied_after_its_source_forgot_it(
    memory: SqliteDatabase, place: Place, clock: VirtualClock
) -> None:
    target = place("sqlite")

    def stop() -> None:
        raise RuntimeError("stopped here")

    with pytest.raises(RuntimeError, match="stopped here"):
        move_memory(memory, target, clock, Meanwhile("compare", stop))
    cancel_move(memory, None, clock)
    with pytest.raises(Conflict, match="a part of another move"):
        move_memory(memory, target, clock)
    cancel_move(memory, target, clock)
    move_memory(memory, target, clock)
    assert all_of(target, clock) == all_of(memory, clock)


# ---- checksums


def test_a_row_has_one_checksum_on_both_databases() -> None:
    assert digest((1, "a\x00b", b"\x00", 1.5, None)) == digest((1, "a\u2400b", b"\x00", 1.5, None))


@pytest.mark.parametrize(
    ("one", "other"),
    [((1,), (1.0,)), ((1,), (True,)), (("1",), (1,)), ((None,), ("",)), (("ab", "c"), ("a", "bc")), ((b"a",), ("a",))],
)
def test_rows_that_differ_have_other_checksums(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    assert digest(one) != digest(other)
