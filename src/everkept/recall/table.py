"""The passages of a project as columns in memory: where each stands, whose it is, and when; never what was said.

A table follows the store by the highest passage id, and is read again from the start when the project's revision moves
(something was erased or hidden, or embedded anew).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from everkept.domain.ids import ProjectId
from everkept.domain.scope import Scope
from everkept.recall.kept import KeptOfProjects
from everkept.store.connection import Connection, Row
from everkept.store.search import KINDS, NEVER_US, Hit, load_columns_since

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
TURN: Final = KINDS.index("turn")
FACT: Final = KINDS.index("fact")
NOBODY: Final = -1
_CHUNK: Final = 20_000
KEPT_BYTES: Final = 512 << 20
"""Tables in memory, about 100 bytes a passage: those of some five million passages."""
_SPARSE: Final = 8
"""In a table whose ids lie further apart than this on average, they are searched for and not looked up."""


class Columns(NamedTuple):
    """Some passages, each array of the same length. 0 stands for no ref, stream, seq or sitting."""

    id: Ints
    kind: Ints
    """Index into `KINDS`."""
    ref: Ints
    subject: Ints
    stream: Ints
    seq: Ints
    occurred_at: Ints
    """µs; `NEVER_US` where it is not known."""
    sitting: Ints
    traits: Ints
    speaker: Ints
    """Index into the names that come with the columns; `NOBODY` for none."""

    def hits(self, names: Sequence[str]) -> list[Hit]:
        return [
            Hit(
                id_,
                KINDS[kind],
                ref or None,
                subject,
                stream or None,
                seq or None,
                None if who == NOBODY else names[who],
                None if at == NEVER_US else at,
                sitting or None,
                traits,
            )
            for id_, kind, ref, subject, stream, seq, at, sitting, traits, who in zip(
                *[column.tolist() for column in self], strict=True
            )
        ]


class PassageTable:
    """One project's passages in the order of their ids. A value: followed by making a longer one."""

    def __init__(self, revision: int) -> None:
        self.revision = revision
        self.last = 0
        """The highest passage id that was looked at."""
        self.names: list[str] = []
        """Speakers, by code. Shared with the tables made from this one, and only ever appended to."""
        self._code: dict[str, int] = {}
        self._cells: Ints = np.zeros((len(Columns._fields), 0), np.int64)
        self._row_of: npt.NDArray[np.int32] | None = None
        """By how far an id is above the first one; -1 where there is none. None in a sparse table."""
        self._turns: Ints = np.zeros(0, np.int64)
        """stream << 32 | seq of every turn, ascending, …"""
        self._turn_rows: Rows = np.zeros(0, np.intp)
        """… and the row of each."""

    @property
    def size(self) -> int:
        return int(self._cells.shape[1])

    @property
    def size_bytes(self) -> int:
        columns = self._cells, self._turns, self._turn_rows
        return sum(column.nbytes for column in columns) + (0 if self._row_of is None else self._row_of.nbytes)

    @property
    def all(self) -> Columns:
        return Columns(*self._cells)

    def extended(self, rows: Sequence[Row], last: int) -> PassageTable:
        """`rows` are all those of `load_columns_since` from the first one above `last` to the new `last`."""
        longer = PassageTable(self.revision)
        longer.last = last
        longer.names, longer._code = self.names, self._code
        new = np.array([[*r[:-1], self._speaker(r[-1])] for r in rows], np.int64).reshape(-1, len(Columns._fields)).T
        longer._cells = np.concatenate([self._cells, new], axis=1)
        longer._row_of = _row_of(longer._cells[0])
        added = Columns(*new)
        turns = np.flatnonzero((added.kind == TURN) & (added.stream > 0))
        keys = _place(added.stream[turns], added.seq[turns])
        order = np.argsort(keys)
        at = np.searchsorted(self._turns, keys[order])
        longer._turns = np.insert(self._turns, at, keys[order])
        longer._turn_rows = np.insert(self._turn_rows, at, turns[order] + self._cells.shape[1])
        return longer

    def _speaker(self, name: str | None) -> int:
        if not name:
            return NOBODY
        code = self._code.get(name)
        if code is None:
            code = self._code[name] = len(self.names)
            self.names.append(name)
        return code

    def take(self, rows: Rows) -> Columns:
        return Columns(*self._cells[:, rows])

    def rows_of(self, ids: Ints) -> Rows:
        """The row of each id; -1 where the project has no such passage to show."""
        mine, row_of = self._cells[0], self._row_of
        if not mine.size:
            return np.full(ids.size, -1, np.intp)
        if row_of is not None:
            above = (ids - mine[0]).view(np.uint64)  # below the first one is far above the last one
            return np.asarray(row_of.take(np.minimum(above, row_of.size - 1)), np.intp)
        place = np.minimum(mine.searchsorted(ids), mine.size - 1)
        return np.where(mine[place] == ids, place, -1)

    def in_scope(
        self, rows: Rows, scope: Scope, kinds: Sequence[str], said_until_us: int | None
    ) -> npt.NDArray[np.bool_]:
        """Which of the rows lie in the scope, are of these kinds and, if turns, were said by then."""
        columns, kept = self.all, np.ones(rows.size, np.bool_)
        if scope.subject is not None:
            kept &= columns.subject[rows] == scope.subject
        if scope.stream is not None:
            kept &= columns.stream[rows] == scope.stream
        if len(kinds) < len(KINDS):
            kept &= np.isin(columns.kind[rows], [KINDS.index(k) for k in kinds])
        if said_until_us is not None:
            at = columns.occurred_at[rows]
            kept &= (columns.kind[rows] != TURN) | ((at <= said_until_us) & (at != NEVER_US))
        return kept

    def beside(self, rows: Rows, distances: Sequence[int]) -> Rows:
        """The row of the turn so far after each (before, if negative) in the same sitting; -1 where there is none.

        Shape (len(distances), len(rows)).
        """
        if not self._turns.size:
            return np.full((len(distances), rows.size), -1, np.intp)
        columns = self.all
        key = _place(columns.stream[rows], columns.seq[rows]) + np.array(distances)[:, None]
        place = np.minimum(np.searchsorted(self._turns, key), self._turns.size - 1)
        at = self._turn_rows[place]
        same = (columns.kind[rows] == TURN) & (self._turns[place] == key)
        return np.where(same & (columns.sitting[at] == columns.sitting[rows]), at, -1)


