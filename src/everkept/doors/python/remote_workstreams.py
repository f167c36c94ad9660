"""Workstreams, launches and offers, asked of a server. All of it may be sent again: each is known by its key."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from everkept.api import views as v
from everkept.api import workstream_views as w
from everkept.capture.identity import Checkout
from everkept.domain.session import AgentEvent
from everkept.doors.python.asking import Asking, given, path_of


class RemoteWorkstreams(Asking):
    # ---- workstreams

    async def create_workstream(self, name: str, *, place: str | None = None) -> w.Workstream:
        body = given(name=name, place=place)
        return self._read(w.Workstream, await self._wire.ask("POST", "/v1/workstreams", body=body, safe=True))

    async def list_workstreams(self, *, limit: int = 50, cursor: str | None = None) -> v.Page[w.Workstream]:
        raw = await self._wire.ask("GET", "/v1/workstreams", query={"limit": limit, "cursor": cursor})
        return self._read(v.Page[w.Workstream], raw)

    async def get_workstream(self, workstream: str) -> w.Workstream:
        return self._read(w.Workstream, await self._wire.ask("GET", path_of("workstreams", workstream)))

    async def rename_workstream(self, workstream: str, name: str) -> w.Workstream:
        path = path_of("workstreams", workstream, "name")
        return self._read(w.Workstream, await self._wire.ask("PUT", path, body={"name": name}, safe=True))

    async def select_workstream(self, workstream: str, *, place: str) -> w.Workstream:
        path = path_of("workstreams", workstream, "select")
        return self._read(w.Workstream, await self._wire.ask("POST", path, body={"place": place}, safe=True))

    async def workstream_events(
        self, workstream: str, *, after: str | None = None, query: str | None = None, limit: int = 50
    ) -> v.Page[w.WorkstreamEvent]:
        asked = {"after": after, "query": query, "limit": limit}
        raw = await self._wire.ask("GET", path_of("workstreams", workstream, "events"), query=asked)
        return self._read(v.Page[w.WorkstreamEvent], raw)

    # ---- launches

    async def list_linked_sessions(
        self, workstream: str, *, launch: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[w.LinkedSession]:
        asked = {"launch": launch, "limit": limit, "cursor": cursor}
        raw = await self._wire.ask("GET", path_of("workstreams", workstream, "sessions"), query=asked)
        return self._read(v.Page[w.LinkedSession], raw)

    async def list_launches(self, workstream: str, *, limit: int = 50, cursor: str | None = None) -> v.Page[w.Launch]:
        asked = {"limit": limit, "cursor": cursor}
        raw = await self._wire.ask("GET", path_of("workstreams", workstream, "launches"), query=asked)
        return self._read(v.Page[w.Launch], raw)

    async def prepare_launch(
        self, owner: str, *, checkout: Checkout, workstream: str | None = None, agent: str | None = None,
        available: Sequence[str] = (), native_session: str | None = None, tokens: int | None = None,
        key: str | None = None,
    ) -> w.Launch:  # fmt: skip
        body = given(
            owner=owner, checkout=_checkout_body(checkout), workstream=workstream, agent=agent,
            available=list(available), native_session=native_session, tokens=tokens,
        )  # fmt: skip
        raw = await self._wire.ask("POST", "/v1/launches", body=body, key=key or secrets.token_hex(16))
        return self._read(w.Launch, raw)

    async def get_launch(self, launch_id: str) -> w.Launch:
        return self._read(w.Launch, await self._wire.ask("GET", path_of("launches", launch_id)))

    async def heartbeat_launch(self, launch_id: str, *, fence: int) -> w.LaunchLease:
        path = path_of("launches", launch_id, "heartbeat")
        return self._read(w.LaunchLease, await self._wire.ask("POST", path, body={"fence": fence}, safe=True))

    async def launch_events(
        self, launch_id: str, events: Sequence[AgentEvent], *, first: int, delivery_key: str | None = None
    ) -> w.LaunchTaken:
        body = given(events=_event_bodies(events), first=first, delivery_key=delivery_key)
        raw = await self._wire.ask("POST", path_of("launches", launch_id, "events"), body=body, safe=True)
        return self._read(w.LaunchTaken, raw)

    async def finish_launch(
        self, launch_id: str, *, fence: int, native_session: str | None = None, events: Sequence[AgentEvent] = (),
        first: int | None = None, source_cursor: str | None = None, exit_code: int | None = None,
    ) -> w.LaunchFinish:  # fmt: skip
        body = given(
            fence=fence, native_session=native_session, events=_event_bodies(events), first=first,
            source_cursor=source_cursor, exit_code=exit_code,
        )  # fmt: skip
        raw = await self._wire.ask("POST", path_of("launches", launch_id, "finish"), body=body, safe=True)
        return self._read(w.LaunchFinish, raw)

    async def cancel_launch(self, launch_id: str, *, fence: int) -> w.Launch:
        path = path_of("launches", launch_id, "cancel")
        return self._read(w.Launch, await self._wire.ask("POST", path, body={"fence": fence}, safe=True))

    async def accept_launch(
        self, launch_id: str, *, fence: int | None = None, native_session: str | None = None
    ) -> w.Launch:
        body = given(fence=fence, native_session=native_session)
        raw = await self._wire.ask("POST", path_of("launches", launch_id, "accept"), body=body, safe=True)
        return self._read(w.Launch, raw)

    async def accept_offer(self, offer_id: str) -> w.Offer:
        return self._read(w.Offer, await self._wire.ask("POST", path_of("offers", offer_id, "accept"), safe=True))


# Both are imported late: with them comes what reads, redacts and stores transcripts, and hardly a client starts agents.


def _checkout_body(checkout: Checkout) -> Mapping[str, Any] | None:
    from everkept.api.remote_drain import checkout_body

    return checkout_body(checkout)


def _event_bodies(events: Sequence[AgentEvent]) -> list[Mapping[str, Any]]:
    from everkept.api.remote_drain import event_body

    return [event_body(event) for event in events]
