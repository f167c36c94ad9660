"""Sending webhooks beside a server or a worker: the parts of it, over the process's own."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from everkept.api.base import Parts
from everkept.deliver.webhook_tasks import WebhookTasks
from everkept.deliver.webhooks import WebhookSender


@asynccontextmanager
async def _tasks(parts: Parts) -> AsyncIterator[WebhookTasks]:
    from everkept.deliver.post import HttpPost  # an HTTP client, which a process that only opens the store needs not

    settings = parts.settings.webhooks
    owner = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
    post = HttpPost(timeout_s=settings.timeout_s, allow_private=settings.allow_private)
    try:
        sender = WebhookSender(parts.store, post, settings, parts.clock, owner=owner)
        yield WebhookTasks(parts.store, sender, owner=owner)
    finally:
        await post.close()


async def send_webhooks(parts: Parts, stop: asyncio.Event) -> None:
    """Until told to stop."""
    async with _tasks(parts) as tasks:
        await tasks.run(stop)


async def send_waiting_webhooks(parts: Parts) -> None:
    """What can be sent now; what a receiver is left alone for waits for the next process."""
    async with _tasks(parts) as tasks:
        await tasks.drain()
