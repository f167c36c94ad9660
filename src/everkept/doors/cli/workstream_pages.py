"""How workstreams, their sessions and their events look on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from everkept.api import workstream_views as w
from everkept.doors.cli import screen
from everkept.doors.cli.wording import ago, clean, clip, minute

TEXT_CHARS = 100


def workstream_list(items: Sequence[w.Workstream], place: str) -> Table:
    """`place`: the worktree that is asked from; what is selected there is marked."""
    table = screen.table("id", "name", "last", "sessions", "held by", "", right=("sessions",))
    for one in items:
        here = "selected here" if place in one.selected_in else ""
        table.add_row(one.id, clean(one.name), ago(one.last_at), f"{one.session_count:,}", _holder(one.live), here)
    return table


def workstream_page(found: w.Workstream) -> Iterator[RenderableType]:
    yield Text(f"{found.id} · {clean(found.name)}", style="bold")
    yield Text(f"begun {minute(found.created_at)} · {found.entries:,} in its ledger, the last {ago(found.last_at)}")
    for place in found.selected_in:
        yield Text(f"selected in {clean(place)}")
    yield Text(f"held by {_holder(found.live) or 'nobody'}")
    if found.last is not None:
        yield Text(f"last launch {_launch(found.last)}")
    if found.sessions:
        yield session_list(found.sessions)
    if found.session_count > len(found.sessions):
        yield Text(f"the newest {len(found.sessions):,} of {found.session_count:,} sessions", style="dim")


def session_list(items: Sequence[w.LinkedSession]) -> Table:
    table = screen.table("session", "agent", "its own id", "launch")
    for one in items:
        table.add_row(one.session_id or "–", clean(one.agent), clean(one.native_id), one.launch_id)
    return table


def event_list(items: Sequence[w.WorkstreamEvent]) -> Table:
    table = screen.table("place", "when", "agent", "kind", "what")
    for one in items:
        said = clip(one.text, TEXT_CHARS)
        table.add_row(one.place, minute(one.occurred_at), clean(one.agent), one.kind, said)
    return table


def _holder(live: w.Launch | None) -> str:
    if live is None:
        return ""
    holder = f"{clean(live.owner)} with {clean(live.agent)}"
    if live.lease_until <= datetime.now(UTC):
        return f"nobody: the lease of {holder} ended {minute(live.lease_until)}"
    return f"{holder}, until {minute(live.lease_until)}"


def _launch(launch: w.Launch) -> str:
    ended = "" if launch.exit_code is None else f", exit code {launch.exit_code}"
    return f"{launch.id}: {clean(launch.agent)}, {launch.state}{ended}, {ago(launch.prepared_at)}"
