"""Copying what there is, in the order of its keys. What is written meanwhile follows later."""

from __future__ import annotations

from everkept.store.moving import arriving
from everkept.store.moving.kept import counts
from everkept.store.moving.pair import Pair
from everkept.store.moving.pieces import pieces


def copy(pair: Pair) -> None:
    """Rows are written in one transaction with how far they came, so that none is left out or written twice."""
    with pair.target.reading() as conn:
        known = arriving.progress(conn)
    with pair.source.reading() as conn:
        rows = sum(counts(conn, pair.kept).values())
    done = sum(each.rows for each in known.values())
    for found in pieces(pair, {name: each.after for name, each in known.items() if not each.done}):
        pair.tell("copy", found[-1].kept.name, done, rows)
        with pair.target.writing() as conn:
            arriving.require_run(conn, pair.run)
            for piece in found:
                piece.kept.put(conn, (), piece.rows)
                arriving.set_progress(conn, piece.kept.name, piece.after, len(piece.rows), done=piece.last)
        done += sum(len(piece.rows) for piece in found)
