"""The static vectors of a project: which passages are nearest to a question, and how near each of some is.

On SQLite a project's sign bits are kept in memory and looked through there; on PostgreSQL the database finds the
nearest. What is found is put in order by the same code. The cache holds ids and bits, never text; it follows the store
by the highest passage id, and is read again from the start when the project's revision moves (something was erased,
hidden or embedded anew).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from everkept.domain.ids import ProjectId
from everkept.models.pooling import Bits, Vector, cosines_of_bits
from everkept.recall.kept import KeptOfProjects
from everkept.store.connection import Connection, Row
from everkept.store.nearest_postgres import Wanted, find_nearest
from everkept.store.search import load_vectors, load_vectors_since

Ids = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
_RESCORED: Final = 200
_CHUNK: Final = 20_000
KEPT_BYTES: Final = 256 << 20
"""Vectors in memory, 81 bytes a passage: those of some three million passages."""


class ProjectVectors(Protocol):
    """One project's vectors of one model, as one snapshot has them."""

    def nearest(self, query: Vector, subject: int | None, limit: int) -> Ids:
        """Ids of the passages whose surroundings are nearest to the query, best first.

        Hamming distance over all of the scope picks a few hundred, the exact sum over signs orders those.
        """
        ...

    def cosines(self, query: Vector, passages: Ids) -> tuple[Vector, Vector]:
        """(own, around) cosines of these passages; NaN where there is no vector."""
        ...


