"""The switch: the only phase of a move in which anybody waits, and the moment from which the memory is elsewhere.

What a kill leaves: before the target's commit nothing; between it and the source's, keys that follow once more; after
the source's commit a memory that is only read, and a target that the next run ends.
"""

from __future__ import annotations

import time
from typing import Final

from everkept.errors import Conflict
from everkept.store.moving import arriving, away
from everkept.store.moving.comparing import require_counts, require_fresh
from everkept.store.moving.following import read_fresh, write_fresh
from everkept.store.moving.kept import counts, numbered_tables
from everkept.store.moving.pair import Pair

ALL_KEYS: Final = 1_000_000_000


def switch(pair: Pair, keys_max: int) -> float | None:
    """For how long nobody could write, in seconds; None where more keys waited than that, and nothing was done.

    Raises Conflict where both sides do not have the same number of rows, or the last ones are not the same.
    """
    with pair.source.writing() as here:
        began = time.monotonic()
        if away.count_touched(here) > keys_max:
            return None
        pair.source.ground.hurry_not(here)  # it waits for the other side
        pair.source.ground.hold(here, pair.kept)
        fresh = read_fresh(here, pair.kept, away.touched(here, ALL_KEYS))
        with pair.target.writing() as there:
            if arriving.require_run(there, pair.run).stage != "following":
                raise Conflict("the target has never been what the source was at one instant")
            pair.target.ground.hurry_not(there)
            write_fresh(there, fresh)
            require_fresh(there, fresh)
            require_counts(here, there, pair.kept)
            pair.target.ground.set_numbers(there, pair.source.ground.numbers(here, numbered_tables()))
        away.set_state(here, "moved")
    return time.monotonic() - began


def end(pair: Pair) -> dict[str, int]:
    """Make the target a memory; its rows by table."""
    with pair.target.writing() as conn:
        pair.target.ground.hurry_not(conn)
        arriving.end_arrival(conn)
    return settle(pair)


def settle(pair: Pair) -> dict[str, int]:
    """What is left once the target is a memory, and may be done again: its rows by table."""
    with pair.target.alone() as conn:
        pair.target.ground.prove(conn)
    with pair.target.reading() as conn:
        return counts(conn, pair.kept)
