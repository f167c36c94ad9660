"""Offers: what one session's context was given, and whether it took it up (G11). Reading consumes nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import text

from everkept.domain.ids import row_id
from everkept.errors import Conflict, LeaseLost, NotFound, PacketGone
from everkept.store.connection import Connection
from everkept.store.handoffs import acknowledge_handoff
from everkept.store.packets import accept_packet

STALE_US: Final = 7 * 86_400 * 1_000_000
"""An offer that nobody acknowledged for so long has expired; what it offered is offered again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """A session as it was when it got something: `epoch` counts its clears and compactions."""

    agent: str
    native: str
    epoch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferRow:
    id: int
    receiver: Receiver
    handoff: int | None
    launch: int | None
    """Whose packet is in it."""
    items: tuple[str, ...]
    body: str
    state: str
    offered_at: int
    shown_at: int | None
    acknowledged_at: int | None


_COLUMNS = """
select id, agent, native_id, epoch, handoff_id, launch_id, items, body, state, offered_at, shown_at, acknowledged_at
from offers
where project_id = :project """
_BY_ID = text(_COLUMNS + "and id = :id")
_TO = text(
    _COLUMNS + "and agent = :agent and native_id = :native and epoch = :epoch and state <> 'expired' order by id"
)
_EPOCH = text("select max(epoch) from offers where project_id = :project and agent = :agent and native_id = :native")
_EPOCH_SINCE = text("""
select epoch, min(offered_at) from offers where project_id = :project and agent = :agent and native_id = :native
group by epoch order by epoch desc limit 1""")
SAME_START_US: Final = 10_000_000
"""A clear or compaction that is told again within this is the same one: two hooks were fired, or one twice."""
_ADD = text("""
insert into offers(project_id, agent, native_id, epoch, handoff_id, launch_id, items, body, state, offered_at)
values(:project, :agent, :native, :epoch, :handoff, :launch, :items, :body, 'offered', :now) returning id""")
_PROJECT = text("select project_id from offers where id = :id")
_SHOWN = text("""
update offers set state = 'shown', shown_at = :now, shown_seq = coalesce((select s.last_seq from streams s
    where s.project_id = :project and s.kind = 'session' and s.name = offers.agent || '/' || offers.native_id), 0)
where project_id = :project and id = :id and state = 'offered'""")
_WAITING = text("""
select id, handoff_id, launch_id, shown_seq, shown_at from offers
where project_id = :project and agent = :agent and native_id = :native and state = 'shown'""")
_FIRST_PROMPT = text("""
select min(seq) from events where stream_id = :stream and seq > :seq and role = 'user' and occurred_at >= :shown_at
  and flag_in(metadata, 'genuine') and word_in(metadata, 'kind') = 'prompt'""")
_WORKED = text("""
select 1 from events where stream_id = :stream and seq > :seq and (word_in(metadata, 'kind') = 'turn_end'
  or (word_in(metadata, 'kind') = 'tool' and flag_in(metadata, 'tool', 'ended'))) limit 1""")
SLACK_US: Final = 60_000_000
"""By how much an agent's clock may be behind ours."""
_ACKNOWLEDGE = text("update offers set state = 'acknowledged', acknowledged_at = :now where id = :id")
_EXPIRE = text("""
update offers set state = 'expired' where id in (
  select id from offers where state in ('offered', 'shown') and offered_at <= :before limit :limit)""")


def _offer(r: tuple[Any, ...]) -> OfferRow:
    return OfferRow(
        id=r[0], receiver=Receiver(agent=r[1], native=r[2], epoch=r[3]), handoff=r[4], launch=r[5],
        items=tuple(json.loads(r[6])), body=r[7], state=r[8], offered_at=r[9], shown_at=r[10], acknowledged_at=r[11],
    )  # fmt: skip


def current_epoch(conn: Connection, project: int, agent: str, native: str) -> int:
    """Of the receiver's newest offer; 0 where it had none."""
    return int(conn.scalar(_EPOCH, {"project": project, "agent": agent, "native": native}) or 0)


def epoch_to_begin(conn: Connection, project: int, agent: str, native: str) -> int:
    """The epoch after a clear or compaction that is told now; told again within seconds, it has begun already."""
    row = conn.first(_EPOCH_SINCE, {"project": project, "agent": agent, "native": native})
    if row is None:
        return 1
    epoch, since = row
    return int(epoch) if epoch > 0 and conn.now() - since <= SAME_START_US else int(epoch) + 1


