"""From word vectors to the vector of a text, and vectors as bytes.

A text's vector is the sum of its words' unit vectors by rarity, without stop words and without the participants'
names (a name says who speaks, not what is said). Sign bits of it lose no recall: 32 bytes for 256 dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from everkept.domain import text as analyser
from everkept.ports.embedder import WordVectors

Vector = npt.NDArray[np.float32]
Matrix = npt.NDArray[np.float32]
Bits = npt.NDArray[np.uint8]
NOTHING: Final = b""
"""The bytes of a text that has no vector (no words, or unknown ones only)."""
_SIGN_SCALE: Final = math.sqrt(math.pi / 2)


class Pooling:
    """Pools words with the document frequencies of the moment (by stem; a stem that is missing occurs nowhere)."""

    def __init__(
        self, vectors: WordVectors, *, passages: int, frequencies: Mapping[str, int], names: Collection[str] = ()
    ) -> None:
        self._vectors = vectors
        self._passages = max(passages, max(frequencies.values(), default=0), 1)
        self._frequencies = frequencies
        self._names = names

    def pool(self, words: Iterable[str]) -> Vector:
        """Shape (dim,), unit length; zeros where no word has a vector."""
        kept = [w for w in words if w not in self._names]
        if not kept:
            return np.zeros(self._vectors.dim, np.float32)
        weights = np.array([self._weight(w) for w in kept], np.float32)
        total = weights @ self._vectors.lookup(kept)
        return total / max(float(np.linalg.norm(total)), 1e-9)

    def passage(self, own: str, before: Sequence[str]) -> tuple[bytes, bytes]:
        """Sign bits of a text alone, and of it together with the texts before it."""
        words = content_words(own)
        earlier = [w for text in before for w in content_words(text)]
        return sign_bits(self.pool(words)), sign_bits(self.pool(earlier + words))

    def _weight(self, word: str) -> float:
        return math.log(1 + self._passages / (self._frequencies.get(analyser.stem(word), 0) + 1))


def content_words(text: str) -> list[str]:
    """The words that are pooled; none where a text holds stop words only."""
    found = analyser.words(text)
    stop = analyser.stop_words_of(found)
    return [w for w in found if w not in stop]


def names_of(speakers: Iterable[str | None]) -> frozenset[str]:
    """The words of participants' names, which are not pooled."""
    return frozenset(word for speaker in speakers if speaker for word in analyser.words(speaker))


def sign_bits(vector: Vector) -> bytes:
    """One bit a dimension; `NOTHING` for a vector of zeros."""
    return np.packbits(vector > 0).tobytes() if vector.any() else NOTHING


def cosines_of_bits(bits: Bits, query: Vector) -> Vector:
    """Estimated cosines of packed sign bits, shape (n, dim / 8), with a unit vector. Shape (n,).

    For vectors without a preferred direction the sum over signs is √(2/π) of the cosine, hence the scale.
    """
    signs = np.unpackbits(bits, axis=1).astype(np.float32)
    total = 2 * (signs @ query) - query.sum()
    return np.asarray(total * np.float32(_SIGN_SCALE / math.sqrt(query.size)), np.float32)


def int8_bytes(vector: Vector) -> bytes:
    """One byte a dimension of a unit vector, scaled to its largest; `NOTHING` for zeros."""
    top = float(np.abs(vector).max(initial=0.0))
    return np.round(vector * (127 / top)).astype(np.int8).tobytes() if top else NOTHING


def cosines_of_int8(rows: Sequence[bytes], query: Vector) -> Vector:
    """Cosines of int8 vectors with a unit vector; 0 for `NOTHING` and for another dimension."""
    out = np.zeros(len(rows), np.float32)
    usable = [i for i, row in enumerate(rows) if len(row) == query.size]
    if usable:
        matrix = np.frombuffer(b"".join([rows[i] for i in usable]), np.int8).reshape(len(usable), -1).astype(np.float32)
        out[usable] = (matrix @ query) / np.linalg.norm(matrix, axis=1)
    return out
