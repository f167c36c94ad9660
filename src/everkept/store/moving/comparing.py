"""Comparing both sides, row by row, while the source is written: what waits to follow is left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NoReturn

from everkept.errors import Conflict
from everkept.store.connection import Connection, Row
from everkept.store.moving.following import Fresh
from everkept.store.moving.kept import Kept, Key, canonical, counts, digest
from everkept.store.moving.pair import Pair
from everkept.store.moving.pieces import pieces

NAMED_MAX: Final = 5


def compare(pair: Pair) -> int:
    """How many rows were read on both sides and are the same. Raises Conflict, with their keys, where some are not.

    The target is written by nobody else, and a key waits until its row was written there: so a row of the source's
    snapshot that does not wait in it is in the target as it is, or the copy is wrong.
    """
    with pair.source.reading() as conn:
        rows = sum(counts(conn, pair.kept).values())
    compared = seen = 0
    for found in pieces(pair, {each.name: None for each in pair.kept}):
        pair.tell("compare", found[-1].kept.name, seen, rows)
        with pair.target.reading() as conn:
            for piece in found:
                settled = [row for row in piece.rows if piece.kept.key(row) not in piece.waiting]
                _require_rows(conn, piece.kept, settled)
                compared, seen = compared + len(settled), seen + len(piece.rows)
    return compared


def require_fresh(conn: Connection, fresh: Fresh) -> None:
    """The target has these rows, and none of the keys that have no row."""
    for kept, keys, rows in fresh:
        _require_rows(conn, kept, rows)
        there = {canonical(kept.key(row)) for row in rows}
        gone = [key for key in keys if canonical(key) not in there]
        if left := kept.at(conn, gone):
            _refuse(kept, [kept.key(row) for row in left])


def require_counts(source: Connection, target: Connection, kept: Sequence[Kept]) -> None:
    copied = counts(target, kept)
    for table, rows in counts(source, kept).items():
        if rows != copied[table]:
            raise Conflict(
                f"the copy has {copied[table]:,} rows of {table}, and the memory {rows:,}: nothing was switched;"
                " `everkept move --cancel --to …`, and move again",
                table=table, rows=rows, copied=copied[table],
            )  # fmt: skip


def _require_rows(target: Connection, kept: Kept, rows: Sequence[Row]) -> None:
    """Their checksums are compared first: the sum of 128 bits a row."""
    there = kept.at(target, [kept.key(row) for row in rows])
    if len(rows) == len(there) and sum(map(digest, rows)) == sum(map(digest, there)):
        return
    found = {canonical(kept.key(row)): digest(row) for row in there}
    _refuse(kept, [key for row in rows if found.get(canonical(key := kept.key(row))) != digest(row)])


def _refuse(kept: Kept, keys: Collection[Key]) -> NoReturn:
    named = [list(key) for key in keys][:NAMED_MAX]
    shown = ", ".join(" ".join(map(str, key)) for key in named) + (" …" if len(keys) > NAMED_MAX else "")
    raise Conflict(
        f"the copy differs from the memory in {len(keys):,} rows of {kept.name} ({shown}): nothing was switched;"
        " `everkept move --cancel --to …`, and move again",
        table=kept.name, keys=named,
    )  # fmt: skip
