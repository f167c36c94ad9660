"""A process that attends to NATS: a broker that is down stops nothing, and is found again by itself (G14)."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.factories import World
from tests.nats.broker import Broker
from tests.nats.test_taking import MESSAGE
from tests.stubs.nats_server import NatsServer

from everkept.api import nats
from everkept.api.base import Parts
from everkept.api.nats import attend_nats
from everkept.api.status import nats_view
from everkept.bootstrap import Application
from everkept.config import Nats
from everkept.derive.tools import Tools
from everkept.domain.jobs import Backoff
from everkept.doors.nats import taker
from everkept.store.changes import NewChange, record_changes
from everkept.store.store import Store

WITHIN_S = 60.0


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats, "LOOK_S", 0.05)
    monkeypatch.setattr(nats, "_AGAIN", Backoff(first_s=0.05, max_s=0.1))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not holds():  # noqa: ASYNC110 - another process decides when
            await asyncio.sleep(0.02)


def attending(world: World, settings: Nats, act: Callable[[Parts], Awaitable[None]]) -> Parts:
    """Let a process with threads attend to NATS until `act` has ended."""
    store = Store(world.store.database)
    store.open()

    def no_search() -> Any:
        raise AssertionError("nobody searches")

    parts = Parts(
        store=store, settings=dataclasses.replace(world.settings, nats=settings), clock=store.clock,
        tools=Tools(model=None, words=None, embedder=None), searcher=no_search, model_name="none",
    )  # fmt: skip

    async def go() -> None:
        stop = asyncio.Event()
        running = asyncio.create_task(attend_nats(parts, stop, taker(Application(parts, None))))
        try:
            await act(parts)
        finally:
            stop.set()
            await asyncio.wait_for(running, WITHIN_S)

    try:
        asyncio.run(go())
    finally:
        store.close()
    return parts


def test_events_come_in_and_changes_go_out_and_the_process_says_what_waits(
    broker: Broker, world: World, settings: Nats
) -> None:
    broker.make_streams()
    broker.send(MESSAGE, key="m-1")

    async def act(parts: Parts) -> None:
        await until(lambda: bool(world.value("select count(*) from events")))
        await until(lambda: world.value("select cursor from consumers where name = 'nats'") == 1)

        def settled() -> bool:
            seen = parts.nats.seen
            return seen is not None and (seen.pending, seen.unacknowledged) == (0, 0) and seen.streams[0].messages == 1

        await until(settled)

    parts = attending(world, settings, act)
    shown = nats_view(parts.nats.seen)
    assert shown is not None
    assert (shown.connected, shown.trouble, shown.redelivered) == (True, None, 0)
    assert [stream.name for stream in shown.streams] == [settings.events_stream, settings.changes_stream]
    assert [change["kind"] for change in broker.changes()] == ["messages.appended"]


def test_a_broker_that_dies_is_said_and_found_again_and_nothing_is_lost_meanwhile(
    broker: Broker, world: World, settings: Nats, server: NatsServer
) -> None:
    async def act(parts: Parts) -> None:
        await until(lambda: parts.nats.seen is not None)
        server.kill()
        await until(lambda: parts.nats.seen is not None and not parts.nats.seen.connected)
        assert parts.nats.seen is not None
        assert "NATS" in str(parts.nats.seen.trouble)
        assert parts.nats.counter is None
        told = [NewChange(kind="fact.added", ref="fct_1")]
        await parts.store.write(record_changes, world.project.id, told)
        server.start()
        await until(lambda: parts.nats.seen is not None and parts.nats.seen.connected)
        await until(lambda: world.value("select cursor from consumers where name = 'nats'") == 1)

    try:
        attending(world, settings, act)
    finally:
        if not server.running:
            server.start()
    assert broker.seqs() == [1]


def test_a_stream_deleted_beneath_a_process_is_made_again(broker: Broker, world: World, settings: Nats) -> None:
    broker.make_streams()

    async def act(parts: Parts) -> None:
        await until(lambda: parts.nats.counter is not None)
        await asyncio.to_thread(broker.delete_streams)
        await asyncio.to_thread(broker.make_streams)
        await asyncio.to_thread(lambda: broker.send(MESSAGE, key="m-1"))
        await until(lambda: bool(world.value("select count(*) from events")))

    attending(world, settings, act)


def test_without_a_server_set_nothing_is_attended_to(world: World) -> None:
    async def act(parts: Parts) -> None:
        assert parts.nats.seen is None

    assert attending(world, Nats(), act).nats.seen is None
