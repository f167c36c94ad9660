"""The consumer core (G11): a dense sequence, cursors that only go forward, and a lease with a fence."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.factories import World, listening_to

from everkept.errors import CursorExpired, LeaseLost, NotFound
from everkept.store.changes import (
    NewChange,
    acknowledge,
    find_cursor,
    lease_consumer,
    prune_changes,
    read_changes,
    record_changes,
)
from everkept.store.connection import Connection


def told(world: World, after: int = 0) -> list[int]:
    rows, _ = world.read(read_changes, world.project.id, after, 1000)
    return [row[0] for row in rows]


def test_changes_are_numbered_without_a_gap_and_reading_moves_nothing(world: World) -> None:
    for n in range(5):
        world.add("t", f"message {n}")
    assert told(world) == [1, 2, 3, 4, 5]
    assert told(world, 3) == [4, 5]
    assert told(world, 5) == []
    with pytest.raises(NotFound):
        told(world, 6)
    assert world.read(find_cursor, world.project.id, "wiki") == 0


def test_a_cursor_moves_forward_only_and_not_past_the_newest_change(world: World) -> None:
    for n in range(3):
        world.add("t", f"message {n}")
    project = world.project.id
    assert world.write(acknowledge, project, "wiki", 2) == 2
    assert world.write(acknowledge, project, "wiki", 1) == 2
    with pytest.raises(NotFound):
        world.write(acknowledge, project, "wiki", 4)
    assert world.read(find_cursor, project, "wiki") == 2


def test_one_holder_at_a_time_and_a_late_one_moves_nothing(world: World) -> None:
    for n in range(3):
        world.add("t", f"message {n}")
    project = world.project.id
    first = world.write(lease_consumer, project, "wiki", "a", 60.0)
    assert first is not None
    assert world.write(lease_consumer, project, "wiki", "b", 60.0) is None
    assert world.write(acknowledge, project, "wiki", 1, first) == 1

    world.tick(61)
    second = world.write(lease_consumer, project, "wiki", "b", 60.0)
    assert second is not None
    assert second > first
    with pytest.raises(LeaseLost):
        world.write(acknowledge, project, "wiki", 3, first)
    assert world.write(acknowledge, project, "wiki", 2, second) == 2


def test_a_holder_takes_its_lease_again_under_a_new_fence(world: World) -> None:
    """As after a restart under the same name: it waits for nobody, and what it sent before moves nothing."""
    world.add("t", "one")
    project = world.project.id
    before = world.write(lease_consumer, project, "wiki", "a", 60.0)
    now = world.write(lease_consumer, project, "wiki", "a", 60.0)
    assert (before, now) == (1, 2)
    with pytest.raises(LeaseLost):
        world.write(acknowledge, project, "wiki", 1, before)
    assert world.write(acknowledge, project, "wiki", 1, now) == 1


def test_a_lease_that_ran_out_moves_nothing_though_nobody_took_it(world: World) -> None:
    world.add("t", "one")
    project = world.project.id
    fence = world.write(lease_consumer, project, "wiki", "a", 60.0)
    world.tick(60)
    with pytest.raises(LeaseLost):
        world.write(acknowledge, project, "wiki", 1, fence)
    assert world.read(find_cursor, project, "wiki") == 0


def test_each_consumer_has_its_own_cursor(world: World) -> None:
    for n in range(2):
        world.add("t", f"message {n}")
    project = world.project.id
    world.write(acknowledge, project, "wiki", 1)
    world.write(acknowledge, project, "feed", 2)
    assert (world.read(find_cursor, project, "wiki"), world.read(find_cursor, project, "feed")) == (1, 2)
    assert world.write(lease_consumer, project, "wiki", "a", 60.0) is not None
    assert world.write(lease_consumer, project, "feed", "b", 60.0) is not None


def test_projects_have_sequences_cursors_and_changes_of_their_own(make_world: Callable[..., World]) -> None:
    here, there = make_world(), make_world(project="other")
    here.add("t", "one")
    there.add("u", "two")
    there.add("u", "three")
    assert (told(here), told(there)) == ([1], [1, 2])
    assert [row[4] for row in there.read(read_changes, there.project.id, 0, 10)[0]] == ["u", "u"]
    there.write(acknowledge, there.project.id, "wiki", 2)
    assert here.read(find_cursor, here.project.id, "wiki") == 0


def test_a_change_says_what_happened_to_whom_and_where(world: World) -> None:
    world.add("chat", "one", "two", subject="ana")
    ((seq, kind, subject, thread, ref, at, data, name),), head = world.read(read_changes, world.project.id, 0, 10)
    assert (seq, kind, subject, thread, ref, at, head) == (
        1, "messages.appended", "ana", "chat", "chat", world.clock.now_us(), 1,
    )  # fmt: skip
    assert data == '{"first_seq": 1, "last_seq": 2}'
    assert name == f"{world.project.id}_1_{at}"


def test_changes_are_read_a_page_at_a_time(world: World) -> None:
    world.write(record_changes, world.project.id, [NewChange(kind="test", ref=f"{n}") for n in range(1, 6)])
    rows, head = world.read(read_changes, world.project.id, 1, 2)
    assert ([row[0] for row in rows], head) == ([2, 3], 5)


def test_what_was_pruned_cannot_be_followed_though_nothing_is_left(world: World) -> None:
    world.write(record_changes, world.project.id, [NewChange(kind="test", ref=f"{n}") for n in range(3)])
    world.tick(11)
    assert world.write(prune_changes, 10) == 3
    assert world.read(read_changes, world.project.id, 3, 10) == ([], 3)
    with pytest.raises(CursorExpired):
        world.read(read_changes, world.project.id, 2, 10)
    world.write(record_changes, world.project.id, [NewChange(kind="test", ref="4")])
    assert told(world, 3) == [4]


def test_what_is_pruned_is_past_its_retention_in_every_project(make_world: Callable[..., World]) -> None:
    here, there = make_world(), make_world(project="other")
    for world in (here, there):
        world.write(record_changes, world.project.id, [NewChange(kind="test", ref=f"{n}") for n in range(2)])
    here.tick(10)
    assert here.write(prune_changes, 10) == 0, "it is kept for as long as was promised"
    here.tick(1)
    assert [here.write(prune_changes, 10, 3) for _ in range(3)] == [3, 1, 0]


def test_a_project_with_nothing_past_its_retention_costs_a_prune_no_statement(make_world: Callable[..., World]) -> None:
    """What is looked through under the write lock does not grow with what is kept."""
    worlds = [make_world(), *(make_world(project=f"other {n}") for n in range(4))]
    for world in worlds:
        world.write(record_changes, world.project.id, [NewChange(kind="test", ref="x")])

    def statements(conn: Connection) -> int:
        with listening_to(conn) as said:
            assert prune_changes(conn, 10) == 0
        return len(said)

    assert worlds[0].write(statements) == 1
