"""Packets of launches: what of the ledger is read for one, how it is kept as an offer, and its acceptance (G11).

A packet is one contiguous range of the ledger. What it says is read and put into words outside the transaction that
keeps it; in between an erase may come, and then it is read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import text

from everkept.domain.context import Part, compose
from everkept.domain.ids import row_id
from everkept.domain.packet import EVENTS_MAX
from everkept.errors import Conflict, PacketGone
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.launch_sessions import find_cursor, move_cursor
from everkept.store.launches import LaunchRow, NewLaunch, NewPacket, add_launch, find_launch, get_launch, require_held
from everkept.store.ledger import LedgerEvent, count_events, ledger_head, newest_events

_NEWEST_ERASE: Final = text("select coalesce(max(id), 0) from erasures where project_id = :project")
_KEEP = text("""
update launches set packet = :packet, packet_shown = :shown, packet_counted = :counted, packet_erasure = :erasure
where id = :id""")
_OFFER = text("""
insert into offers(project_id, agent, native_id, epoch, launch_id, items, body, state, offered_at)
values(:project, :agent, :native, 0, :launch, :items, '', 'offered', :now) returning id""")
_OFFER_BODY = text("update offers set body = :body where id = :id")
_SET_OFFER = text("update launches set offer_id = :offer where id = :id")
_BODY = text("select body from offers where id = :id and project_id = :project")
_ACCEPT = text("""
update launches set accepted_at = :now, native_id = coalesce(:native, native_id) where id = :id
  and accepted_at is null""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a packet is made of: the range (`start`, `through`] without the receiver's own events."""

    start: int
    through: int
    newest: Sequence[LedgerEvent]
    """Oldest first."""
    by_agent: Mapping[str, int]
    erasure: int


def read_material(conn: Connection, project: int, workstream: int, agent: str, native: str | None) -> Material:
    """What is new to the agent's native session; None: to a new one, to which all is new."""
    start, _ = find_cursor(conn, workstream, agent, native)
    return material_between(conn, project, workstream, (agent, native or ""), start, ledger_head(conn, workstream))


def material_between(
    conn: Connection, project: int, workstream: int, receiver: tuple[str, str], start: int, through: int
) -> Material:
    return Material(
        start=start,
        through=max(start, through),
        newest=newest_events(conn, workstream, start, through, receiver, EVENTS_MAX),
        by_agent=count_events(conn, workstream, start, through, receiver),
        erasure=newest_erase(conn, project),
    )


def newest_erase(conn: Connection, project: int) -> int:
    """The number of the project's newest erase; 0 where there was none."""
    return int(conn.scalar(_NEWEST_ERASE, {"project": project}))


def prepare_with_packet(conn: Connection, new: NewLaunch) -> LaunchRow | None:
    """Lease the workstream and offer the packet; None where something was erased since it was read.

    Raises Conflict while another launch holds the workstream.
    """
    if newest_erase(conn, new.project) != new.packet.erasure:
        return None
    return _offer(conn, add_launch(conn, new))


def replace_packet(conn: Connection, project: int, launch: int, packet: NewPacket) -> LaunchRow | None:
    """Keep another packet over the same range; None where something was erased since it was read."""
    if newest_erase(conn, project) != packet.erasure:
        return None
    conn.run(_KEEP, {
        "id": launch, "packet": packet.text, "shown": packet.shown, "counted": packet.counted,
        "erasure": packet.erasure,
    })  # fmt: skip
    return _offer(conn, get_launch(conn, project, launch))


def _offer(conn: Connection, launch: LaunchRow) -> LaunchRow:
    """Its exact bytes carry the offer's id, by which they are known again when they come back (D07)."""
    if not launch.packet:
        return launch
    agent, native = launch.receiver
    offer = int(conn.scalar(_OFFER, {
        "project": launch.project, "agent": agent, "native": native, "launch": launch.id,
        "items": f'["{packet_item(launch)}"]', "now": conn.now(),
    }))  # fmt: skip
    block = compose(
        [packet_part(launch)], scope=f"workstream {launch.workstream_name}", offer=row_id("off", offer),
        tokens=len(launch.packet) + 1_000, chars=len(launch.packet) + 1_000,
    )  # fmt: skip
    conn.run(_OFFER_BODY, {"id": offer, "body": block.text})
    conn.run(_SET_OFFER, {"id": launch.id, "offer": offer})
    return get_launch(conn, launch.project, launch.id)


def packet_item(launch: LaunchRow) -> str:
    """By what an offer names the packet that is in it."""
    return f"{row_id('lch', launch.id)}@{launch.packet_through}"


def packet_part(launch: LaunchRow) -> Part:
    """The packet, as a part that is shown whole or not at all: its acceptance moves the cursor past all of it."""
    body = launch.packet or ""
    heading = f"What others did in the workstream {launch.workstream_name}"
    return Part(id=packet_item(launch), heading=heading, text=body, least=len(body) + 1)


def packet_bytes(conn: Connection, launch: LaunchRow) -> str:
    """As it was offered; empty where nothing was new. Raises PacketGone."""
    require_packet(conn, launch)
    if launch.offer is None:
        return ""
    return str(conn.scalar(_BODY, {"id": launch.offer, "project": launch.project}) or "")


def packet_to_give(conn: Connection, project: int, launch: int, *, again: bool) -> LaunchRow | None:
    """The launch, where its session is to be told of its packet at a start; `again`: also where it was accepted.

    None where it is not one of the project, has ended, or tells of nothing.
    """
    row = find_launch(conn, project, launch)
    if row is None or not row.is_live or not row.packet or is_gone(conn, row):
        return None
    return row if again or row.accepted_at is None else None


def is_gone(conn: Connection, launch: LaunchRow) -> bool:
    """Whether something was erased since the packet was made: it may tell of it. An empty one tells of nothing."""
    if launch.packet == "":
        return False
    return launch.packet is None or newest_erase(conn, launch.project) != launch.packet_erasure


def require_packet(conn: Connection, launch: LaunchRow) -> None:
    """Raises PacketGone."""
    if is_gone(conn, launch):
        raise PacketGone(
            f"something in the packet of {row_id('lch', launch.id)} was erased; its successor tells what remains",
            launch=row_id("lch", launch.id),
        )  # fmt: skip


def accept_packet(conn: Connection, project: int, launch: int, fence: int | None, native: str | None) -> LaunchRow:
    """The session has it: its cursor moves to the packet's end. Accepting again changes nothing.

    Raises LeaseLost once somebody has taken over, Conflict where the launch was cancelled, PacketGone.
    """
    row = get_launch(conn, project, launch)
    require_held(row, fence)
    if row.state == "cancelled":
        raise Conflict(f"{row_id('lch', launch)} was cancelled: nobody was given its packet", state=row.state)
    if row.accepted_at is not None:
        return row
    require_packet(conn, row)
    conn.run(_ACCEPT, {"id": launch, "now": conn.now(), "native": native})
    receiver = native or row.native or row.resumes
    if receiver is not None:
        move_cursor(conn, row.workstream, row.agent, receiver, row.packet_from, row.packet_through)
    record_changes(conn, project, [NewChange(kind="launch.accepted", ref=row_id("lch", launch))])
    return get_launch(conn, project, launch)
