"""Publishing changes to JetStream (G11): in order, at least once, under one id, whoever dies in between."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from tests.factories import World
from tests.nats.broker import Broker
from tests.stubs.nats_server import NatsServer

from everkept.config import Nats
from everkept.deliver.nats_link import NatsLink, connected
from everkept.deliver.nats_publisher import LEASE_S, ChangePublisher
from everkept.deliver.nats_relay import EXPIRED_S, ChangeRelay
from everkept.deliver.nats_streams import ensure_streams
from everkept.errors import Unavailable
from everkept.store.changes import NewChange, find_cursor, lease_consumer, prune_changes, record_changes
from everkept.store.consumers import list_consumers, replay_consumer
from everkept.store.projects import ensure_project


def tell(world: World, number: int, *, project: int | None = None) -> None:
    changes = [NewChange(kind="fact.added", ref=f"fct_{n}") for n in range(1, number + 1)]
    world.write(record_changes, world.project.id if project is None else project, changes)


def cursor(world: World) -> int:
    return world.read(find_cursor, world.project.id, "nats")


async def publish(world: World, settings: Nats, *, owner: str = "a", store: Any = None) -> None:
    """By a process of its own: until nothing waits."""
    async with connected(settings) as link:
        await ensure_streams(link)
        await relay(world, link, owner=owner, store=store).step()


def relay(world: World, link: Any, *, owner: str, store: Any = None) -> ChangeRelay:
    store = store or world.store
    publisher = ChangePublisher(store, link, world.clock, owner=owner)
    return ChangeRelay(store, publisher, world.clock, owner=owner)


def test_each_change_is_published_in_order_and_moves_the_cursor(broker: Broker, world: World, settings: Nats) -> None:
    tell(world, 3)
    world.run(publish(world, settings))
    found = broker.changes()
    assert [change["seq"] for change in found] == [1, 2, 3]
    assert [change["ref"] for change in found] == ["fct_1", "fct_2", "fct_3"]
    assert cursor(world) == 3
    tell(world, 2)
    world.run(publish(world, settings, owner="b"))
    assert (broker.seqs(), cursor(world)) == ([1, 2, 3, 4, 5], 5)


def test_projects_are_told_apart_by_their_subject(broker: Broker, world: World, settings: Nats) -> None:
    other = world.write(ensure_project, "acme.eu *", bytes(32), {})
    tell(world, 1)
    tell(world, 2, project=other.id)
    world.run(publish(world, settings))
    assert (broker.seqs(), broker.seqs("acme.eu *")) == ([1], [1, 2])


class Killed(BaseException):
    """The process is gone."""


class Dying:
    """A process that dies at the n-th thing that it does, before or after the store or the server has it."""

    def __init__(self, world: World, link: NatsLink, death: int | None) -> None:
        self._store, self._link = world.store, link
        self.settings = link.settings
        self._death = death
        self.steps = 0
        self.bell = world.store.bell
        self.read = self._store.read
        self.stream = self
        self.get_last_msg = link.stream.get_last_msg

    def reaching(self, _reach: Any) -> Dying:
        return self

    async def write(self, *call: Any) -> Any:
        self.reach()
        result = await self._store.write(*call)
        self.reach()
        return result

    async def publish(self, *given: Any, **named: Any) -> Any:
        self.reach()
        acknowledged = await self._link.stream.publish(*given, **named)
        self.reach()
        return acknowledged

    def reach(self) -> None:
        self.steps += 1
        if self._death is not None and self.steps >= self._death:
            raise Killed


def test_a_publisher_killed_at_any_instant_leaves_each_change_once_in_order(
    broker: Broker, world: World, settings: Nats
) -> None:
    """Before and after each write and each PubAck: also between the last PubAck and the cursor's move."""

    async def die(death: int | None, owner: str) -> int:
        async with connected(settings) as link:
            await ensure_streams(link)
            dying = Dying(world, link, death)
            try:
                await relay(world, dying, owner=owner, store=dying).step()
            except Killed:
                return 0
            return dying.steps

    expected: list[int] = []
    for death in count(1):
        tell(world, 3)
        expected += range(len(expected) + 1, len(expected) + 4)
        untouched = world.run(die(death, f"process {death}"))
        assert cursor(world) <= len(broker.seqs()), "the cursor was moved before the server had it"
        world.tick(LEASE_S + 1)
        world.run(publish(world, settings, owner=f"process {death}, again"))
        assert (broker.seqs(), cursor(world)) == (expected, expected[-1])
        if untouched:
            break
    assert death > 10


