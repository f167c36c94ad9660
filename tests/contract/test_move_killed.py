"""A mover is killed before a statement, and the next one goes on: nothing is left out, and nothing is there twice.

`python -m tests.moves` kills one before every statement there is, on both databases.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract.moving import (
    Fuse,
    FusedFile,
    FusedServer,
    all_of,
    empty_url,
    file_at,
    move_until_it_lives,
    small,
    with_world,
)

from everkept.errors import StoreMoved
from everkept.ports.clock import VirtualClock

pytestmark = pytest.mark.only_on("sqlite", reason="both databases die in these, side by side")
STRIDE, STRIDE_SERVER = 7, 61


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def test_a_mover_that_is_killed_again_and_again_loses_nothing(tmp_path: Path, clock: VirtualClock) -> None:
    source, target = tmp_path / "a.db", tmp_path / "b.db"
    with_world(file_at(source), tmp_path / "home", clock, small)
    written = []

    def write(deaths: int) -> None:
        """Somebody uses the memory between the deaths, until it has moved."""
        try:
            with_world(file_at(source), tmp_path / "home", clock, lambda w: w.add("more", f"turn {deaths}"))
            written.append(deaths)
        except StoreMoved:
            assert deaths > 15

    deaths = move_until_it_lives(lambda fuse: (FusedFile(source, fuse), FusedFile(target, fuse)), clock, STRIDE, write)
    assert deaths >= len(written) > 15
    assert all_of(file_at(target), clock) == all_of(file_at(source), clock)


def test_a_mover_is_killed_before_each_statement_of_the_switch(tmp_path: Path, clock: VirtualClock) -> None:
    source, target = tmp_path / "a.db", tmp_path / "b.db"
    with_world(file_at(source), tmp_path / "home", clock, small)
    deaths = move_until_it_lives(
        lambda fuse: (FusedFile(source, fuse), FusedFile(target, fuse)), clock, 1, from_phase="switch"
    )
    assert deaths > 40
    assert all_of(file_at(target), clock) == all_of(file_at(source), clock)


def test_a_mover_between_two_databases_is_killed_and_goes_on(tmp_path: Path, clock: VirtualClock) -> None:
    source, url, back = tmp_path / "a.db", empty_url(), tmp_path / "b.db"
    with_world(file_at(source), tmp_path / "home", clock, small)
    there = FusedServer(url, Fuse())

    def write_here(deaths: int) -> None:
        if deaths == 1:
            with_world(file_at(source), tmp_path / "home", clock, lambda world: world.add("more", "one more turn"))

    def write_there(deaths: int) -> None:
        if deaths == 1:
            with_world(there, tmp_path / "home", clock, lambda world: world.add("more", "and another"))

    to = move_until_it_lives(
        lambda fuse: (FusedFile(source, fuse), FusedServer(url, fuse)), clock, STRIDE_SERVER, write_here
    )
    assert all_of(there, clock) == all_of(file_at(source), clock)
    fro = move_until_it_lives(
        lambda fuse: (FusedServer(url, fuse), FusedFile(back, fuse)), clock, STRIDE_SERVER, write_there
    )
    assert min(to, fro) > 4
    assert all_of(file_at(back), clock) == all_of(there, clock)
