"""Webhooks beside a process: each in a task of its own, woken by commits, and ended with the process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.contract.engine.test_webhooks import SECRET
from tests.factories import World
from tests.stubs.receiver import Receiver

from everkept.deliver import webhook_tasks
from everkept.deliver.webhook_tasks import WebhookTasks
from everkept.deliver.webhooks import WebhookSender
from everkept.store.changes import NewChange, record_changes
from everkept.store.store import Store
from everkept.store.webhooks import NewWebhook, add_webhook

WITHIN_S = 30.0


@pytest.fixture(autouse=True)
def never_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what wakes it makes it look."""
    monkeypatch.setattr(webhook_tasks, "LOOK_S", 600.0)
    monkeypatch.setattr(webhook_tasks, "LEAVE_S", 0.05)


class Slow(WebhookSender):
    """As long as a task has not ended, its webhook is not begun with again; `meanwhile` runs just before the end."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def work(self, project: int, id_: int) -> None:
        await super().work(project, id_)
        if self.meanwhile is not None:
            await self.meanwhile()


def beside(world: World, act: Callable[[Store, Slow, Receiver], Awaitable[None]], names: tuple[str, ...]) -> None:
    """Let webhooks of these names be sent by a process with threads, until `act` has ended."""
    for name in names:
        new = NewWebhook(name=name, url=f"https://{name}.example", secret=SECRET, after=0)
        world.write(add_webhook, world.project.id, new)
    store = Store(world.store.database)
    store.open()

    async def go() -> None:
        receiver, stop = Receiver(), asyncio.Event()
        sender = Slow(store, receiver, world.settings.webhooks, store.clock, owner="here")
        running = asyncio.create_task(WebhookTasks(store, sender, owner="here").run(stop))
        try:
            await asyncio.wait_for(act(store, sender, receiver), WITHIN_S)
        finally:
            stop.set()
            await asyncio.wait_for(running, WITHIN_S)

    try:
        asyncio.run(go())
    finally:
        store.close()


async def tell(store: Store, project: int) -> None:
    await store.write(record_changes, project, [NewChange(kind="fact.added", ref="fct_1")])


async def until(receiver: Receiver, count: int) -> None:
    while len(receiver.sent) < count:  # noqa: ASYNC110 - what is waited for is the receiver's own list
        await asyncio.sleep(0.01)


def test_a_commit_wakes_the_sender(world: World) -> None:
    async def act(store: Store, _sender: Slow, receiver: Receiver) -> None:
        for n in range(1, 4):
            await tell(store, world.project.id)
            await until(receiver, n)

    beside(world, act, ("crm",))


def test_what_is_committed_while_a_task_ends_is_sent_at_once(world: World) -> None:
    """Nobody is woken by it: the look that it rang for found the webhook still at work."""

    async def act(store: Store, sender: Slow, receiver: Receiver) -> None:
        async def commit_and_be_passed_by() -> None:
            sender.meanwhile = None
            await tell(store, world.project.id)
            await asyncio.sleep(0.1)

        sender.meanwhile = commit_and_be_passed_by
        await tell(store, world.project.id)
        await until(receiver, 2)

    beside(world, act, ("crm",))


def test_a_receiver_that_hangs_holds_up_neither_the_others_nor_the_end(world: World) -> None:
    async def act(store: Store, _sender: Slow, receiver: Receiver) -> None:
        async def hang_at_one() -> None:
            if receiver.sent[-1].url == "https://stuck.example":
                await asyncio.Event().wait()

        receiver.meanwhile = hang_at_one
        for _ in range(3):
            await tell(store, world.project.id)
        await until(receiver, 4)
        assert [each.seq for each in receiver.sent if each.url == "https://well.example"] == [1, 2, 3]
        assert [each.seq for each in receiver.sent if each.url == "https://stuck.example"] == [1]

    beside(world, act, ("stuck", "well"))
