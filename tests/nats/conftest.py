"""One real server for all tests, and streams of its own for each."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.factories import World, open_store
from tests.nats.broker import Broker
from tests.postgres import TestedDatabase
from tests.stubs.nats_server import NatsServer, nats_server

from everkept.config import Nats
from everkept.ports.clock import VirtualClock
from everkept.store.store import Store

_numbers = count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with nats_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


@pytest.fixture
def settings(server: NatsServer) -> Nats:
    """Of an installation that shares the server with those of the other tests."""
    own = f"test-{next(_numbers)}"
    return dataclasses.replace(
        Nats(), url=server.url, prefix=own, events_stream=f"{own}-events", changes_stream=f"{own}-changes", durable=own
    )


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "everkept.db"
    open_store(path, VirtualClock()).close()
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path, empty_file: Path) -> Iterator[Store]:
    if request.param == "postgresql":
        opened = Store(TestedDatabase(), clock=VirtualClock(), threads=False)
        opened.open()
    else:
        shutil.copy(empty_file, tmp_path / "everkept.db")
        opened = open_store(tmp_path / "everkept.db", VirtualClock())
    yield opened
    opened.close()


@pytest.fixture
def make_world(store: Store, tmp_path: Path) -> Iterator[Callable[..., World]]:
    """One store; each world is a loop of its own on it."""
    made: list[World] = []

    def make(**kw: Any) -> World:
        world = World(store, tmp_path / "home", clock_of(store), **kw)
        made.append(world)
        return world

    yield make
    for world in made:
        world.close()


def clock_of(store: Store) -> VirtualClock:
    assert isinstance(store.clock, VirtualClock)
    return store.clock


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()


@pytest.fixture
def broker(world: World, settings: Nats, server: NatsServer) -> Iterator[Broker]:
    opened = Broker(world, settings)
    yield opened
    if server.running:
        opened.delete_streams()
