"""Settled: nothing of the project is left to be done, and nobody waits for what will never be."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.factories import World

from everkept.domain.jobs import Done, Outcome, Retry, Snooze
from everkept.store.jobs_by_hand import discard_by_hand
from everkept.store.settle import SOON_US, came_meanwhile, end_chunk, is_settled, unsettled_work

HOUR_US = 3_600_000_000


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


def test_a_job_that_is_due_later_by_its_nature_is_not_waited_for_and_what_is_due_soon_is(world: World) -> None:
    world.schedule("a session's rest", due_in=4 * 3600)
    assert unsettled(world) == 0
    world.clock.advance(4 * 3600 - SOON_US / 1e6)
    assert unsettled(world) == 1


@pytest.mark.parametrize(
    ("outcome", "waited_for"),
    [
        (lambda until: Retry(until, "transient", "the provider answered 503", spend=True), 1),
        (lambda until: Snooze(until, "the budget of today is spent"), 1),
        (Snooze, 0),
    ],
    ids=["failed", "put-off", "by-its-nature"],
)
def test_what_was_put_off_for_a_reason_is_waited_for_however_late_it_is(
    world: World, outcome: Callable[[int], Outcome], waited_for: int
) -> None:
    world.schedule("a")
    (lease,) = world.claim()
    world.finish(lease, outcome(world.clock.now_us() + HOUR_US))
    assert world.job("a")["state"] == "waiting"
    assert unsettled(world) == waited_for


def test_messages_that_come_while_others_are_waited_for_have_their_window_once_those_are_done(world: World) -> None:
    def meanwhile() -> bool:
        return world.read(came_meanwhile, world.project.id, world.settings)

    world.add("t", "one", "two")
    world.live(2)
    world.write(end_chunk, world.project.id, world.settings, 0)
    assert not meanwhile()
    world.schedule("a")
    world.add("t", "three")
    assert not meanwhile()
    world.write(discard_by_hand, world.project.id, world.job("a")["id"], "no more")
    world.live(10)
    assert meanwhile()
    world.write(end_chunk, world.project.id, world.settings, 0)
    assert not meanwhile()
    world.live(10)
    assert unsettled(world) == 0
    assert world.windows("t") == [(1, 2), (3, 3)]
