"""What every door answers with about workstreams, their launches, and offers of context."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from everkept.api.views import SessionTaken, View

LaunchState = Literal["prepared", "running", "expired", "finished", "cancelled", "lost"]
"""`expired`: its lease ended, and nobody has taken over; `lost`: somebody has."""
CursorFate = Literal["taken", "kept", "refused", "none"]
"""Of a finish's source cursor: it is the session's now; an earlier one stays; it is not the newest holder's; none."""


class LinkedSession(View):
    """A native session of an agent that belongs to a workstream."""

    session_id: str | None
    """None until anything of it was taken in."""
    agent: str
    native_id: str
    launch_id: str
    """The last launch that linked it."""


class Packet(View):
    """What a launch's agent is told of the workstream: the same bytes however often it is asked for."""

    text: str
    """Empty where nothing is new."""
    tokens: int
    start: int
    """The cursor that it continues from: all of the ledger after it, up to `through`, is in the packet."""
    through: int
    """Where its acceptance moves the cursor to."""
    shown: int
    """Events in it."""
    counted: int
    """Earlier entries of the range that stand as one counted line."""


class Launch(View):
    """One leased start of an agent within a workstream."""

    id: str
    """What the agent's environment has as `EVERKEPT_LAUNCH`, so that its sessions are linked."""
    workstream_id: str
    workstream: str
    """Its name."""
    agent: str
    owner: str
    directory: str
    worktree: str | None
    branch: str | None
    chosen_because: str
    """Why this workstream, and why this agent."""
    state: LaunchState
    fence: int
    """Whoever holds the launch sends it with heartbeats, its finish and its cancelling; it grows with a take-over."""
    lease_until: datetime
    native_id: str | None
    """The session that the packet is for: the one that is resumed, or the first that was linked."""
    source_cursor: str | None
    """How far that session's transcript was taken in, as the launch that finished it last had said."""
    packet: Packet | None
    """None in lists."""
    offer: str | None
    """The packet as an offer, to be accepted by its id; None where nothing is new."""
    accepted_at: datetime | None
    acknowledged: int
    """So many of its numbered events are here without a gap."""
    exit_code: int | None
    prepared_at: datetime
    ended_at: datetime | None


class LaunchLease(View):
    """What a heartbeat is answered with."""

    launch_id: str
    state: LaunchState
    fence: int
    lease_until: datetime


class LaunchTaken(View):
    """What became of a batch of a launch's events."""

    acknowledged: int
    """Events 1 to this number are here; those after a gap are kept, and counted once the gap is closed."""
    sessions: list[SessionTaken]


class LaunchFinish(View):
    """What became of a finish. Sent again it changes nothing but to add events that it did not carry before."""

    launch: Launch
    cursor: CursorFate
    because: str
    """Why the cursor is what it is."""
    sessions: list[SessionTaken]


class Workstream(View):
    """One line of work across several agents' sessions."""

    id: str
    name: str
    created_at: datetime
    entries: int
    """Of its ledger: all that its sessions told, also what nobody needs to see."""
    last_at: datetime | None
    """When anything of it was taken in last."""
    selected_in: list[str]
    """Worktrees whose launches continue it."""
    live: Launch | None
    """The launch that holds it; only one can."""
    last: Launch | None
    """The launch that was prepared last."""
    session_count: int
    sessions: list[LinkedSession]
    """The newest of them, twenty at most; empty in lists."""


class WorkstreamEvent(View):
    """Something that a session of the workstream said or did."""

    place: str
    """In the ledger; `after` continues behind it."""
    event_id: str
    session_id: str
    agent: str
    kind: str
    text: str
    occurred_at: datetime


class Offer(View):
    """What was given to one session's context."""

    id: str
    agent: str
    native_id: str
    state: Literal["offered", "shown", "acknowledged", "expired"]
    handoff_id: str | None
    """Acknowledged together with it, and with the launch's packet."""
    launch_id: str | None
    offered_at: datetime
    shown_at: datetime | None
    acknowledged_at: datetime | None
