"""The consumer core (G11): a dense sequence, cursors that only go forward, and a lease with a fence."""

from __future__ import annotations

import pytest
from tests.factories import World

from everkept.errors import LeaseLost, NotFound
from everkept.store.changes import acknowledge, find_cursor, lease_consumer, read_changes


def told(world: World, after: int = 0) -> list[int]:
    rows, _ = world.read(read_changes, world.project.id, after, 1000)
    return [row[0] for row in rows]


def test_changes_are_numbered_without_a_gap_and_reading_moves_nothing(world: World) -> None:
    for n in range(5):
        world.add("t", f"message {n}")
    assert told(world) == [1, 2, 3, 4, 5]
    assert told(world, 3) == [4, 5]
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