def make_offer(
    conn: Connection, project: int, receiver: Receiver, *, handoff: int | None, items: Sequence[str], body: str,
    launch: int | None = None,
) -> OfferRow:  # fmt: skip
    """Note what is given, before it is given. The same again to the same receiver is the same offer."""
    for earlier in offers_to(conn, project, receiver):
        if earlier.body == body and earlier.items == tuple(items):
            return earlier
    id_ = conn.scalar(_ADD, {
        "project": project, "agent": receiver.agent, "native": receiver.native, "epoch": receiver.epoch,
        "handoff": handoff, "launch": launch, "items": json.dumps(list(items)), "body": body, "now": conn.now(),
    })  # fmt: skip
    return get_offer(conn, project, int(id_))


def get_offer(conn: Connection, project: int, offer: int) -> OfferRow:
    row = conn.first(_BY_ID, {"project": project, "id": offer})
    if row is None:
        raise NotFound(f"there is no offer {row_id('off', offer)} in this project", id=row_id("off", offer))
    return _offer(row)


def offers_to(conn: Connection, project: int, receiver: Receiver) -> list[OfferRow]:
    """Oldest first, of this epoch."""
    return [_offer(r) for r in conn.rows(_TO, {
        "project": project, "agent": receiver.agent, "native": receiver.native, "epoch": receiver.epoch})]  # fmt: skip


def project_of_offer(conn: Connection, offer: int) -> int | None:
    found = conn.scalar(_PROJECT, {"id": offer})
    return None if found is None else int(found)


def note_shown(conn: Connection, project: int, offer: int) -> None:
    """The hook has printed it. Of an offer that is not there any more nothing is noted."""
    conn.run(_SHOWN, {"project": project, "id": offer, "now": conn.now()})


def note_taken_up(conn: Connection, project: int, stream: int, agent: str, native: str) -> int:
    """Acknowledge what this session was shown, and has worked on since; how many offers.

    Starts, ends, notifications and compactions acknowledge nothing: a session that did nothing uses nothing up.
    """
    taken = 0
    waiting = conn.rows(_WAITING, {"project": project, "agent": agent, "native": native})
    for offer, handoff, launch, seq, shown_at in waiting:
        since = {"stream": stream, "seq": seq, "shown_at": shown_at - SLACK_US}
        prompt = conn.scalar(_FIRST_PROMPT, since)
        if prompt is None or conn.first(_WORKED, {"stream": stream, "seq": prompt}) is None:
            continue
        try:
            _take_up(conn, project, offer, handoff, launch, Receiver(agent=agent, native=native))
        except (LeaseLost, Conflict, NotFound, PacketGone):  # neither is taken up: both are offered again
            continue
        taken += 1
    return taken


def accept_offer(conn: Connection, project: int, offer: int) -> OfferRow:
    """By hand: its packet and its handoff, both or neither. Accepting again changes nothing.

    Raises NotFound, Conflict where it has expired, and what accepting the packet raises.
    """
    row = get_offer(conn, project, offer)
    if row.state == "expired":
        raise Conflict(f"{row_id('off', offer)} has expired; what it offered is offered again", id=row_id("off", offer))
    if row.state != "acknowledged":
        _take_up(conn, project, offer, row.handoff, row.launch, row.receiver)
    return get_offer(conn, project, offer)


def _take_up(
    conn: Connection, project: int, offer: int, handoff: int | None, launch: int | None, receiver: Receiver
) -> None:
    """The packet first: where it cannot be accepted, nothing of the offer is written."""
    if launch is not None:
        accept_packet(conn, project, launch, None, receiver.native or None)
    conn.run(_ACKNOWLEDGE, {"id": offer, "now": conn.now()})
    if handoff is not None:
        acknowledge_handoff(conn, project, handoff, f"{receiver.agent}/{receiver.native}")


def expire_offers(conn: Connection, _after: int, limit: int) -> tuple[int, int]:
    """(how many, 1 where there may be more)."""
    gone = conn.run(_EXPIRE, {"before": conn.now() - STALE_US, "limit": limit})
    return gone, int(gone == limit)
