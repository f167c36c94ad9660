"""`memory.workstreams` and `memory.launches`. Their synchronous twins are generated from this file."""

from __future__ import annotations

from collections.abc import Sequence

from everkept.api import workstream_views as w
from everkept.api.workstream_service import WorkstreamService
from everkept.capture.identity import Checkout
from everkept.domain.session import AgentEvent
from everkept.doors.python.items import AsyncItems

PAGE = 100
"""Items fetched at once by a list that is iterated over."""


class AsyncWorkstreams:
    """One line of work across several agents' sessions."""

    def __init__(self, service: WorkstreamService) -> None:
        self._service = service

    async def create(self, name: str, *, place: str | None = None) -> w.Workstream:
        """The workstream of this name, made where there is none; with `place` (a worktree) also selected there."""
        return await self._service.create_workstream(name, place=place)

    def list(self) -> AsyncItems[w.Workstream]:
        """Newest first."""
        return AsyncItems(lambda cursor: self._service.list_workstreams(limit=PAGE, cursor=cursor))

    async def get(self, workstream: str) -> w.Workstream:
        """One, by its id or its name. Raises NotFound."""
        return await self._service.get_workstream(workstream)

    async def rename(self, workstream: str, name: str) -> w.Workstream:
        """Raises Conflict where another one has the name."""
        return await self._service.rename_workstream(workstream, name)

    async def select(self, workstream: str, *, place: str) -> w.Workstream:
        """From now on launches in this worktree continue it, unless they name another."""
        return await self._service.select_workstream(workstream, place=place)

    def events(self, workstream: str) -> AsyncItems[w.WorkstreamEvent]:
        """What its sessions said and did, in the order in which it was taken in."""
        return AsyncItems(lambda cursor: self._service.workstream_events(workstream, after=cursor, limit=PAGE))

    async def search(self, workstream: str, query: str, *, limit: int = 20) -> Sequence[w.WorkstreamEvent]:
        """What its sessions said and did in which all words of the query occur, best first."""
        return (await self._service.workstream_events(workstream, query=query, limit=limit)).items

    def sessions(self, workstream: str, *, launch: str | None = None) -> AsyncItems[w.LinkedSession]:
        """Newest first; before them those of which nothing was taken in yet, a few."""
        return AsyncItems(
            lambda cursor: self._service.list_linked_sessions(workstream, launch=launch, limit=PAGE, cursor=cursor)
        )

    def launches(self, workstream: str) -> AsyncItems[w.Launch]:
        """Newest first, without their packets."""
        return AsyncItems(lambda cursor: self._service.list_launches(workstream, limit=PAGE, cursor=cursor))


class AsyncLaunches:
    """Leased starts of agents within workstreams."""

    def __init__(self, service: WorkstreamService) -> None:
        self._service = service

    async def prepare(
        self, owner: str, *, checkout: Checkout, workstream: str | None = None, agent: str | None = None,
        available: Sequence[str] = (), native_session: str | None = None, tokens: int | None = None,
        key: str | None = None,
    ) -> w.Launch:  # fmt: skip
        """Lease a workstream for 90 s, with what is new in it as a packet. Raises Conflict while another holds it."""
        return await self._service.prepare_launch(
            owner, checkout=checkout, workstream=workstream, agent=agent, available=available,
            native_session=native_session, tokens=tokens, key=key,
        )  # fmt: skip

    async def get(self, launch_id: str) -> w.Launch:
        """Raises NotFound."""
        return await self._service.get_launch(launch_id)

    async def heartbeat(self, launch_id: str, *, fence: int) -> w.LaunchLease:
        """Every 30 s. Raises LeaseLost once the lease has ended: prepare again with the same key."""
        return await self._service.heartbeat_launch(launch_id, fence=fence)

    async def events(
        self, launch_id: str, events: Sequence[AgentEvent], *, first: int, delivery_key: str | None = None
    ) -> w.LaunchTaken:
        """Take in events numbered from `first` on; the answer's `acknowledged` says from where to send on."""
        return await self._service.launch_events(launch_id, events, first=first, delivery_key=delivery_key)

    async def finish(
        self, launch_id: str, *, fence: int, native_session: str | None = None, events: Sequence[AgentEvent] = (),
        first: int | None = None, source_cursor: str | None = None, exit_code: int | None = None,
    ) -> w.LaunchFinish:  # fmt: skip
        """The agent has ended. Told again it adds events that it did not carry, and changes nothing else."""
        return await self._service.finish_launch(
            launch_id, fence=fence, native_session=native_session, events=events, first=first,
            source_cursor=source_cursor, exit_code=exit_code,
        )  # fmt: skip

    async def cancel(self, launch_id: str, *, fence: int) -> w.Launch:
        """The agent was never started. Raises LeaseLost, Conflict."""
        return await self._service.cancel_launch(launch_id, fence=fence)

    async def accept(self, launch_id: str, *, fence: int | None = None, native_session: str | None = None) -> w.Launch:
        """Its session has the packet. Raises LeaseLost, PacketGone (with its successor)."""
        return await self._service.accept_launch(launch_id, fence=fence, native_session=native_session)