def _row_of(ids: Ints) -> npt.NDArray[np.int32] | None:
    """The row of each id from the first to the last and then -1, for what lies outside; `ids` are ascending."""
    if not ids.size or (span := int(ids[-1] - ids[0]) + 1) > _SPARSE * ids.size:
        return None
    rows = np.full(span + 1, -1, np.int32)
    rows[ids - ids[0]] = np.arange(ids.size)
    return rows


def _place(streams: Ints, seqs: Ints) -> Ints:
    return streams << 32 | seqs


class TableCache:
    """`PassageTable` of each project, brought up to the snapshot of the connection that asks. Threads may share it."""

    def __init__(self, *, bytes_max: int = KEPT_BYTES) -> None:
        self._lock = threading.Lock()
        self._kept: KeptOfProjects[PassageTable] = KeptOfProjects(bytes_max, lambda table: table.size_bytes)

    def size(self, project: ProjectId) -> int | None:
        """How many passages are in memory; None where the project's have not been read yet."""
        table = self._kept.get(project)
        return None if table is None else table.size

    def follow(self, conn: Connection, project: ProjectId, revision: int, newest: int) -> PassageTable:
        """`revision` is the project's in the snapshot, `newest` the highest passage id of any project."""
        with self._lock:
            table = self._kept.get(project)
            if table is None or table.revision != revision:
                table = PassageTable(revision)
            while table.last < newest:
                rows = load_columns_since(conn, project, table.last, _CHUNK)
                table = table.extended(rows, rows[-1][0] if len(rows) == _CHUNK else newest)
            self._kept.put(project, table)
            return table
