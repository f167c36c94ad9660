"""The analysed words of passages as columns in memory: hashes one after another, so that numpy can compare them.

No word is kept, only what it hashes to in this process; of names and dates, of which there are few, the words too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from everkept.domain import text as analyser
from everkept.recall.table import Ints
from everkept.store import search as store
from everkept.store.connection import Connection, Row

_WORDS_MAX: Final = 2_000_000
"""Of so many (16 MB, some 100,000 turns) all are forgotten, and read again as they are needed."""
_STOP_STEMS: Final = analyser.STOP_WORDS["en"] | {analyser.stem(w) for w in analyser.STOP_WORDS["en"]}
_STOP_HASHES: Final = np.fromiter(map(hash, sorted(_STOP_STEMS)), np.int64)


class Words(NamedTuple):
    """The words of some passages, in the order of these."""

    hashes: Ints
    """Of the text of each, passage after passage."""
    stop: npt.NDArray[np.bool_]
    """Which of them are stop words."""
    lengths: Ints
    """How many of them each passage has."""
    speaker: Ints
    """Index into `sets`, …"""
    said: Ints
    """… and that of when it was said."""
    sets: Sequence[frozenset[str]]

    def keys(self, places: Iterable[int]) -> list[bytes]:
        """Equal for passages whose texts have the same words."""
        ends = np.cumsum(self.lengths)
        return [self.hashes[ends[p] - self.lengths[p] : ends[p]].tobytes() for p in places]


class WordsMemo:
    """The words of the passages met lately. Threads may share it. `clear` it where something was erased."""

    def __init__(self, words_max: int = _WORDS_MAX) -> None:
        self._words_max = words_max
        self._known = KnownWords()

    def of(self, conn: Connection, ids: Ints) -> Words:
        """No words for a passage that is not there."""
        known = self._known
        if known.size > self._words_max:
            known = self._known = KnownWords()
        with known.lock:
            missing = known.missing(ids)
            if missing.size:
                known.add(store.load_terms(conn, missing.tolist()))
            return known.take(ids)

    def clear(self) -> None:
        """Whoever is looking goes on with what he has."""
        self._known = KnownWords()


class KnownWords:
    """Words by passage id; only ever added to. The first entry is a passage without words."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._hashes = _Column(np.int64)
        self._stop = _Column(np.bool_)
        self._entry = np.zeros(0, np.int32)
        """By passage id; 0 where it is not known."""
        self._cells = [_Column(np.int64) for _ in range(4)]
        """Of each entry: where its hashes start, how many there are, speaker and date."""
        self._sets: list[frozenset[str]] = []
        self._code: dict[str, int] = {}
        self._append([0], [0], [self._code_of("")], [self._code_of("")])

    @property
    def size(self) -> int:
        """How many words there are; a passage counts as one more."""
        return self._hashes.size + self._cells[0].size

    def missing(self, ids: Ints) -> Ints:
        most = int(ids.max(initial=0))
        if most >= self._entry.size:
            self._entry = np.concatenate([self._entry, np.zeros(most + 1, np.int32)])
        unknown: Ints = ids[self._entry[ids] == 0]
        return unknown

    def add(self, rows: Sequence[Row]) -> None:
        """`rows` are those of `load_terms`."""
        texts = [own.split() for _, _, own, _ in rows]
        lengths = np.array([len(terms) for terms in texts], np.int64)
        hashes = np.fromiter((hash(term) for terms in texts for term in terms), np.int64, int(lengths.sum()))
        self._entry[[r[0] for r in rows]] = self._cells[0].size + np.arange(len(rows))
        starts = self._hashes.size + np.cumsum(lengths) - lengths
        self._append(starts, lengths, [self._code_of(r[1]) for r in rows], [self._code_of(r[3]) for r in rows])
        self._hashes.append(hashes)
        self._stop.append(np.isin(hashes, _STOP_HASHES))

    def take(self, ids: Ints) -> Words:
        """Of ids that `missing` was asked for."""
        entries = self._entry[ids]
        starts, lengths, speaker, said = [cell.values.take(entries) for cell in self._cells]
        ends = lengths.cumsum()
        at = np.repeat(starts - ends + lengths, lengths)
        at += np.arange(at.size)
        return Words(self._hashes.values.take(at), self._stop.values.take(at), lengths, speaker, said, self._sets)

    def _append(self, *columns: npt.ArrayLike) -> None:
        for cell, values in zip(self._cells, columns, strict=True):
            cell.append(np.asarray(values, np.int64))

    def _code_of(self, terms: str) -> int:
        code = self._code.get(terms)
        if code is None:
            code = self._code[terms] = len(self._sets)
            self._sets.append(frozenset(terms.split()))
        return code


class _Column:
    """Numbers to which more are appended, with room for twice as many."""

    def __init__(self, kind: npt.DTypeLike) -> None:
        self.size = 0
        self._room = np.zeros(0, kind)

    @property
    def values(self) -> npt.NDArray[Any]:
        return self._room[: self.size]

    def append(self, values: npt.NDArray[Any]) -> None:
        size = self.size + values.size
        if size > self._room.size:
            room = np.zeros(2 * size, self._room.dtype)
            room[: self.size] = self.values
            self._room = room
        self._room[self.size : size] = values
        self.size = size
