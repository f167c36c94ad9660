"""What a process remembers between recalls: parsed passages, where terms occur, and in how many passages."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import numpy as np

from everkept.recall.rank import Frequencies
from everkept.recall.table import Ints
from everkept.store import search as store
from everkept.store.connection import Connection

K = TypeVar("K")
V = TypeVar("V")
_GROWTH: Final = 0.02
"""Document frequencies are read again once the index has grown or shrunk by this share."""
_TERMS_MAX: Final = 50_000
CACHED_MAX: Final = 200_000
"""Postings of a commoner term are not kept."""
_POSTINGS_MAX: Final = 1_024


class Recent(Generic[K, V]):
    """The values used lately: two generations of at most `size` each, the older dropped when the newer is full.

    Cheaper than strict least-recently-used order, and as good here. Safe to share among threads.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._new: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get_many(self, keys: Iterable[K]) -> tuple[dict[K, V], list[K]]:
        """(found, missing)"""
        found: dict[K, V] = {}
        missing = []
        with self._lock:
            new, old = self._new, self._old
            for key in keys:
                value = new.get(key)
                if value is None:
                    value = old.get(key)
                    if value is None:
                        missing.append(key)
                        continue
                    new[key] = value
                found[key] = value
            self._turn_over()
        return found, missing

    def put_many(self, pairs: Iterable[tuple[K, V]]) -> None:
        with self._lock:
            self._new.update(pairs)
            self._turn_over()

    def clear(self) -> None:
        with self._lock:
            self._new, self._old = {}, {}

    def _turn_over(self) -> None:
        if len(self._new) > self._size:
            self._new, self._old = {}, self._new


def ids_of(listed: str) -> Ints:
    """Passage ids joined by commas, ascending."""
    return np.sort(np.fromstring(listed, np.int64, sep=","))


@dataclass(frozen=True, slots=True)
class _Postings:
    last: int
    """The highest passage id that was looked at."""
    columns: dict[float, Ints]
    """Weight → ids, ascending. Every list has an id."""


class PostingsMemo:
    """In which passages of the whole index the terms asked for lately occur. Follows the store by passage ids.

    `clear` it where something was erased. It may then hold too much, which the reader's own filter keeps back.
    """

    def __init__(self) -> None:
        self._recent: Recent[str, _Postings] = Recent(_POSTINGS_MAX)

    def of(self, conn: Connection, term: str, newest: int) -> list[tuple[float, Ints]]:
        """(weight, ids) up to `newest`, the highest id of the snapshot, and maybe further."""
        found, _ = self._recent.get_many([term])
        known = found.get(term) or _Postings(0, {})
        if known.last < newest:
            known = _Postings(newest, dict(known.columns))
            for weight, listed in store.find_postings(
                conn, None, term, store.KINDS, after=found[term].last if found else 0
            ):
                ids = ids_of(listed)
                before = known.columns.get(weight)
                known.columns[weight] = ids if before is None else np.concatenate([before, ids])
            self._recent.put_many([(term, known)])
        return list(known.columns.items())

    def clear(self) -> None:
        self._recent.clear()


class FrequencyMemo:
    """Document frequencies as of a while ago. Scores drift by less than the growth it allows; no hit depends on it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest = -1
        self._corpus = store.Corpus(0, 1.0)
        self._of_term: dict[str, int] = {}

    def read(self, conn: Connection, terms: Sequence[str], newest: int) -> Frequencies:
        """`newest` is the highest passage id of the snapshot. A term that occurs nowhere is looked up every time."""
        with self._lock:
            fresh = abs(newest - self._newest) <= self._newest * _GROWTH and len(self._of_term) < _TERMS_MAX
            if not fresh:
                self._newest, self._of_term = newest, {}
                self._corpus = store.corpus_size(conn)
            known, corpus = self._of_term, self._corpus
        missing = [t for t in dict.fromkeys(terms) if t not in known]
        if missing:
            known.update(store.document_frequencies(conn, missing))
        return Frequencies(
            passages=corpus.passages, mean_length=corpus.mean_length, of_term={t: known.get(t, 0) for t in terms}
        )
