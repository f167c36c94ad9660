"""The store under contract, on each database, and worlds on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.factories import World, open_store, plain_reply

from everkept.ports.clock import VirtualClock
from everkept.store.store import Store


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def store(tmp_path: Path, clock: VirtualClock) -> Iterator[Store]:
    opened = open_store(tmp_path / "everkept.db", clock)
    yield opened
    opened.close()


@pytest.fixture
def make_world(store: Store, tmp_path: Path, clock: VirtualClock) -> Iterator[Callable[..., World]]:
    """A world with its own settings; several share the store."""
    made: list[World] = []

    def make(**kw: Any) -> World:
        world = World(store, tmp_path / "home", clock, **kw)
        made.append(world)
        return world

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """Without a model: the deterministic pipeline."""
    return make_world()


@pytest.fixture
def modelled(make_world: Callable[..., World]) -> World:
    """With a scripted model that answers every question."""
    return make_world(script=plain_reply)
