"""Workstreams and launches, waited for. Made by scripts/generate_sync.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence

from everkept.api import workstream_views as w
from everkept.capture.identity import Checkout
from everkept.domain.session import AgentEvent
from everkept.doors.python.async_workstreams import AsyncLaunches, AsyncWorkstreams
from everkept.doors.python.facade import Facade
from everkept.doors.python.items import Items


class Workstreams(Facade[AsyncWorkstreams]):
    """One line of work across several agents' sessions."""

    def create(self, name: str, *, place: str | None = None) -> w.Workstream:
        """The workstream of this name, made where there is none; with `place` (a worktree) also selected there."""
        return self._loop.wait(self._inner.create(name, place=place))

    def list(self) -> Items[w.Workstream]:
        """Newest first."""
        return Items(self._loop, self._inner.list())

    def get(self, workstream: str) -> w.Workstream:
        """One, by its id or its name. Raises NotFound."""
        return self._loop.wait(self._inner.get(workstream))

    def rename(self, workstream: str, name: str) -> w.Workstream:
        """Raises Conflict where another one has the name."""
        return self._loop.wait(self._inner.rename(workstream, name))

    def select(self, workstream: str, *, place: str) -> w.Workstream:
        """From now on launches in this worktree continue it, unless they name another."""
        return self._loop.wait(self._inner.select(workstream, place=place))

    def events(self, workstream: str) -> Items[w.WorkstreamEvent]:
        """What its sessions said and did, in the order in which it was taken in."""
        return Items(self._loop, self._inner.events(workstream))

    def search(self, workstream: str, query: str, *, limit: int = 20) -> Sequence[w.WorkstreamEvent]:
        """What its sessions said and did in which all words of the query occur, best first."""
        return self._loop.wait(self._inner.search(workstream, query, limit=limit))

    def sessions(self, workstream: str, *, launch: str | None = None) -> Items[w.LinkedSession]:
        """Newest first; before them those of which nothing was taken in yet, a few."""
        return Items(self._loop, self._inner.sessions(workstream, launch=launch))

    def launches(self, workstream: str) -> Items[w.Launch]:
        """Newest first, without their packets."""
        return Items(self._loop, self._inner.launches(workstream))


class Launches(Facade[AsyncLaunches]):
    """Leased starts of agents within workstreams."""

    def prepare(
        self,
        owner: str,
        *,
        checkout: Checkout,
        workstream: str | None = None,
        agent: str | None = None,
        available: Sequence[str] = (),
        native_session: str | None = None,
        tokens: int | None = None,
        key: str | None = None,
    ) -> w.Launch:
        """Lease a workstream for 90 s, with what is new in it as a packet. Raises Conflict while another holds it."""
        return self._loop.wait(
            self._inner.prepare(
                owner,
                checkout=checkout,
                workstream=workstream,
                agent=agent,
                available=available,
                native_session=native_session,
                tokens=tokens,
                key=key,
            )
        )

    def get(self, launch_id: str) -> w.Launch:
        """Raises NotFound."""
        return self._loop.wait(self._inner.get(launch_id))

    def heartbeat(self, launch_id: str, *, fence: int) -> w.LaunchLease:
        """Every 30 s. Raises LeaseLost once the lease has ended: prepare again with the same key."""
        return self._loop.wait(self._inner.heartbeat(launch_id, fence=fence))

    def events(
        self, launch_id: str, events: Sequence[AgentEvent], *, first: int, delivery_key: str | None = None
    ) -> w.LaunchTaken:
        """Take in events numbered from `first` on; the answer's `acknowledged` says from where to send on."""
        return self._loop.wait(self._inner.events(launch_id, events, first=first, delivery_key=delivery_key))

    def finish(
        self,
        launch_id: str,
        *,
        fence: int,
        native_session: str | None = None,
        events: Sequence[AgentEvent] = (),
        first: int | None = None,
        source_cursor: str | None = None,
        exit_code: int | None = None,
    ) -> w.LaunchFinish:
        """The agent has ended. Told again it adds events that it did not carry, and changes nothing else."""
        return self._loop.wait(
            self._inner.finish(
                launch_id,
                fence=fence,
                native_session=native_session,
                events=events,
                first=first,
                source_cursor=source_cursor,
                exit_code=exit_code,
            )
        )

    def cancel(self, launch_id: str, *, fence: int) -> w.Launch:
        """The agent was never started. Raises LeaseLost, Conflict."""
        return self._loop.wait(self._inner.cancel(launch_id, fence=fence))

    def accept(self, launch_id: str, *, fence: int | None = None, native_session: str | None = None) -> w.Launch:
        """Its session has the packet. Raises LeaseLost, PacketGone (with its successor)."""
        return self._loop.wait(self._inner.accept(launch_id, fence=fence, native_session=native_session))
