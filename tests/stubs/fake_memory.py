"""Memories over the fake service: as if embedded, or through the whole HTTP door."""

from __future__ import annotations

from collections.abc import Callable

import httpx2
from tests.stubs.door_client import URL, DoorClient
from tests.stubs.fake_service import FakeService

from everkept.doors.python.async_memory import AsyncMemory
from everkept.doors.python.opening import Opening
from everkept.doors.python.remote import RemoteService
from everkept.doors.python.sync_memory import Memory


def embedded(service: FakeService) -> Opening[AsyncMemory]:
    async def opened() -> AsyncMemory:
        return AsyncMemory(service, service.close)

    return Opening(opened)


def remote(door: DoorClient) -> Opening[AsyncMemory]:
    async def opened() -> AsyncMemory:
        service = RemoteService(URL, transport=httpx2.ASGITransport(door.app))
        return AsyncMemory(service, service.close)

    return Opening(opened)


def waited_for(opening: Opening[AsyncMemory]) -> Memory:
    return Memory._start(opening)


WAYS: dict[str, Callable[[DoorClient], Opening[AsyncMemory]]] = {
    "embedded": lambda door: embedded(door.service),
    "remote": remote,
}
"""Both ways to a memory must behave alike."""
