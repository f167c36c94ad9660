"""What a process remembers between recalls: parsed passages, places in streams, and document frequencies."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Final, Generic, TypeVar

from everkept.recall.rank import Frequencies
from everkept.store import search as store
from everkept.store.connection import Connection

K = TypeVar("K")
V = TypeVar("V")
_GROWTH: Final = 0.02
"""Document frequencies are read again once the index has grown or shrunk by this share."""
_TERMS_MAX: Final = 50_000


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


class FrequencyMemo:
    """Document frequencies as of a while ago. Scores drift by less than the growth it allows; no hit depends on it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest = -1
        self._corpus = store.Corpus(0, 1.0)
        self._of_term: dict[str, int] = {}

    def read(self, conn: Connection, terms: Sequence[str]) -> Frequencies:
        newest = store.newest_passage(conn)
        with self._lock:
            fresh = abs(newest - self._newest) <= self._newest * _GROWTH and len(self._of_term) < _TERMS_MAX
            if not fresh:
                self._newest, self._of_term = newest, {}
                self._corpus = store.corpus_size(conn)
            known, corpus = self._of_term, self._corpus
        missing = [t for t in dict.fromkeys(terms) if t not in known]
        if missing:
            found = store.document_frequencies(conn, missing)
            known.update({t: found.get(t, 0) for t in missing})
        return Frequencies(
            passages=corpus.passages, mean_length=corpus.mean_length, of_term={t: known[t] for t in terms}
        )
