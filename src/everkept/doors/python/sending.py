"""A server as the hooks of a machine use it: they tell it what agents did, and ask it what an agent should know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2

from everkept.api import views as v
from everkept.doors.python.asking import Asking
from everkept.doors.python.wire import Wire

TAKEN_S = 120.0
"""How long a server may take over one request of a hundred records or a thousand events."""


class HooksServer(Asking):
    """`api.remote_desk.Server`, in whatever project a session belongs."""

    def __init__(
        self, url: str, api_key: str | None = None, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        super().__init__(Wire(url, {} if api_key is None else {"Authorization": f"Bearer {api_key}"}, transport))

    async def take_events(self, body: Mapping[str, Any]) -> v.Ingested:
        """Sent again on the way by itself, a few times: every record and event in it has a key."""
        raw = await self._wire.ask("POST", "/v1/events", body=body, safe=True, timeout_s=TAKEN_S)
        return self._read(v.Ingested, raw)

    async def give_context(self, body: Mapping[str, Any], *, within_s: float) -> v.AgentContext:
        """Sent once: who waits for it does not wait for another try."""
        return self._read(v.AgentContext, await self._wire.ask("POST", "/v1/context", body=body, timeout_s=within_s))

    async def close(self) -> None:
        await self._wire.close()
