"""Very many lanes at once (G13): `python -m tests.bench.lanes` does the same with 100,000 tenants, and measures."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest
from sqlalchemy import text
from tests.bench.lanes import SLOTS, Simulation, simulate, turns_while_all_wait, wait_of_the_active

from everkept.ports.clock import VirtualClock
from everkept.store import claims, jobs
from everkept.store.connection import Connection
from everkept.store.lanes import USES
from everkept.store.store import Store

TENANTS = 200
ACTIVE = 60
SEEKS = {
    **{f"projects by {use}": claims._TURNS[use,] for use in USES},
    **{f"lanes by {use}": claims._LANES[use] for use in USES},
    "due": jobs._DUE,
}
ASKED: dict[str, Any] = {"k": 17, "group": 1, "now": 0, "limit": 200}


def simulated(store: Store, clock: VirtualClock) -> Simulation:
    return simulate(store, clock, TENANTS, time.thread_time_ns)


def test_nobody_waits_longer_than_all_who_wait_take_in_turn(store: Store, clock: VirtualClock) -> None:
    assert wait_of_the_active(simulated(store, clock), ACTIVE) <= math.ceil(ACTIVE / SLOTS) + 1


def test_nobody_has_a_second_turn_while_anybody_waits_for_the_first(store: Store, clock: VirtualClock) -> None:
    assert turns_while_all_wait(simulated(store, clock), TENANTS - SLOTS) == 1


@pytest.mark.parametrize("seek", SEEKS)
def test_the_next_is_read_off_an_index_however_many_stand_at_the_same_place(store: Store, seek: str) -> None:
    """What sorts reads everybody: with 14,400 lanes at one place, a claim took 15 ms to find the first of them."""

    def plan(conn: Connection) -> str:
        server = conn.dialect.name == "postgresql"
        if server:
            for way in ("seqscan", "bitmapscan", "sort"):  # the table of a test is faster read as a whole
                conn.raw.execute(f"set local enable_{way} = off")
        explained = text(f"explain {'' if server else 'query plan '}{SEEKS[seek]}")
        return "\n".join(str(row[-1]) for row in conn.rows(explained, ASKED))

    found = store.write_now(plan)
    assert " ix_" in found
    assert "Sort" not in found
    assert "TEMP B-TREE" not in found
