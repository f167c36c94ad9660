"""Reading the source from end to end, a bounded number of rows at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from everkept.store.connection import Connection, Row
from everkept.store.moving import away
from everkept.store.moving.kept import Kept, Key
from everkept.store.moving.pair import Pair

AT_ONCE_ROWS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Rows of one kind, in the order of their keys."""

    kept: Kept
    rows: list[Row]
    after: Key | None
    """The key of the last one; where the piece began, if there is none."""
    last: bool
    """Whether there are no more behind it."""
    waiting: set[Key]
    """Keys of its kind whose rows wait to follow."""


def pieces(pair: Pair, begun: Mapping[str, Key | None]) -> Iterator[list[Piece]]:
    """All rows of the kinds in `begun` behind these keys (None: from the first), each list of one snapshot."""
    left = deque((kept, begun[kept.name]) for kept in pair.kept if kept.name in begun)
    while left:
        with pair.source.reading() as conn:
            found = _next(conn, left)
        yield found


def _next(conn: Connection, left: deque[tuple[Kept, Key | None]]) -> list[Piece]:
    """As many as fit, taken from what is left."""
    room, found = AT_ONCE_ROWS, []
    while left and room:
        kept, after = left.popleft()
        rows = kept.after(conn, after, room)
        last = len(rows) < room
        after = kept.key(rows[-1]) if rows else after
        found.append(Piece(kept=kept, rows=rows, after=after, last=last, waiting=set()))
        room -= len(rows)
        if not last:
            left.appendleft((kept, after))
    keys = away.waiting_keys(conn, [piece.kept.name for piece in found])
    for piece in found:
        piece.waiting.update(keys.get(piece.kept.name, ()))
    return found
