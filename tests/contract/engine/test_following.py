"""Following the outbox (G11): filters, leases, replays, and what an operator sees of those who follow."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.factories import World

import everkept
from everkept.api.base import Parts
from everkept.api.deliveries import Deliveries
from everkept.derive.tools import Tools
from everkept.domain.changes import CHANGE_KINDS, expand_kinds
from everkept.errors import Conflict, CursorExpired, InvalidInput, LeaseLost, NotFound
from everkept.store.changes import (
    CONSUMERS_MAX,
    NewChange,
    acknowledge,
    find_cursor,
    lease_consumer,
    prune_changes,
    record_changes,
)
from everkept.store.consumers import hold_consumer, list_consumers, remove_consumer, replay_consumer
from everkept.store.projects import ensure_subject
from everkept.store.store import Store
from everkept.store.webhooks import NewWebhook, add_webhook


def tell(world: World, *kinds: str, subject: int | None = None) -> None:
    world.write(record_changes, world.project.id, [NewChange(kind=kind, ref="x", subject=subject) for kind in kinds])


def following(world: World, store: Store | None = None) -> Deliveries:
    def no_search() -> Any:
        raise AssertionError("following searches nothing")

    tools = Tools(model=None, words=None, embedder=None)
    return Deliveries(Parts(
        store=store or world.store, settings=world.settings, clock=world.clock, tools=tools, searcher=no_search,
        model_name="none",
    ), world.project)  # fmt: skip


def test_a_kind_stands_for_itself_and_a_family_for_all_of_its_kinds(world: World) -> None:
    tell(world, "fact.added", "page.written", "fact.changed", "page.deleted")
    follow = following(world)
    seqs = {
        word: [change.seq for change in world.run(follow.changes(kinds=[word])).changes]
        for word in ("fact", "page.deleted", "handoff")
    }
    assert seqs == {"fact": [1, 3], "page.deleted": [4], "handoff": []}
    with pytest.raises(InvalidInput):
        world.run(follow.changes(kinds=["facts"]))
    assert expand_kinds(["fact", "fact.added"]) == ("fact.added", "fact.changed", "fact.erased")


def test_every_kind_that_is_recorded_can_be_asked_for() -> None:
    package = Path(everkept.__file__).parent
    source = "\n".join(path.read_text("utf-8") for path in package.rglob("*.py"))
    recorded = set(re.findall(r'NewChange\(\s*kind="([a-z._]+)"', source))
    assert recorded <= set(CHANGE_KINDS)
    assert {"messages.appended", "fact.added"} <= recorded


def test_what_was_filtered_out_counts_as_covered(world: World) -> None:
    tell(world, "fact.added", "page.written", "fact.changed")
    page = world.run(following(world).changes(kinds=["page"], limit=1))
    assert ([c.seq for c in page.changes], page.next_after, page.head) == ([2], 2, 3)
    page = world.run(following(world).changes(kinds=["page"], after=page.next_after))
    assert ([c.seq for c in page.changes], page.next_after, page.head) == ([], 3, 3)


def test_a_filter_looks_through_a_bounded_stretch_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everkept.store.changes.SCAN_MAX", 10)
    tell(world, *["fact.added"] * 25, "page.written")
    follow = following(world)
    seen: list[tuple[int, int]] = []
    after = 0
    while not seen:
        page = world.run(follow.changes(kinds=["page"], after=after))
        seen += [(change.seq, after) for change in page.changes]
        assert page.next_after > after
        after = page.next_after
    assert seen == [(26, 20)]


def test_a_subjects_changes_come_with_every_erase(world: World) -> None:
    """Whoever mirrors one subject must hear that it was erased, though it has no name any more."""
    ana, ben = (world.write(ensure_subject, world.project.id, name) for name in ("ana", "ben"))
    tell(world, "fact.added", subject=ana)
    tell(world, "fact.added", subject=ben)
    tell(world, "memory.erased", subject=ana)
    follow = following(world)
    assert [c.seq for c in world.run(follow.changes(subject="ana")).changes] == [1, 3]
    assert [c.seq for c in world.run(follow.changes(subject="nobody yet")).changes] == [3]


def test_one_holds_a_consumer_keeps_it_and_gives_it_up(world: World) -> None:
    project = world.project.id
    tell(world, *["fact.added"] * 3)
    first = world.write(hold_consumer, project, "crm", "a", 60.0)
    with pytest.raises(Conflict) as held:
        world.write(hold_consumer, project, "crm", "b", 60.0)
    assert (held.value.details["holder"], held.value.details["free_in_s"]) == ("a", 60.0)
    world.tick(50)
    kept = world.write(hold_consumer, project, "crm", "a", 60.0, first.fence)
    assert (kept.fence, kept.until - first.until) == (first.fence, 50_000_000)
    world.tick(50)
    assert world.write(acknowledge, project, "crm", 1, first.fence) == 1
    world.write(hold_consumer, project, "crm", "a", 0.0, first.fence)
    second = world.write(hold_consumer, project, "crm", "b", 60.0)
    for late in (
        lambda: world.write(hold_consumer, project, "crm", "a", 60.0, first.fence),
        lambda: world.write(acknowledge, project, "crm", 2, first.fence),
    ):
        with pytest.raises(LeaseLost):
            late()
    assert world.write(acknowledge, project, "crm", 2, second.fence) == 2


def test_a_lease_that_ended_is_not_kept_though_nobody_took_it(world: World) -> None:
    held = world.write(hold_consumer, world.project.id, "crm", "a", 60.0)
    world.tick(60)
    with pytest.raises(LeaseLost):
        world.write(hold_consumer, world.project.id, "crm", "a", 60.0, held.fence)


def test_a_replay_goes_back_and_fences_off_the_holder(world: World) -> None:
    project = world.project.id
    tell(world, *["fact.added"] * 5)
    held = world.write(hold_consumer, project, "crm", "a", 60.0)
    world.write(acknowledge, project, "crm", 4, held.fence)
    world.write(replay_consumer, project, "crm", 1)
    with pytest.raises(LeaseLost):
        world.write(acknowledge, project, "crm", 5, held.fence)
    assert world.read(find_cursor, project, "crm") == 1
    with pytest.raises(NotFound):
        world.write(replay_consumer, project, "crm", 6)
    world.tick(11)
    world.write(prune_changes, 10)
    with pytest.raises(CursorExpired):
        world.write(replay_consumer, project, "crm", 4)


def test_who_held_a_consumer_that_was_removed_moves_no_other_of_its_name(world: World) -> None:
    tell(world, "test", "test")
    project = world.project.id
    held = world.write(hold_consumer, project, "crm", "a", 60.0)
    world.write(remove_consumer, project, "crm")
    again = world.write(hold_consumer, project, "crm", "b", 60.0)
    assert again.fence > held.fence
    with pytest.raises(LeaseLost):
        world.write(acknowledge, project, "crm", 2, held.fence)
    assert world.write(acknowledge, project, "crm", 1, again.fence) == 1


def test_a_project_has_so_many_consumers_and_every_one_is_shown_and_moved(world: World) -> None:
    tell(world, "test")
    project, follow = world.project.id, following(world)
    world.write(lambda conn: [acknowledge(conn, project, f"c{n:04}", 1) for n in range(CONSUMERS_MAX)])
    for one_more in (lambda: follow.replay_consumer("zz", 0), lambda: follow.changes(consumer="zz")):
        with pytest.raises(Conflict, match="1,000 consumers"):
            world.run(one_more())
    with pytest.raises(Conflict, match="1,000 consumers and webhooks"):
        world.write(add_webhook, project, NewWebhook(name="crm", url="https://crm.example", secret="whsec_x"))
    assert world.write(lease_consumer, project, "wiki", "a", 60.0) == 1, "the wiki is one of Everkept's own"
    assert world.run(follow.replay_consumer("c0999", 0)).cursor == 0
    names = [row.name for row in world.run(follow.list_consumers())]
    assert (len(names), names[-2:]) == (CONSUMERS_MAX + 1, ["c0999", "wiki"])


def test_an_operator_sees_how_far_each_consumer_is(world: World) -> None:
    project = world.project.id
    tell(world, "fact.added", "fact.added")
    world.write(acknowledge, project, "ahead", 2)
    world.write(acknowledge, project, "behind", 1)
    since = world.clock.now_us()
    world.tick(30)
    world.write(hold_consumer, project, "behind", "a", 60.0)
    tell(world, "fact.added")
    ahead, behind = world.read(list_consumers, project)
    assert (ahead.name, ahead.lag, ahead.oldest_at, ahead.owner) == ("ahead", 1, world.clock.now_us(), None)
    assert (behind.name, behind.lag, behind.oldest_at, behind.owner) == ("behind", 2, since, "a")
    assert (behind.lease_until, behind.kept) == (world.clock.now_us() + 60_000_000, True)
    world.tick(61)
    assert world.read(list_consumers, project)[1].owner is None
    world.write(prune_changes, 10)
    assert [row.kept for row in world.read(list_consumers, None)] == [False, False]
    world.write(remove_consumer, project, "behind")
    with pytest.raises(NotFound):
        world.write(remove_consumer, project, "behind")


@pytest.mark.parametrize("name", ["wiki", "webhook:crm"])
def test_consumers_of_our_own_are_moved_by_nobody_else(world: World, name: str) -> None:
    tell(world, "fact.added")
    follow = following(world)
    asked: list[Callable[[], Any]] = [
        lambda: follow.ack(name, 1), lambda: follow.lease_consumer(name, owner="me"),
        lambda: follow.replay_consumer(name, 0), lambda: follow.remove_consumer(name),
    ]  # fmt: skip
    for ask in asked:
        with pytest.raises(InvalidInput):
            world.run(ask())
    assert world.run(follow.changes(consumer=name)).next_after == 1, "looking is free"


def test_what_a_consumer_was_not_given_it_cannot_acknowledge(world: World) -> None:
    """A name that is mistyped, or a number of another one: moved there, it would never hear what lies between."""
    tell(world, *["fact.added"] * 3)
    follow = following(world)
    with pytest.raises(Conflict, match="'crm' was given changes up to 0 and cannot have worked 2") as refused:
        world.run(follow.ack("crm", 2))
    assert refused.value.details == {"consumer": "crm", "up_to": 2, "handed_out": 0}
    assert world.run(follow.list_consumers()) == [], "nor is one made by it"
    assert world.run(follow.changes(consumer="crm", limit=2)).next_after == 2
    with pytest.raises(Conflict, match="up to 2 and cannot have worked 3"):
        world.run(follow.ack("crm", 3))
    assert [world.run(follow.ack("crm", upto)) for upto in (1, 2, 0)] == [1, 2, 2]
    with pytest.raises(NotFound):
        world.run(follow.ack("crm", 4))


def test_what_a_filter_passes_by_was_given_too(world: World) -> None:
    tell(world, "fact.added", "page.changed")
    follow = following(world)
    assert world.run(follow.changes(consumer="crm", kinds=["fact"])).next_after == 2
    assert world.run(follow.ack("crm", 2)) == 2


def test_who_takes_a_consumer_over_reads_before_it_acknowledges(world: World) -> None:
    tell(world, *["fact.added"] * 3)
    follow = following(world)
    first = world.run(follow.lease_consumer("crm", owner="a"))
    world.run(follow.changes(consumer="crm"))
    assert world.run(follow.ack("crm", 1, fence=first.fence)) == 1
    world.tick(61)
    second = world.run(follow.lease_consumer("crm", owner="b"))
    with pytest.raises(LeaseLost):
        world.run(follow.ack("crm", 3, fence=first.fence))
    with pytest.raises(Conflict, match="up to 1 and cannot have worked 3"):
        world.run(follow.ack("crm", 3, fence=second.fence))
    world.run(follow.changes(consumer="crm"))
    assert world.run(follow.ack("crm", 3, fence=second.fence)) == 3


def test_what_is_replayed_is_read_again_before_it_is_acknowledged(world: World) -> None:
    tell(world, *["fact.added"] * 3)
    follow = following(world)
    world.run(follow.changes(consumer="crm"))
    world.run(follow.replay_consumer("crm", 1))
    with pytest.raises(Conflict, match="up to 1 and cannot have worked 3"):
        world.run(follow.ack("crm", 3))
    world.run(follow.changes(consumer="crm"))
    assert world.run(follow.ack("crm", 3)) == 3


def test_a_long_poll_is_woken_by_the_commit(make_world: Callable[..., World]) -> None:
    world = make_world()
    store = Store(world.store.database)
    store.open()
    follow = following(world, store)

    async def both() -> tuple[float, list[int]]:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        waiting = asyncio.create_task(follow.changes(kinds=["page"], wait_s=20.0))
        await asyncio.sleep(0)
        await store.write(record_changes, world.project.id, [NewChange(kind="fact.added", ref="x")])
        await store.write(record_changes, world.project.id, [NewChange(kind="page.written", ref="y")])
        page = await waiting
        return loop.time() - begun_s, [change.seq for change in page.changes]

    try:
        took_s, seqs = asyncio.run(both())
        assert (seqs, took_s < 10) == ([2], True)
        empty = asyncio.run(follow.changes(after=2, wait_s=0.05))
        assert (empty.changes, empty.next_after) == ([], 2)
    finally:
        store.close()
