"""Settled: nothing of the project is left to be done, and nobody waits for what will never be."""

from __future__ import annotations

from collections.abc import Callable

from tests.factories import World

from everkept.domain.jobs import Done
from everkept.store.settle import is_settled, unsettled_work


def unsettled(world: World) -> int:
    work = world.read(unsettled_work, world.project.id, world.settings)
    assert world.read(is_settled, world.project.id, world.settings) == (work == 0)
    return work


def test_a_job_is_unsettled_until_it_has_an_outcome(world: World) -> None:
    world.schedule("a")
    assert unsettled(world) == 1
    (lease,) = world.claim()
    assert unsettled(world) == 1
    world.finish(lease, Done())
    assert unsettled(world) == 0


def test_what_another_project_has_to_do_is_not_waited_for(make_world: Callable[..., World]) -> None:
    world, other = make_world(), make_world(project="other")
    world.schedule("a")
    assert (unsettled(world), unsettled(other)) == (1, 0)


def test_messages_of_a_thread_whose_memory_is_off_are_not_waited_for(world: World) -> None:
    world.add("t", "one", "two")
    world.live(60)
    assert unsettled(world) == 2
    world.set_thread("t", '{"memory.enabled": false}')
    assert unsettled(world) == 0
