"""One workstream with one launch, for tests of the doors alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from everkept.api import views as v
from everkept.api import workstream_views as w
from everkept.capture.identity import Checkout
from everkept.domain.ids import parse_row_id
from everkept.domain.session import AgentEvent
from everkept.errors import InvalidInput, LeaseLost, NotFound

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
LAUNCH = w.Launch(
    id="lch_1", workstream_id="wst_1", workstream="login", agent="codex", owner="ana", directory="/code/app",
    worktree="/code/app", branch="main", chosen_because="the workstream was asked for", state="prepared", fence=1,
    lease_until=AT, native_id=None, source_cursor=None,
    packet=w.Packet(text="One event.", tokens=3, start=0, through=4, shown=1, counted=0), offer="off_1",
    accepted_at=None, acknowledged=0, exit_code=None, prepared_at=AT, ended_at=None,
)  # fmt: skip
WORKSTREAM = w.Workstream(
    id="wst_1", name="login", created_at=AT, entries=1, last_at=AT, selected_in=["/code/app"], live=None, last=None,
    session_count=0, sessions=[],
)  # fmt: skip
EVENT = w.WorkstreamEvent(
    place="4.1", event_id="evt_1_1", session_id="ses_1", agent="claude-code", kind="prompt", text="Build it",
    occurred_at=AT,
)  # fmt: skip
OFFER = w.Offer(
    id="off_1", agent="codex", native_id="c1", state="acknowledged", handoff_id=None, launch_id="lch_1", offered_at=AT,
    shown_at=AT, acknowledged_at=AT,
)  # fmt: skip


class FakeWorkstreams:
    async def create_workstream(self, name: str, *, place: str | None = None) -> w.Workstream:
        return WORKSTREAM.model_copy(update={"name": name, "selected_in": [] if place is None else [place]})

    async def list_workstreams(self, *, limit: int = 50, cursor: str | None = None) -> v.Page[w.Workstream]:
        return v.Page(items=[WORKSTREAM])

    async def get_workstream(self, workstream: str) -> w.Workstream:
        if workstream not in (WORKSTREAM.id, WORKSTREAM.name):
            raise NotFound(f"there is no workstream {workstream!r}")
        return WORKSTREAM

    async def rename_workstream(self, workstream: str, name: str) -> w.Workstream:
        return (await self.get_workstream(workstream)).model_copy(update={"name": name})

    async def select_workstream(self, workstream: str, *, place: str) -> w.Workstream:
        return (await self.get_workstream(workstream)).model_copy(update={"selected_in": [place]})

    async def workstream_events(
        self, workstream: str, *, after: str | None = None, query: str | None = None, limit: int = 50
    ) -> v.Page[w.WorkstreamEvent]:
        await self.get_workstream(workstream)
        found = [] if after == EVENT.place or (query or "").lower() not in EVENT.text.lower() else [EVENT]
        return v.Page(items=found[:limit])

    async def list_linked_sessions(
        self, workstream: str, *, launch: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[w.LinkedSession]:
        await self.get_workstream(workstream)
        linked = w.LinkedSession(session_id="ses_1", agent="codex", native_id="c1", launch_id=launch or "lch_1")
        return v.Page(items=[linked])

    async def list_launches(self, workstream: str, *, limit: int = 50, cursor: str | None = None) -> v.Page[w.Launch]:
        await self.get_workstream(workstream)
        return v.Page(items=[LAUNCH.model_copy(update={"packet": None})])

    async def prepare_launch(
        self, owner: str, *, checkout: Checkout, workstream: str | None = None, agent: str | None = None,
        available: Sequence[str] = (), native_session: str | None = None, tokens: int | None = None,
        key: str | None = None,
    ) -> w.Launch:  # fmt: skip
        if agent is None and not available:
            raise InvalidInput("name an agent, or those that are available", field="agent")
        chosen = agent or available[0]
        return LAUNCH.model_copy(update={
            "owner": owner, "agent": chosen, "directory": checkout.cwd, "native_id": native_session,
            "workstream": workstream or LAUNCH.workstream})  # fmt: skip

    async def get_launch(self, launch_id: str) -> w.Launch:
        if parse_row_id("lch", launch_id) != 1:
            raise NotFound(f"there is no launch {launch_id}")
        return LAUNCH

    async def _held(self, launch_id: str, fence: int | None) -> w.Launch:
        launch = await self.get_launch(launch_id)
        if fence not in (None, launch.fence):
            raise LeaseLost(launch=launch_id)
        return launch

    async def heartbeat_launch(self, launch_id: str, *, fence: int) -> w.LaunchLease:
        await self._held(launch_id, fence)
        return w.LaunchLease(launch_id=launch_id, state="running", fence=fence, lease_until=AT)

    async def launch_events(
        self, launch_id: str, events: Sequence[AgentEvent], *, first: int, delivery_key: str | None = None
    ) -> w.LaunchTaken:  # fmt: skip
        await self.get_launch(launch_id)
        return w.LaunchTaken(acknowledged=first + len(events) - 1, sessions=[])

    async def finish_launch(
        self, launch_id: str, *, fence: int, native_session: str | None = None, events: Sequence[AgentEvent] = (),
        first: int | None = None, source_cursor: str | None = None, exit_code: int | None = None,
    ) -> w.LaunchFinish:  # fmt: skip
        launch = await self._held(launch_id, fence)
        ended = launch.model_copy(update={"state": "finished", "exit_code": exit_code, "native_id": native_session})
        fate: w.CursorFate = "none" if source_cursor is None else "taken"
        return w.LaunchFinish(launch=ended, cursor=fate, because="as it was told", sessions=[])

    async def cancel_launch(self, launch_id: str, *, fence: int) -> w.Launch:
        return (await self._held(launch_id, fence)).model_copy(update={"state": "cancelled"})

    async def accept_launch(
        self, launch_id: str, *, fence: int | None = None, native_session: str | None = None
    ) -> w.Launch:
        launch = await self._held(launch_id, fence)
        return launch.model_copy(update={"accepted_at": AT, "native_id": native_session})

    async def accept_offer(self, offer_id: str) -> w.Offer:
        if parse_row_id("off", offer_id) != 1:
            raise NotFound(f"there is no offer {offer_id}")
        return OFFER