class SignBits:
    """One project's vectors of one model, in the order of passage ids. A value: followed by making a longer one.

    `dim` is a multiple of 64.
    """

    def __init__(self, revision: int, dim: int) -> None:
        self.revision = revision
        self.last = 0
        """The highest passage id that was looked at, with or without a vector."""
        self.ids = np.zeros(0, np.int64)
        self.subjects = np.zeros(0, np.int64)
        self.own: Bits = np.zeros((0, dim // 8), np.uint8)
        self.around: Words = np.zeros((dim // 64, 0), np.uint64)
        """A column a passage, so that the scan reads one word of all passages after the other."""
        self.has_own = np.zeros(0, np.bool_)

    def extended(self, rows: Sequence[Row]) -> SignBits:
        width = self.own.shape[1]
        usable = [r for r in rows if len(r[3]) == width]
        longer = SignBits(self.revision, width * 8)
        longer.last = rows[-1][0] if rows else self.last
        empty = bytes(width)
        longer.ids = np.concatenate([self.ids, np.array([r[0] for r in usable], np.int64)])
        longer.subjects = np.concatenate([self.subjects, np.array([r[1] for r in usable], np.int64)])
        longer.own = np.concatenate([self.own, _matrix([r[2] if len(r[2]) == width else empty for r in usable], width)])
        around = _matrix([r[3] for r in usable], width).view(np.uint64).T
        longer.around = np.ascontiguousarray(np.concatenate([self.around, around], axis=1))
        longer.has_own = np.concatenate([self.has_own, np.array([len(r[2]) == width for r in usable], np.bool_)])
        return longer

    @property
    def size_bytes(self) -> int:
        columns = self.ids, self.subjects, self.own, self.around, self.has_own
        return sum(column.nbytes for column in columns)

    def nearest(self, query: Vector, subject: int | None, limit: int) -> Ids:
        mine = None if subject is None else np.flatnonzero(self.subjects == subject)
        ids, around = self.ids, self.around
        if mine is not None and mine.size < ids.size:
            ids, around = ids[mine], around[:, mine]
        rescored = max(_RESCORED, limit)
        if ids.size > rescored:
            near = _smallest(_bits_that_differ(around, query), rescored)
            ids, around = ids[near], around[:, near]
        return _best(ids, _bits(around), query, limit)

    def cosines(self, query: Vector, passages: Ids) -> tuple[Vector, Vector]:
        own = np.full(passages.size, np.nan, np.float32)
        around = own.copy()
        if not self.ids.size or not passages.size:
            return own, around
        place = np.minimum(np.searchsorted(self.ids, passages), self.ids.size - 1)
        known = self.ids[place] == passages
        place = place[known]
        both = cosines_of_bits(np.concatenate([self.own[place], _bits(self.around[:, place])]), query)
        own[known] = np.where(self.has_own[place], both[: place.size], 0)
        around[known] = both[place.size :]
        return own, around


def _best(ids: Ids, around: Bits, query: Vector, limit: int) -> Ids:
    """`ids` are ascending: among equals the lower one comes first."""
    return ids[np.argsort(-cosines_of_bits(around, query), kind="stable")[:limit]]


def _smallest(values: npt.NDArray[np.uint16], count: int) -> npt.NDArray[np.intp]:
    """Where the `count` smallest stand, ascending; the first ones of those that equal the largest of them."""
    largest = np.partition(values, count - 1)[count - 1]
    below, equal = np.flatnonzero(values < largest), np.flatnonzero(values == largest)
    return np.sort(np.concatenate([below, equal[: count - below.size]]))


def _bits_that_differ(words: Words, query: Vector) -> npt.NDArray[np.uint16]:
    signs = np.packbits(query > 0).view(np.uint64)
    differ: npt.NDArray[np.uint16] = np.bitwise_count(words ^ signs[:, None]).sum(axis=0, dtype=np.uint16)
    return differ


def _bits(words: Words) -> Bits:
    """As rows of bytes."""
    return np.ascontiguousarray(words.T).view(np.uint8)


def _matrix(rows: Sequence[bytes], width: int) -> Bits:
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), width)


class VectorsInDatabase:
    """`ProjectVectors` that PostgreSQL looks through, in the snapshot of the connection. `dim` is a multiple of 8."""

    def __init__(self, conn: Connection, project: ProjectId, model: str, dim: int) -> None:
        self._conn = conn
        self._project = project
        self._model = model
        self._width = dim // 8

    def nearest(self, query: Vector, subject: int | None, limit: int) -> Ids:
        signs = "".join(np.where(query > 0, "1", "0"))
        rows = find_nearest(self._conn, Wanted(self._project, self._model, subject, signs, max(_RESCORED, limit)))
        rows.sort()
        ids = np.array([row[0] for row in rows], np.int64)
        return _best(ids, _matrix([row[1] for row in rows], self._width), query, limit)

    def cosines(self, query: Vector, passages: Ids) -> tuple[Vector, Vector]:
        rows = load_vectors(self._conn, self._project, self._model, passages.tolist())
        bits = SignBits(0, self._width * 8).extended([(id_, 0, own, around) for id_, own, around in sorted(rows)])
        return bits.cosines(query, passages)


class VectorCache:
    """`ProjectVectors` of each project, as of the snapshot of the connection that asks. Threads may share it."""

    def __init__(self, model: str, dim: int, *, bytes_max: int = KEPT_BYTES) -> None:
        self.model = model
        self.dim = dim
        self._kept: KeptOfProjects[SignBits] = KeptOfProjects(bytes_max, lambda bits: bits.size_bytes)

    def follow(self, conn: Connection, project: ProjectId, revision: int, newest: int) -> ProjectVectors | None:
        """None where there are none.

        `revision` is the project's in the snapshot, `newest` its highest passage id with a vector of the model.
        """
        if not newest:
            return None
        if conn.dialect.name == "postgresql":
            return VectorsInDatabase(conn, project, self.model, self.dim)
        bits = self._kept.get(project)
        if bits is None or bits.revision != revision:
            bits = SignBits(revision, self.dim)
        if bits.last < newest:
            bits = self._read_new(conn, project, bits)
            self._kept.put(project, bits)
        return bits if bits.ids.size else None

    def _read_new(self, conn: Connection, project: ProjectId, bits: SignBits) -> SignBits:
        while rows := load_vectors_since(conn, project, self.model, bits.last, _CHUNK):
            bits = bits.extended(rows)
            if len(rows) < _CHUNK:
                break
        return bits
