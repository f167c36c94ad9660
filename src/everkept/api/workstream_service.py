"""The use cases of workstreams, launches and offers, as a part of `api.service.Service`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from everkept.api import views as v
from everkept.api import workstream_views as w
from everkept.capture.identity import Checkout
from everkept.domain.session import AgentEvent


class WorkstreamService(Protocol):
    async def create_workstream(self, name: str, *, place: str | None = None) -> w.Workstream:
        """The workstream of this name, made where there is none; with `place` (a worktree) also selected there."""
        ...

    async def list_workstreams(self, *, limit: int = 50, cursor: str | None = None) -> v.Page[w.Workstream]:
        """Newest first."""
        ...

    async def get_workstream(self, workstream: str) -> w.Workstream:
        """By its id or its name. Raises NotFound."""
        ...

    async def rename_workstream(self, workstream: str, name: str) -> w.Workstream:
        """Raises Conflict where another one has the name."""
        ...

    async def select_workstream(self, workstream: str, *, place: str) -> w.Workstream:
        """From now on launches in this worktree continue it, unless they name another."""
        ...

    async def workstream_events(
        self, workstream: str, *, after: str | None = None, query: str | None = None, limit: int = 50
    ) -> v.Page[w.WorkstreamEvent]:
        """What its sessions said and did, in the order in which it was taken in; `after`: behind this `place`.

        With `query` those in which all its words occur, best first; they are not paged.
        """
        ...

    async def list_linked_sessions(
        self, workstream: str, *, launch: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[w.LinkedSession]:
        """Newest first; before them those of which nothing was taken in yet, a few. `launch`: only its own."""
        ...

    async def list_launches(self, workstream: str, *, limit: int = 50, cursor: str | None = None) -> v.Page[w.Launch]:
        """Newest first, without their packets."""
        ...

    async def prepare_launch(
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
        """Lease the workstream for 90 s, with what is new in it to `native_session` (None: a new session) as a packet.

        Without `workstream` the one selected in the worktree, else the last one there, else a new one; without `agent`
        the last one of the workstream that is `available`, else the first that is. The same owner and key again: the
        same launch and packet; where its lease ended and nobody took over, with a new fence. Raises Conflict (with
        `holder` and `lease_until`) while another launch holds it, KeyConflict, NotFound.
        """
        ...  # fmt: skip

    async def get_launch(self, launch_id: str) -> w.Launch: ...
    async def heartbeat_launch(self, launch_id: str, *, fence: int) -> w.LaunchLease:
        """Every 30 s. Raises LeaseLost once the lease has ended: prepare again with the same key."""
        ...

    async def launch_events(
        self, launch_id: str, events: Sequence[AgentEvent], *, first: int, delivery_key: str | None = None
    ) -> w.LaunchTaken:
        """Take in events numbered `first`, `first` + 1, …, each known by its own key, whoever holds the launch by now.

        The answer's `acknowledged` says from where to send on. Raises KeyConflict where the delivery key stood for
        another batch, and Conflict where one of the numbers did for another event.
        """
        ...

    async def finish_launch(
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
        """The agent has ended. Events that are not here yet are taken in, whoever holds the launch by now; `first`: the
        number of the first of them.

        `source_cursor` says how far the session's transcript was read, in the caller's own words; it is taken with the
        first finish that tells one and leaves no numbered event out, and refused once somebody has taken over.
        """
        ...  # fmt: skip

    async def cancel_launch(self, launch_id: str, *, fence: int) -> w.Launch:
        """The agent was never started. Raises LeaseLost, Conflict where it was finished."""
        ...

    async def accept_launch(
        self, launch_id: str, *, fence: int | None = None, native_session: str | None = None
    ) -> w.Launch:
        """The session has the packet: its cursor moves to the packet's end, never back. Accepting twice is accepting
        once. Raises LeaseLost once somebody has taken over, PacketGone (with its successor) where a part was erased."""
        ...

    async def accept_offer(self, offer_id: str) -> w.Offer:
        """Take up what was given to a session: the launch's packet and the handoff in it, both or neither."""
        ...
