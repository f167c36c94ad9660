"""The beginning of a move, and its end before its time: what is under way on each side, and whether both agree."""

from __future__ import annotations

import secrets

from everkept.errors import Conflict, InvalidInput, NotFound, StoreMoved
from everkept.ports.clock import Clock
from everkept.store.connection import Connection
from everkept.store.moving import arriving, away
from everkept.store.moving.arriving import MoveIn
from everkept.store.moving.away import MoveOut
from everkept.store.moving.kept import Kept, counts
from everkept.store.moving.pair import Pair
from everkept.store.moving.side import Side

SEEDED = 1
"""Rows of `workspaces` in an empty memory."""
TRACKED_AT_ONCE = 8
"""Tables that one transaction prepares: it holds the lock of everybody who writes."""


def open_source(source: Side) -> MoveOut | None:
    """Raises NotFound where there is no memory, StoreNotSupported where it has another schema."""
    path = source.database.path
    if path is not None and not path.is_file():
        raise NotFound(f"there is no memory at {path}", path=str(path))
    source.require_schema()
    source.open()
    with source.reading() as conn:
        return away.find_move_out(conn)


def open_target(target: Side, kept: tuple[Kept, ...], clock: Clock) -> MoveIn | None:
    """What moves in there; None where it is an empty memory now. Raises Conflict where it holds one."""
    path = target.database.path
    if path is not None and not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent}", field="to")
    arrival = _find_arrival(target)
    if arrival is not None:
        return arrival
    target.database.prepare(clock)
    with target.reading() as conn:
        _require_empty(conn, kept, target.name)
    return None


def _require_empty(conn: Connection, kept: tuple[Kept, ...], name: str) -> None:
    for table, rows in counts(conn, kept).items():
        if rows > (SEEDED if table == "workspaces" else 0):
            raise Conflict(
                f"{name} holds a memory ({rows:,} rows of {table}); a memory moves only to an empty place",
                target=name, table=table,
            )  # fmt: skip


def begin(pair: Pair, out: MoveOut | None, arrival: MoveIn | None) -> None:
    """Both sides know of this move, and the source tells what is written. `out` and `arrival`: what was found there."""
    _require_same(pair, out, arrival)
    pair.tell("begin")
    move = secrets.token_hex(8) if out is None else out.move
    if out is None:
        with pair.source.writing() as conn:
            away.begin_move(conn, move, pair.target.name)
    if out is None or out.state == "tracking":
        for start in range(0, len(pair.kept), TRACKED_AT_ONCE):
            with pair.source.writing() as conn:
                for each in pair.kept[start : start + TRACKED_AT_ONCE]:
                    away.track(conn, each, pair.target.name)
        with pair.source.writing() as conn:
            away.set_state(conn, "moving")
    with pair.target.writing() as conn:
        if arrival is None:
            pair.target.ground.hurry_not(conn)
            arriving.begin_arrival(conn, pair.kept, move, pair.source.name, pair.run)
        else:
            arriving.take_over(conn, pair.run)


def _require_same(pair: Pair, out: MoveOut | None, arrival: MoveIn | None) -> None:
    require_target(pair, out)
    if arrival is not None and (out is None or arrival.move != out.move):
        raise Conflict(
            f"{pair.target.name} holds a part of another move, from {arrival.source}: finish that, or empty this place",
            target=pair.target.name, source=arrival.source,
        )  # fmt: skip


def require_target(pair: Pair, out: MoveOut | None) -> None:
    """Raises StoreMoved where the memory has moved elsewhere, Conflict where it is moving elsewhere."""
    if out is None or out.target == pair.target.name:
        return
    if out.state == "moved":
        raise StoreMoved(away.refusal(out.target), target=out.target)
    raise Conflict(
        f"a move to {out.target} is under way: `everkept move --to` that finishes it, `everkept move --cancel` ends it",
        target=out.target,
    )


def cancel(source: Side, target: Side | None, kept: tuple[Kept, ...]) -> None:
    """The source is as if no move had begun, and the target, where it is given, an empty memory.

    Raises NotFound where none is under way, StoreMoved where it is too late, Conflict where the target holds another.
    """
    out = open_source(source)
    if out is not None and out.state == "moved":
        raise StoreMoved(away.refusal(out.target), target=out.target)
    arrival = None if target is None else _find_arrival(target)
    if out is None and arrival is None:
        raise NotFound("no move is under way")
    if target is not None and arrival is not None:
        if arrival.source != source.name or (out is not None and arrival.move != out.move):
            raise Conflict(f"{target.name} holds a part of another move, from {arrival.source}", target=target.name)
        _empty(target)
    if out is not None:
        with source.writing() as conn:
            away.end_move(conn, kept)


def _find_arrival(target: Side) -> MoveIn | None:
    target.open()
    with target.reading() as conn:
        return arriving.find_move_in(conn)


def _empty(target: Side) -> None:
    with target.writing() as conn:
        target.ground.hurry_not(conn)
        arriving.give_up_arrival(conn)
    with target.alone() as conn:
        target.ground.prove(conn)
