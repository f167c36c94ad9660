"""The system under test of deliveries: beside the workers, the processes that send webhooks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

from tests.crash.model.gated import Gated, Port
from tests.crash.model.ground import Ground
from tests.crash.model.oracle import Violation
from tests.crash.model.provider import Provider
from tests.crash.model.trouble import Killed

from everkept.config import Settings
from everkept.deliver.post import Post
from everkept.deliver.webhook_tasks import WebhookTasks
from everkept.deliver.webhooks import WebhookSender
from everkept.ports.clock import VirtualClock
from everkept.store.store import Store


class Sender(Gated):
    """One process that sends webhooks; each in a task of its own."""

    def __init__(self, ground: PostOffice, name: str) -> None:
        super().__init__(name)
        self.port = cast(Store, Port(ground, self))
        sender = WebhookSender(self.port, ground.post, ground.settings.webhooks, ground.clock, owner=name)
        self.webhooks = WebhookTasks(self.port, sender, owner=name)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return list(self.webhooks._running.values())


class PostOffice(Ground):
    """`post`: what is at the other end. Violations that it sees are kept: a sender books whatever is raised."""

    def __init__(self, path: Path, clock: VirtualClock, settings: Settings, post: Post, tally: Counter[str]) -> None:
        self.post = post
        self.senders: dict[str, Sender] = {}
        self.violations: list[Violation] = []
        super().__init__(path, clock, settings, Provider(lambda _key: None, lambda _key, _good: None), tally)

    def sender(self, name: str) -> Sender:
        """Owners are called otherwise after each start."""
        known = self.senders.get(name)
        if known is None or not known.alive:
            self._lives += 1
            known = self.senders[name] = Sender(self, f"{name}.{self._lives}")
        return known

    @property
    def doers(self) -> list[Gated]:
        return [*super().doers, *(s for s in self.senders.values() if s.alive)]

    def look_for_webhooks(self, sender: Sender, calls: int | None) -> int:
        """Begin with all that have something to send, and let them do so many store calls; how many are being sent."""

        async def go() -> int:
            sender.free = True
            try:
                return await sender.webhooks.look()
            except (Killed, asyncio.CancelledError):
                return 0
            finally:
                sender.stop_moving()

        busy = self.loop.run_until_complete(go())
        self.nudge(sender, calls)
        return busy

    def nudge(self, sender: Sender, calls: int | None) -> None:
        if sender.alive:
            sender.move(calls)
            self.settle()
            sender.stop_moving()

    def stop_senders(self) -> None:
        """A polite end: leases are given back."""
        for sender in self.senders.values():
            if sender.alive:
                sender.free = True
                sender.move(None)
                for task in sender.tasks:
                    task.cancel()
        self.settle()
        for sender in self.senders.values():
            sender.kill()
        self.senders.clear()

    def _forget(self) -> None:
        super()._forget()
        self.senders.clear()

    async def watched(self, look: Callable[[], Awaitable[Any]]) -> Any:
        """What is done at the other end, whose violations nobody swallows."""
        try:
            return await look()
        except Violation as violation:
            self.violations.append(violation)
            raise
