"""Embeddings that were paid for: kept by the text they are of, never by their batch (G8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from tests.factories import World

from everkept.store.streams import wake_embedder


class Paid:
    """An embedder that notes every text it is given."""

    name, dim, pool = "paid", 2, "local"

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def embed_passages(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.texts += texts
        return np.ones((len(texts), 2), np.float32)

    async def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        return (await self.embed_passages([text]))[0]


def with_embedder(make_world: Callable[..., World]) -> tuple[World, Paid]:
    world, embedder = make_world(), Paid()
    runner = world.runner()
    runner._tools = replace(runner._tools, embedder=embedder)
    return world, embedder


def test_a_text_is_embedded_once_whatever_is_embedded_beside_it(make_world: Callable[..., World]) -> None:
    world, embedder = with_embedder(make_world)
    world.add("t", "one", "two")
    world.live(5)
    assert sorted(embedder.texts) == ["one", "two", "user: one", "user: one\nuser: two"]

    embedder.texts.clear()
    world.do("update passages set embedded = null where seq = 2")
    world.write(wake_embedder, world.project.id)
    world.add("t", "three")
    world.live(5)
    assert sorted(embedder.texts) == ["three", "user: two\nuser: three"]
    assert world.value("select count(*) from vectors") == 3
