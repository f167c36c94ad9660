"""Rows of launches and offers as the views that every door shows."""

from __future__ import annotations

from everkept.api import workstream_views as w
from everkept.api.present import moment, when
from everkept.domain.context import tokens_of
from everkept.domain.ids import row_id
from everkept.domain.session import own_name
from everkept.store.launches import LaunchRow
from everkept.store.offers import OfferRow


def launch_view(row: LaunchRow, now_us: int, packet: str | None = None, source_cursor: str | None = None) -> w.Launch:
    """`packet`: its exact bytes; without them the launch is shown without it. `source_cursor`: its session's."""
    return w.Launch(
        id=row_id("lch", row.id),
        workstream_id=row_id("wst", row.workstream),
        workstream=row.workstream_name,
        agent=row.agent,
        owner=row.owner,
        directory=row.directory,
        worktree=row.worktree,
        branch=row.branch,
        chosen_because=row.chosen_because,
        state=state_of(row, now_us),
        fence=row.fence,
        lease_until=moment(row.lease_until),
        native_id=_session(row),
        source_cursor=source_cursor or row.source_cursor,
        packet=None if packet is None else packet_view(row, packet),
        offer=None if row.offer is None else row_id("off", row.offer),
        accepted_at=when(row.accepted_at),
        acknowledged=row.acknowledged,
        exit_code=row.exit_code,
        prepared_at=moment(row.prepared_at),
        ended_at=when(row.ended_at),
    )


def state_of(row: LaunchRow, now_us: int) -> w.LaunchState:
    return "expired" if row.is_live and row.lease_until <= now_us else row.state


def packet_view(row: LaunchRow, text: str) -> w.Packet:
    return w.Packet(
        text=text, tokens=tokens_of(text), start=row.packet_from, through=row.packet_through,
        shown=row.packet_shown, counted=row.packet_counted,
    )  # fmt: skip


def _session(row: LaunchRow) -> str | None:
    native = row.native or row.resumes
    return None if native is None else own_name(native)


def lease_view(row: LaunchRow, now_us: int) -> w.LaunchLease:
    return w.LaunchLease(
        launch_id=row_id("lch", row.id), state=state_of(row, now_us), fence=row.fence,
        lease_until=moment(row.lease_until),
    )  # fmt: skip


def offer_view(row: OfferRow) -> w.Offer:
    return w.Offer(
        id=row_id("off", row.id), agent=row.receiver.agent, native_id=own_name(row.receiver.native), state=row.state,
        handoff_id=None if row.handoff is None else row_id("hnd", row.handoff),
        launch_id=None if row.launch is None else row_id("lch", row.launch), offered_at=moment(row.offered_at),
        shown_at=when(row.shown_at), acknowledged_at=when(row.acknowledged_at),
    )  # fmt: skip
