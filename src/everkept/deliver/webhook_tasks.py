"""Every webhook of a store, each in a task of its own: a slow, hanging or dead receiver holds up only itself."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import structlog

from everkept.deliver.webhooks import WebhookSender
from everkept.errors import EverkeptError
from everkept.store.store import Store
from everkept.store.webhook_sending import due_webhooks

LOOK_S: Final = 1.0
"""Longest time between two looks: what another process commits, and waits that are over, are found then."""
APART_S: Final = 0.01
"""Shortest time between two looks: one commit is looked for at once, and those close behind it together."""
LEAVE_S: Final = 2.0
"""How long a delivery that is under way may take once the process is to end; it is made again elsewhere."""
_log = structlog.get_logger("everkept.webhooks")


class WebhookTasks:
    """Beside a server or a worker. Several processes may run it: each webhook is sent by the one that holds it."""

    def __init__(self, store: Store, sender: WebhookSender, *, owner: str) -> None:
        self._store = store
        self._sender = sender
        self._owner = owner
        self._running: dict[int, asyncio.Task[None]] = {}
        self._ended = asyncio.Event()
        """Set when a task has ended: what was committed after its last look is found by the next one."""

    async def run(self, stop: asyncio.Event) -> None:
        stopped = asyncio.create_task(stop.wait())
        try:
            with self._store.bell.listening() as heard:
                while not stop.is_set():
                    heard.clear()
                    self._ended.clear()
                    await self.look()
                    await asyncio.sleep(APART_S)
                    await _first(stopped, heard, self._ended)
        finally:
            stopped.cancel()
            await self._leave()

    async def drain(self) -> None:
        """Send what can be sent now, and end."""
        while await self.look():
            await asyncio.wait(list(self._running.values()))

    async def look(self) -> int:
        """Begin with every webhook that has something to send now; how many are being sent."""
        try:
            due = await self._store.read(due_webhooks, self._owner, list(self._running))
        except EverkeptError as error:  # the store cannot be read now; the next look tries again
            _log.warning("webhooks cannot be looked for", why=error.message)
            return 0
        for project, id_ in due:
            task = asyncio.create_task(self._work(project, id_))
            self._running[id_] = task
            task.add_done_callback(partial(self._forget, id_))
        return len(self._running)

    def _forget(self, id_: int, _task: asyncio.Task[None]) -> None:
        del self._running[id_]
        self._ended.set()

    async def _work(self, project: int, id_: int) -> None:
        try:
            await self._sender.work(project, id_)
        except Exception as error:  # noqa: BLE001  (nobody awaits this task, and one webhook must not end the others)
            _log.error("a webhook could not be sent; it is tried again", webhook=id_, why=repr(error))
            await asyncio.sleep(LOOK_S)

    async def _leave(self) -> None:
        tasks = list(self._running.values())
        if not tasks:
            return
        await asyncio.wait(tasks, timeout=LEAVE_S)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _first(stopped: asyncio.Task[bool], *woken: asyncio.Event) -> None:
    """Until told to stop, woken, or a while has gone by."""
    waits = [asyncio.create_task(event.wait()) for event in woken]
    try:
        await asyncio.wait({stopped, *waits}, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
