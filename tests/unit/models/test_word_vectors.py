from pathlib import Path

import numpy as np
import wordllama

from everkept.models.pooling import (
    Pooling,
    content_words,
    cosines_of_bits,
    cosines_of_int8,
    int8_bytes,
    names_of,
    sign_bits,
)
from everkept.models.word_vectors import WordllamaVectors

WORDS = ["dog", "unbelievable", "Lissabon", "猫", "caroline", "x86", "café"]


def test_lookup_gives_the_packages_own_vectors_at_unit_length() -> None:
    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    theirs = np.asarray(model.embed(WORDS, norm=True))
    np.testing.assert_allclose(WordllamaVectors().lookup(WORDS), theirs, atol=1e-5)


def test_lookup_keeps_order_and_repeats() -> None:
    vectors = WordllamaVectors()
    made = vectors.lookup(["dog", "cat", "dog"])
    np.testing.assert_array_equal(made[0], made[2])
    assert made.shape == (3, 256)
    assert vectors.lookup([]).shape == (0, 256)


def test_lookup_of_nothing_known_is_zero() -> None:
    assert not WordllamaVectors().lookup([""]).any()


def test_pool_leaves_names_out_and_weighs_rare_words_more() -> None:
    vectors = WordllamaVectors()
    pooling = Pooling(vectors, passages=1000, frequencies={"dog": 1, "thing": 900}, names=names_of(["Ann Lee", None]))
    pooled = pooling.pool(["dog", "thing", "ann", "lee"])
    dog, thing = vectors.lookup(["dog", "thing"])
    assert float(pooled @ dog) > float(pooled @ thing)
    assert not pooling.pool(["ann"]).any()


def test_passage_without_content_has_no_bits() -> None:
    assert Pooling(WordllamaVectors(), passages=1, frequencies={}).passage("it is what it is", []) == (b"", b"")
    assert content_words("it is what it is") == []


def test_sign_bits_keep_the_cosine() -> None:
    rng = np.random.default_rng(1)
    query = rng.standard_normal(256).astype(np.float32)
    query /= np.linalg.norm(query)
    near = query + 0.05 * rng.standard_normal(256).astype(np.float32)
    far = rng.standard_normal(256).astype(np.float32)
    bits = np.frombuffer(sign_bits(near) + sign_bits(far), np.uint8).reshape(2, 32)
    close, distant = cosines_of_bits(bits, query).tolist()
    assert abs(close - float(near @ query / np.linalg.norm(near))) < 0.15
    assert abs(distant - float(far @ query / np.linalg.norm(far))) < 0.15


def test_int8_keeps_the_cosine() -> None:
    rng = np.random.default_rng(2)
    vector = rng.standard_normal(384).astype(np.float32)
    vector /= np.linalg.norm(vector)
    made = cosines_of_int8([int8_bytes(vector), b"", b"\x01"], vector).tolist()
    assert abs(made[0] - 1) < 1e-3
    assert made[1:] == [0, 0]
    assert int8_bytes(np.zeros(4, np.float32)) == b""
