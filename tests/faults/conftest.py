"""The system under test: Everkept, or the one that `FAULT_BENCH_SYSTEM` names (see `python -m tests.faults --help`)."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.databases import UrlOf, quick_files
from tests.databases import each_database as each_database  # a fixture
from tests.faults.adapter import MemorySystem, NotApplicable, OpensSystems
from tests.faults.everkept_system import EverkeptSystem, mind
from tests.faults.provider import Provider

SYSTEM = os.environ.get("FAULT_BENCH_SYSTEM", "everkept")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "own_engine(reason): a case that is about Everkept's own engine, and why")


@pytest.fixture(autouse=True)
def can_be_run(request: pytest.FixtureRequest) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("the bench kills processes that it forks, which this system cannot do")
    if SYSTEM != "everkept" and "postgresql" in request.node.name:
        pytest.skip("not applicable: it has no store on PostgreSQL")
    if SYSTEM != "everkept" and request.node.get_closest_marker("own_engine"):
        pytest.skip("not applicable: " + request.node.get_closest_marker("own_engine").args[0])
    if SYSTEM != "everkept":
        for prefix, reason in _peer().NOT_FAIR.items():
            if request.node.name.startswith(prefix):
                pytest.skip(f"not applicable: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> object:
    """What a system cannot do is no failure of it."""
    try:
        return (yield)
    except NotApplicable as none:
        pytest.skip(f"not applicable: {none}")


@pytest.fixture
def provider() -> Iterator[Provider]:
    """The model provider that every system of this test uses; fair weather to begin with."""
    with Provider(mind if SYSTEM == "everkept" else _peer().mind) as server:
        yield server


@pytest.fixture(autouse=True)
def _quick_files(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_files(monkeypatch)


@pytest.fixture
def url_of(request: pytest.FixtureRequest) -> Callable[[Path], str]:
    """Of the store of a folder: a file in it but in the cases that are tried on each database."""
    if "each_database" in request.fixturenames:
        of_file: UrlOf = request.getfixturevalue("each_database")
        return lambda folder: of_file(folder / "everkept.db")
    return lambda folder: f"sqlite:///{folder}/everkept.db"


@pytest.fixture
def another(provider: Provider, tmp_path: Path, url_of: Callable[[Path], str]) -> Iterator[OpensSystems]:
    """Opens one more process; they are killed when the test ends."""
    opened: list[MemorySystem] = []

    def open_one(home: Path | None = None, *, die_at: str | None = None, **settings: object) -> MemorySystem:
        folder = home or tmp_path / "memory"
        one: MemorySystem
        if SYSTEM == "everkept":
            given = {"database_url": url_of(folder), **settings}
            one = EverkeptSystem(folder, provider, die_at=die_at, **given)  # type: ignore[arg-type]
        else:
            if settings or die_at:
                raise NotApplicable(f"{SYSTEM} has no such settings")
            one = _peer().open_peer(folder, provider)
        opened.append(one)
        one.open()
        return one

    yield open_one
    provider.clear()
    for one in opened:
        one.kill()


@pytest.fixture
def system(another: OpensSystems) -> MemorySystem:
    """An open system over an empty folder."""
    return another()


@pytest.fixture
def everkept(system: MemorySystem) -> EverkeptSystem:
    """The same, for the cases of this engine alone."""
    assert isinstance(system, EverkeptSystem)
    return system


def _peer() -> Any:
    return importlib.import_module(f"tests.faults.{SYSTEM}_system")
