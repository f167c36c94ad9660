"""Which events a launch has told, so that it knows from where to send on. Only keyed hashes of their keys are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import text

from everkept.domain.ids import row_id
from everkept.errors import Conflict, KeyConflict
from everkept.store.connection import Connection
from everkept.store.launches import LaunchRow

_DELIVERED = text("select payload_hash from launch_deliveries where launch_id = :launch and key_hash = :key")
_ADD_DELIVERY = text("""
insert into launch_deliveries(launch_id, key_hash, payload_hash) values(:launch, :key, :payload)
on conflict do nothing""")
_NUMBERED = text("select key_hash from launch_events where launch_id = :launch and number = :number")
_ADD = text("""
insert into launch_events(launch_id, number, key_hash) values(:launch, :number, :key) on conflict do nothing""")
_AHEAD = text("""
select number from launch_events where launch_id = :launch and number > :after order by number limit :limit""")
AHEAD_AT_ONCE: Final = 1_000
"""Behind a gap many more may be waiting, and a batch that does not fill it reads no more of them."""
_ACKNOWLEDGE = text("update launches set acknowledged = :through where id = :launch")
_GAP: Final = text("select 1 from launch_events where launch_id = :launch and number > :after limit 1")


def require_same_delivery(conn: Connection, launch: int, key: str, payload: str) -> None:
    """Raises KeyConflict where the delivery key stood for another batch."""
    found = conn.scalar(_DELIVERED, {"launch": launch, "key": key})
    if found is not None and found != payload:
        raise KeyConflict("this delivery key was used before with another batch", launch=row_id("lch", launch))


def require_same_numbers(conn: Connection, launch: int, keys: Sequence[Sequence[str]], first: int) -> None:
    """Raises Conflict where a number stands for another event: `keys` are numbered from `first` on.

    Each as it may have been hashed: under the project's secret, or under those of projects that were merged into it.
    """
    for number, key in enumerate(keys, first):
        found = conn.scalar(_NUMBERED, {"launch": launch, "number": number})
        if found is not None and found not in key:
            raise Conflict(f"event {number} of {row_id('lch', launch)} was another one", number=number)


def note_events(conn: Connection, launch: LaunchRow, keys: Sequence[str], first: int) -> int:
    """They are here, numbered from `first` on; how many numbered events are here without a gap."""
    conn.many(_ADD, [
        {"launch": launch.id, "number": number, "key": key} for number, key in enumerate(keys, first)
    ])  # fmt: skip
    through = _without_gap(conn, launch.id, launch.acknowledged)
    conn.run(_ACKNOWLEDGE, {"launch": launch.id, "through": through})
    return through


def _without_gap(conn: Connection, launch: int, through: int) -> int:
    """The last number up to which all are here, where those up to `through` are."""
    whole = AHEAD_AT_ONCE
    while whole == AHEAD_AT_ONCE:
        ahead = conn.rows(_AHEAD, {"launch": launch, "after": through, "limit": AHEAD_AT_ONCE})
        whole = sum(number == expected for expected, (number,) in enumerate(ahead, through + 1))
        through += whole
    return through


def note_delivery(conn: Connection, launch: int, key: str, payload: str) -> None:
    conn.run(_ADD_DELIVERY, {"launch": launch, "key": key, "payload": payload})


def has_gap(conn: Connection, launch: LaunchRow) -> bool:
    """Whether numbered events are here of which earlier ones are missing."""
    return conn.first(_GAP, {"launch": launch.id, "after": launch.acknowledged}) is not None
