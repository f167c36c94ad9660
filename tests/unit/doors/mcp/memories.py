"""Memories for tests of the door alone."""

from __future__ import annotations

from typing import Any, cast

from everkept.api import views as v
from everkept.api.service import Service
from everkept.capture.identity import Checkout
from everkept.doors.mcp.place import Waiting
from everkept.errors import EverkeptError, NotFound


class NoMemories:
    """Nothing is known of any folder, and nothing is there to ask."""

    whole_store = True

    async def service(self, project: str) -> Service:
        raise NotFound(f"there is no project {project!r}")

    async def resolve(self, checkout: Checkout, *, create: bool) -> v.Scope:
        raise NotFound("nobody knows this folder")

    async def waiting(self) -> Waiting:
        return Waiting(records=3, aside=1)


class OneMemory(NoMemories):
    """One project, whose use cases are a double's."""

    def __init__(self, double: Any, *, fault: EverkeptError | None = None) -> None:
        self._double = double
        self._fault = fault

    async def service(self, project: str) -> Service:
        if self._fault is not None:
            raise self._fault
        return cast("Service", self._double)

    async def resolve(self, checkout: Checkout, *, create: bool) -> v.Scope:
        return v.Scope(project="app", found_by="path", value=checkout.place)
