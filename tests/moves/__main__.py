"""`python -m tests.moves`: kill a mover before each statement there is, from a file to PostgreSQL and back.

Each run lives `--stride` statements longer than the one before, on what that has left behind, while somebody writes.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from pathlib import Path

import structlog
from tests.contract.moving import (
    Fuse,
    FusedFile,
    FusedServer,
    all_of,
    empty_url,
    file_at,
    lived_in,
    move_until_it_lives,
    with_world,
)

from everkept.errors import StoreMoved
from everkept.ports.clock import VirtualClock
from everkept.store.database import Database

WRITES_EVERY = 25
"""Deaths between two messages."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--stride", type=int, default=1)
    arguments.add_argument("--seed", type=int, default=1)
    asked = arguments.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with tempfile.TemporaryDirectory(prefix="everkept-moves-") as folder:
        _play(Path(folder), asked.stride, asked.seed)


def _play(folder: Path, stride: int, seed: int) -> None:
    clock = VirtualClock()
    first, second, url, back = folder / "a.db", folder / "b.db", empty_url(), folder / "c.db"
    lived_in(file_at(first), folder / "home", clock, seed)
    server = FusedServer(url, Fuse())
    for words, source, target in (("a file to a file", first, second), ("a file to PostgreSQL", second, url),
                                  ("PostgreSQL to a file", url, back)):  # fmt: skip
        began = time.monotonic()

        def pair(fuse: Fuse, source: Path | str = source, target: Path | str = target) -> tuple[Database, Database]:
            return _place(source, fuse), _place(target, fuse)

        here, there = (server if isinstance(place, str) else file_at(place) for place in (source, target))

        def write(deaths: int, here: Database = here) -> None:
            if deaths % WRITES_EVERY == 0:
                _write(here, folder, clock, deaths)

        deaths = move_until_it_lives(pair, clock, stride, write)
        assert all_of(there, clock) == all_of(here, clock), f"{words}: not the same"
        print(f"{words}: killed {deaths:,} times, and everything is there once ({time.monotonic() - began:.0f} s)")


def _place(place: Path | str, fuse: Fuse) -> Database:
    return FusedServer(place, fuse) if isinstance(place, str) else FusedFile(place, fuse)


def _write(memory: Database, folder: Path, clock: VirtualClock, number: int) -> None:
    try:
        with_world(memory, folder / "home", clock, lambda world: world.add("more", f"turn {number}"))
    except StoreMoved:
        return


if __name__ == "__main__":
    main()
