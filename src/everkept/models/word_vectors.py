"""Static word vectors out of the `wordllama` package: 256 numbers a word, no network, no neural model.

The package's own loader takes 1.8 s (most of it imports it does not need here), so the packed weights and the tokenizer
are read directly; the vectors are the same (tests compare them). The weights stay on disk, mapped into memory.
"""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from everkept.errors import ExtraMissing

_MEMO_MAX = 16_384
_Vector = npt.NDArray[np.float32]


class WordllamaVectors:
    """`WordVectors` of wordllama's `l2_supercat` in 256 dimensions. Loaded on first use; threads may share it."""

    name = "wordllama"
    dim = 256

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokenizer: Any = None
        self._weights: npt.NDArray[np.float16] | None = None
        self._memo: dict[str, _Vector] = {}

    def lookup(self, words: Sequence[str]) -> _Vector:
        """Shape (len(words), 256), rows of unit length; zeros for a word that has no vector. Raises ExtraMissing."""
        memo = self._memo
        missing = list(dict.fromkeys(w for w in words if w not in memo))
        if missing:
            made = self._make(missing)
            if len(memo) + len(made) > _MEMO_MAX:
                memo = self._memo = {w: memo[w] for w in words if w in memo}
            memo.update(made)
        out = np.zeros((len(words), self.dim), np.float32)
        for row, word in enumerate(words):
            out[row] = memo[word]
        return out

    def load(self) -> None:
        """Read tokenizer and weights now (about 0.5 s), not at the first question."""
        with self._lock:
            if self._weights is None:
                self._tokenizer, self._weights = read_package()

    def _make(self, words: Sequence[str]) -> dict[str, _Vector]:
        self.load()
        assert self._weights is not None
        made = {}
        for word in words:  # a batch goes to a pool of threads, which takes longer than a few words do
            encoded = self._tokenizer.encode(word, add_special_tokens=False)
            ids = np.minimum(encoded.ids, len(self._weights) - 1)
            vector = self._weights[ids].astype(np.float32).mean(axis=0) if len(ids) else np.zeros(self.dim, np.float32)
            made[word] = vector / max(float(np.linalg.norm(vector)), 1e-9)
        return made


@cache
def read_package() -> tuple[Any, npt.NDArray[np.float16]]:
    """Tokenizer and weights, read once in a process (about 0.5 s) and shared."""
    found = importlib.util.find_spec("wordllama")  # without importing it
    if found is None or found.origin is None:
        raise ExtraMissing("the package wordllama is not installed", package="wordllama")
    folder = Path(found.origin).parent
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer, _map_weights(folder / "weights" / "l2_supercat_256.safetensors")


def _map_weights(path: Path) -> npt.NDArray[np.float16]:
    """The one matrix of a safetensors file: eight bytes of header length, a JSON header, then numbers."""
    with path.open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        matrix = json.loads(file.read(header_bytes))["embedding.weight"]
    assert matrix["dtype"] == "F16"
    rows, dim = matrix["shape"]
    return np.memmap(
        path, dtype=np.float16, mode="r", offset=8 + header_bytes + matrix["data_offsets"][0], shape=(rows, dim)
    )
