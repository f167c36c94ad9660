"""A short form of `python -m tests.load`: what the server holds as messages come in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.load.growth import MEMORY_SLACK_BYTES, Growth, Sample, grow
from tests.load.serving import Resources

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="what a process holds is read from /proc")


@needs_proc
def test_what_the_server_holds_stays_bounded(tmp_path: Path) -> None:
    growth = grow(tmp_path, messages=5_000)
    assert growth.excesses() == [], "\n".join(growth.lines())


def a_sample(messages: int, *, memory: int = 100 << 20, handles: int = 30, threads: int = 12, wal: int = 1 << 20,
             file: int = 1 << 20) -> Sample:  # fmt: skip
    held = Resources(anonymous_bytes=memory, handles=handles, threads=threads)
    return Sample(messages=messages, resources=held, wal_bytes=wal, file_bytes=file)


@pytest.mark.parametrize(
    ("last", "beyond"),
    [
        (a_sample(100_000), []),
        (a_sample(100_000, memory=(100 << 20) + MEMORY_SLACK_BYTES + 100_000 * 1_000), ["memory"]),
        (a_sample(100_000, handles=500), ["handles"]),
        (a_sample(100_000, threads=100), ["threads"]),
        (a_sample(100_000, wal=100 << 20), ["log"]),
        (a_sample(100_000, file=100_000 * 5_000), ["file"]),
    ],
)
def test_growth_beyond_a_bound_is_named(last: Sample, beyond: list[str]) -> None:
    growth = Growth(samples=[a_sample(1_000), a_sample(2_000), last], seconds=1, connections=0)
    assert [what.partition(":")[0] for what in growth.excesses()] == beyond
