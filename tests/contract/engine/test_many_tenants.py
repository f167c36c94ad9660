"""Very many lanes at once (G13): `python -m tests.bench.lanes` does the same with 100,000 tenants, and measures."""

from __future__ import annotations

import math
import time

from tests.bench.lanes import SLOTS, Simulation, simulate, turns_while_all_wait, wait_of_the_active

from everkept.ports.clock import VirtualClock
from everkept.store.store import Store

TENANTS = 200
ACTIVE = 60


def simulated(store: Store, clock: VirtualClock) -> Simulation:
    return simulate(store, clock, TENANTS, time.thread_time_ns)


def test_nobody_waits_longer_than_all_who_wait_take_in_turn(store: Store, clock: VirtualClock) -> None:
    assert wait_of_the_active(simulated(store, clock), ACTIVE) <= math.ceil(ACTIVE / SLOTS) + 1


def test_nobody_has_a_second_turn_while_anybody_waits_for_the_first(store: Store, clock: VirtualClock) -> None:
    assert turns_while_all_wait(simulated(store, clock), TENANTS - SLOTS) == 1
