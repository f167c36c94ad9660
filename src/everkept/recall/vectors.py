"""Sign bits of a project's static vectors in memory, and the scan that finds dense candidates in them.

The cache holds ids and bits, never text. It follows the store by the highest passage id, and is read again from the
start when the project's revision moves (something was erased, hidden or embedded anew).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from everkept.domain.ids import ProjectId
from everkept.models.pooling import Bits, Vector, cosines_of_bits
from everkept.store.connection import Connection, Row
from everkept.store.search import load_vectors_since

Words = npt.NDArray[np.uint64]
_RESCORED = 200
_CHUNK = 20_000


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
        longer.last = rows[-1][0]
        empty = bytes(width)
        longer.ids = np.concatenate([self.ids, np.array([r[0] for r in usable], np.int64)])
        longer.subjects = np.concatenate([self.subjects, np.array([r[1] for r in usable], np.int64)])
        longer.own = np.concatenate([self.own, _matrix([r[2] if len(r[2]) == width else empty for r in usable], width)])
        around = _matrix([r[3] for r in usable], width).view(np.uint64).T
        longer.around = np.ascontiguousarray(np.concatenate([self.around, around], axis=1))
        longer.has_own = np.concatenate([self.has_own, np.array([len(r[2]) == width for r in usable], np.bool_)])
        return longer

    def nearest(self, query: Vector, subject: int | None, limit: int) -> npt.NDArray[np.int64]:
        """Ids of the passages whose surroundings are nearest to the query, best first.

        Hamming distance over all of the scope picks a few hundred, the exact sum over signs orders those.
        """
        mine = None if subject is None else np.flatnonzero(self.subjects == subject)
        ids, around = self.ids, self.around
        if mine is not None and mine.size < ids.size:
            ids, around = ids[mine], around[:, mine]
        rescored = max(_RESCORED, limit)
        if ids.size > rescored:
            near = np.argpartition(_bits_that_differ(around, query), rescored - 1)[:rescored]
            ids, around = ids[near], around[:, near]
        return ids[np.argsort(-cosines_of_bits(_bits(around), query), kind="stable")[:limit]]

    def cosines(self, query: Vector, passages: npt.NDArray[np.int64]) -> tuple[Vector, Vector]:
        """(own, around) cosines of these passages; NaN where there is no vector."""
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


def _bits_that_differ(words: Words, query: Vector) -> npt.NDArray[np.uint16]:
    signs = np.packbits(query > 0).view(np.uint64)
    differ: npt.NDArray[np.uint16] = np.bitwise_count(words ^ signs[:, None]).sum(axis=0, dtype=np.uint16)
    return differ


def _bits(words: Words) -> Bits:
    """As rows of bytes."""
    return np.ascontiguousarray(words.T).view(np.uint8)


def _matrix(rows: Sequence[bytes], width: int) -> Bits:
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), width)


class VectorCache:
    """`SignBits` of each project, brought up to the snapshot of the connection that asks. Threads may share it."""

    def __init__(self, model: str, dim: int) -> None:
        self.model = model
        self.dim = dim
        self._lock = threading.Lock()
        self._of_project: dict[int, SignBits] = {}

    def follow(self, conn: Connection, project: ProjectId, revision: int, newest: int) -> SignBits:
        """`revision` is the project's in the snapshot, `newest` its highest passage id with a vector of the model."""
        with self._lock:
            bits = self._of_project.get(project)
        if bits is None or bits.revision != revision:
            bits = SignBits(revision, self.dim)
        if bits.last < newest:
            bits = self._read_new(conn, project, bits)
            with self._lock:
                self._of_project[project] = bits
        return bits

    def _read_new(self, conn: Connection, project: ProjectId, bits: SignBits) -> SignBits:
        while rows := load_vectors_since(conn, project, self.model, bits.last, _CHUNK):
            bits = bits.extended(rows)
            if len(rows) < _CHUNK:
                break
        return bits
