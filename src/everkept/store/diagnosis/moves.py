"""Causes that lie in a move to another database: one that was made, and one that was not finished."""

from __future__ import annotations

from typing import Final

from everkept.store.connection import Connection
from everkept.store.diagnosis.causes import Finding
from everkept.store.diagnosis.look import Look
from everkept.store.migrate import MOVING_IN_TOLD
from everkept.store.moving.away import count_touched, find_move_out

RUNS_US: Final = 3_600_000_000
"""A move that was begun so long ago is taken for one that was left."""


def move_out(conn: Connection, _look: Look) -> list[Finding]:
    out = find_move_out(conn)
    if out is None:
        return []
    if out.state == "moved":
        return [Finding(
            cause="memory_moved", what=f"it is in {out.target}, and this place is only read", since=None,
            mend=f"set EVERKEPT_DATABASE_URL to {out.target} (with its password, where it has one)",
        )]  # fmt: skip
    if conn.now() - out.since < RUNS_US:
        return []
    return [Finding(
        cause="move_unfinished", what=f"a move to {out.target} was begun", since=out.since,
        evidence={"written_since": count_touched(conn)},
        mend=f"everkept move --to {out.target}, or everkept move --cancel",
    )]  # fmt: skip


def moving_in(name: str) -> Finding:
    """The place itself is no memory yet."""
    return Finding(
        cause="move_unfinished", what=f"{name}: {MOVING_IN_TOLD}", since=None, blind=True,
        mend=f"everkept move --to {name}, with EVERKEPT_DATABASE_URL as it was before the move",
    )  # fmt: skip
