"""What an embedder is: texts in, one vector each, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt


class Embedder(Protocol):
    """A neural embedder. Static word vectors have a protocol of their own, because they pool by document frequency."""

    @property
    def name(self) -> str: ...
    @property
    def dim(self) -> int: ...
    @property
    def pool(self) -> str:
        """`local`, or whose permits and circuit an API uses."""
        ...

    async def embed_passages(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Shape (len(texts), dim), unit length. Raises ModelError; fewer vectors than texts is InvalidOutput."""
        ...

    async def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """Shape (dim,), unit length."""
        ...


class WordVectors(Protocol):
    """Static vectors of single words, unit length; the caller pools them by idf (recall recipe, step 4)."""

    @property
    def name(self) -> str: ...
    @property
    def dim(self) -> int: ...
    def lookup(self, words: Sequence[str]) -> npt.NDArray[np.float32]:
        """Shape (len(words), dim); a row of zeros for a word that has no vector."""
        ...
