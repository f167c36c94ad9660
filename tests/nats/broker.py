"""The server's side of a test: what stands in the streams, and what others publish."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from nats.js.errors import NotFoundError
from tests.factories import World

from everkept.config import Nats
from everkept.deliver.nats_link import NatsLink, connected
from everkept.deliver.nats_streams import ensure_streams
from everkept.domain.nats_subjects import subject_of

T = TypeVar("T")


class Broker:
    """Each call is a connection of its own."""

    def __init__(self, world: World, settings: Nats) -> None:
        self.world = world
        self.settings = settings

    def run(self, act: Callable[[NatsLink], Awaitable[T]]) -> T:
        async def connect() -> T:
            async with connected(self.settings) as link:
                return await act(link)

        return self.world.run(connect())

    def make_streams(self) -> None:
        self.run(ensure_streams)

    def delete_streams(self) -> None:
        async def delete(link: NatsLink) -> None:
            for name in (self.settings.events_stream, self.settings.changes_stream):
                try:
                    await link.stream.delete_stream(name)
                except NotFoundError:
                    continue

        self.run(delete)

    def changes(self, project: str = "default") -> list[dict[str, Any]]:
        """What was published of a project, in the order of the stream."""
        subject = subject_of(self.settings.prefix, project, "changes")

        async def read(link: NatsLink) -> list[dict[str, Any]]:
            info = await link.stream.stream_info(self.settings.changes_stream)
            messages = [
                await link.stream.get_msg(self.settings.changes_stream, seq)
                for seq in range(max(1, info.state.first_seq), info.state.last_seq + 1)
            ]
            return [json.loads(m.data or b"")["data"] for m in messages if m.subject == subject]

        return self.run(read)

    def seqs(self, project: str = "default") -> list[int]:
        return [change["seq"] for change in self.changes(project)]

    def send(self, body: Any, *, key: str | None = None, project: str = "default") -> None:
        """Publish an event; bytes go as they are."""
        subject = subject_of(self.settings.prefix, project, "events")
        data = body if isinstance(body, bytes) else json.dumps(body).encode()

        async def publish(link: NatsLink) -> None:
            await link.stream.publish(subject, data, headers=None if key is None else {"Nats-Msg-Id": key})

        self.run(publish)
