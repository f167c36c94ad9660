"""Moving a memory: the phases, each of which goes on where a run that was killed had come to.

1. **begin**: the source says where it moves, and each of its tables tells which rows are written from now on.
2. **copy**: every table in the order of its keys, a chunk a transaction, with how far it came.
3. **follow**: rows that were written since, until a round takes all of them: then the target is what the source was at
   one instant, and unique values are watched over again.
4. **compare**: every row, chunk by chunk, but for those that wait to follow.
5. **switch**: the source's lock is taken, the last rows follow, both sides are counted, and the source refuses every
   write from now on.
6. **end**: the target becomes a memory.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from everkept.errors import InvalidInput
from everkept.ports.clock import Clock
from everkept.store.database import Database
from everkept.store.moving import arriving
from everkept.store.moving.beginning import begin, cancel, open_source, open_target, require_target
from everkept.store.moving.comparing import compare
from everkept.store.moving.copying import copy
from everkept.store.moving.following import follow
from everkept.store.moving.kept import everything
from everkept.store.moving.pair import Pair, Told
from everkept.store.moving.side import Side
from everkept.store.moving.switching import ALL_KEYS, end, settle, switch

LAST_KEYS: Final = 300
"""At most so many keys are left to the switch, in which everybody waits."""
TRIES: Final = 8
"""So often that is tried: where writers write as many during a round, no later one leaves fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    target: str
    rows: dict[str, int]
    """{table: rows} of the target."""
    compared: int
    """Rows that were read on both sides by this run and found the same."""
    switch_s: float | None
    """How long nobody could write; None where an earlier run had made the switch."""


def move_memory(
    source: Database, target: Database, clock: Clock, told: Callable[[Told], None] = lambda _told: None
) -> Moved:
    """Move the memory in `source` to `target`, or go on with that; again after it has ended, too.

    Raises Conflict where the target holds something else, where another move or another run of this one is under way,
    and where the copy differs; StoreMoved where the memory has moved elsewhere; and errors of either database.
    """
    pair = Pair(
        source=Side(source, clock), target=Side(target, clock), kept=everything(), run=secrets.token_hex(8), told=told
    )
    if pair.source.name == pair.target.name:
        raise InvalidInput(f"{pair.source.name} is the memory itself", field="to")
    try:
        return _move(pair, clock)
    finally:
        pair.source.close()
        pair.target.close()


def _move(pair: Pair, clock: Clock) -> Moved:
    out = open_source(pair.source)
    require_target(pair, out)
    if out is not None and out.state == "moved":
        return _moved(pair, _end(pair))
    begin(pair, out, open_target(pair.target, pair.kept, clock))
    copy(pair)
    while not follow(pair):
        pass
    compared = compare(pair)
    switch_s = _switch(pair)
    pair.tell("end")
    return _moved(pair, end(pair), compared, switch_s)


def _switch(pair: Pair) -> float:
    for _ in range(TRIES):
        whole = follow(pair)
        pair.tell("switch")
        if whole and (took := switch(pair, LAST_KEYS)) is not None:
            return took
    while not follow(pair):
        pass
    took = switch(pair, ALL_KEYS)
    assert took is not None, "no number of keys is too large"
    return took


def _end(pair: Pair) -> dict[str, int]:
    """The switch was made by an earlier run."""
    pair.tell("end")
    pair.target.open()
    with pair.target.reading() as conn:
        arrived = arriving.find_move_in(conn) is None
    return settle(pair) if arrived else end(pair)


def _moved(pair: Pair, rows: dict[str, int], compared: int = 0, switch_s: float | None = None) -> Moved:
    return Moved(target=pair.target.name, rows=rows, compared=compared, switch_s=switch_s)


def cancel_move(source: Database, target: Database | None, clock: Clock) -> None:
    """End a move before its switch, as if it had never begun.

    The target's part is destroyed where it is given. Raises NotFound without a move, StoreMoved after the switch.
    """
    here, there = Side(source, clock), None if target is None else Side(target, clock)
    try:
        cancel(here, there, everything())
    finally:
        here.close()
        if there is not None:
            there.close()
