"""Bringing rows that were written since they were copied, as they are now, or not at all where they are gone.

A round that takes every key that waits makes the target what the source was at the instant at which it was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

from everkept.store.connection import Connection, Row
from everkept.store.moving import arriving, away
from everkept.store.moving.away import Touched
from everkept.store.moving.kept import Kept, Key
from everkept.store.moving.pair import Pair

ROUND_KEYS: Final = 5_000
AT_ONCE: Final = 500
"""Keys of one statement."""
T = TypeVar("T")

Fresh = list[tuple[Kept, list[Key], list[Row]]]
"""Of each kind: keys, and the rows that there are of them."""


def follow(pair: Pair) -> bool:
    """One round; whether it took every key that waited. A kill at any line of it makes the next one do it again."""
    with pair.source.reading() as conn:
        touched = away.touched(conn, ROUND_KEYS)
        waiting = away.count_touched(conn)
        fresh = read_fresh(conn, pair.kept, touched)
    whole = waiting == len(touched.numbers)
    pair.tell("follow", rows_done=len(touched.numbers), rows=waiting)
    with pair.target.writing() as conn:
        stage = arriving.require_run(conn, pair.run).stage
        if whole and stage == "following" and not touched.numbers:
            return True
        pair.target.ground.hurry_not(conn)
        if stage == "following" and not whole:
            pair.target.ground.loosen(conn)  # a part of them may have a value twice
            arriving.set_stage(conn, "copying")
        write_fresh(conn, fresh)
        if stage == "copying" and whole:
            pair.target.ground.tighten(conn)
            arriving.set_stage(conn, "following")
    for numbers in _parts(touched.numbers):
        with pair.source.writing() as conn:
            away.forget_touched(conn, numbers)
    return whole


def read_fresh(conn: Connection, kept: Sequence[Kept], touched: Touched) -> Fresh:
    fresh: Fresh = []
    for each in kept:
        keys = list(touched.keys.get(each.name, ()))
        if keys:
            fresh.append((each, keys, [row for part in _parts(keys) for row in each.at(conn, part)]))
    return fresh


def write_fresh(conn: Connection, fresh: Fresh) -> None:
    for kept, keys, rows in fresh:
        for gone in _parts(keys):  # all of them first: a row may have got the unique value of another
            kept.put(conn, gone, ())
        for part in _parts(rows):
            kept.put(conn, (), part)


def _parts(items: Sequence[T]) -> Iterator[list[T]]:
    left = iter(items)
    while part := list(islice(left, AT_ONCE)):
        yield part