def test_a_frozen_publisher_is_fenced_by_store_and_server(broker: Broker, world: World, settings: Nats) -> None:
    """It froze after it had taken the lease, for longer than that; the other one has published everything since, and
    the server knows the ids no more."""
    settings = dataclasses.replace(settings, duplicates_s=0.1)

    async def freeze() -> None:
        async with connected(settings) as link:
            await ensure_streams(link)
            frozen = Freezing(link)
            await relay(world, frozen, owner="frozen").step()

    class Freezing:
        def __init__(self, link: NatsLink) -> None:
            self.settings, self._link = link.settings, link
            self.stream = self
            self.get_last_msg = link.stream.get_last_msg

        async def publish(self, *given: Any, **named: Any) -> Any:
            world.tick(LEASE_S + 1)
            await publish(world, settings, owner="other")
            tell(world, 1)
            await publish(world, settings, owner="other")
            await asyncio.sleep(0.3)
            return await self._link.stream.publish(*given, **named)

    tell(world, 2)
    world.run(freeze())
    assert (broker.seqs(), cursor(world)) == ([1, 2, 3], 3)


def test_while_another_process_holds_a_project_nothing_of_it_is_published(
    broker: Broker, world: World, settings: Nats
) -> None:
    tell(world, 1)
    assert world.write(lease_consumer, world.project.id, "nats", "other", 60.0) is not None
    world.run(publish(world, settings))
    assert (broker.seqs(), cursor(world)) == ([], 0)
    world.tick(61)
    world.run(publish(world, settings))
    assert (broker.seqs(), cursor(world)) == ([1], 1)


def test_a_lost_stream_is_made_again_and_filled_by_a_replay(broker: Broker, world: World, settings: Nats) -> None:
    tell(world, 3)
    world.run(publish(world, settings))
    before = broker.changes()
    broker.delete_streams()
    tell(world, 1)
    world.run(publish(world, settings))
    assert broker.seqs() == [4], "the cursor does not go back by itself"
    world.write(replay_consumer, world.project.id, "nats", 0)
    world.run(publish(world, settings))
    after = {change["seq"]: change for change in broker.changes()}
    assert [after[n] for n in (1, 2, 3)] == before
    assert (sorted(after), cursor(world)) == ([1, 2, 3, 4], 4)


def test_a_replay_within_the_window_of_duplicates_stores_nothing_twice(
    broker: Broker, world: World, settings: Nats
) -> None:
    tell(world, 3)
    world.run(publish(world, settings))
    world.write(replay_consumer, world.project.id, "nats", 1)
    tell(world, 1)
    world.run(publish(world, settings))
    assert (broker.seqs(), cursor(world)) == ([1, 2, 3, 4], 4)


def test_what_the_server_had_before_it_died_is_not_published_again(
    broker: Broker, world: World, settings: Nats, server: NatsServer
) -> None:
    """It is killed with the second change on its way."""

    class Cut:
        def __init__(self, link: NatsLink) -> None:
            self.settings, self._link = link.settings, link
            self.stream = self
            self.get_last_msg = link.stream.get_last_msg
            self.sent = 0

        async def publish(self, *given: Any, **named: Any) -> Any:
            self.sent += 1
            if self.sent == 2:
                server.kill()
            return await self._link.stream.publish(*given, **named)

    async def cut() -> None:
        async with connected(settings) as link:
            await ensure_streams(link)
            await relay(world, Cut(link), owner="a").step()

    tell(world, 3)
    try:
        with pytest.raises(Unavailable):
            world.run(cut())
        assert cursor(world) == 1
        with pytest.raises(Unavailable):
            world.run(publish(world, settings))
        assert cursor(world) == 1
    finally:
        server.start()
    world.run(publish(world, settings))
    assert (broker.seqs(), cursor(world)) == ([1, 2, 3], 3)


def test_what_is_no_longer_kept_is_said_and_waits_for_a_hand(broker: Broker, world: World, settings: Nats) -> None:
    tell(world, 1)
    world.run(publish(world, settings))
    tell(world, 2)
    world.tick(100)
    world.write(prune_changes, 10.0)
    tell(world, 1)

    async def look_twice() -> None:
        async with connected(settings) as link:
            await ensure_streams(link)
            looking = relay(world, link, owner="a")
            assert not await looking.step()
            world.write(replay_consumer, world.project.id, "nats", 3)
            assert not await looking.step(), "it is left alone for a while"
            world.tick(EXPIRED_S)
            await looking.step()

    [behind] = world.read(list_consumers, None)
    assert (behind.name, behind.kept) == ("nats", False)
    world.run(look_twice())
    assert (broker.seqs(), cursor(world)) == ([1, 4], 4)


def test_where_nothing_was_ever_published_it_begins_with_the_oldest_change_kept(
    make_world: Callable[..., World], broker: Broker, world: World, settings: Nats
) -> None:
    tell(world, 2)
    world.tick(100)
    world.write(prune_changes, 10.0)
    tell(world, 2)
    world.run(publish(world, settings))
    assert (broker.seqs(), cursor(world)) == ([3, 4], 4)
