"""The layers of the proof, as data: what each shows, and the command of its long and of its short form."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    name: str
    shows: str
    module: str
    long: tuple[str, ...]
    short: tuple[str, ...]
    seeded: bool = True

    def arguments(self, *, seed: int, quick: bool) -> list[str]:
        return [
            "-m",
            self.module,
            *(self.short if quick else self.long),
            *(["--seed", str(seed)] if self.seeded else []),
        ]

    def command_line(self, *, seed: int, quick: bool) -> str:
        return " ".join(["python", *self.arguments(seed=seed, quick=quick)])


LAYERS = (
    Layer(
        name="model",
        shows="a random walk over everything the program can be told, beside an oracle that knows only the promises",
        module="tests.crash.model", long=("--steps", "100000"), short=("--steps", "2000"),
    ),
    Layer(
        name="kill", shows="SIGKILL before and after every statement of every pipeline and command",
        module="tests.crash.kill", long=("--all",), short=("--instants", "3"),
    ),
    Layer(
        name="kill, PostgreSQL", shows="the same on a clone of a database each, at instants of every scenario",
        module="tests.crash.kill", long=("--instants", "12", "--on", "postgresql"),
        short=("append", "end", "--instants", "2", "--on", "postgresql"),
    ),
    Layer(
        name="power", shows="the disk as a power cut may leave it: what was synced, and any part of what was not",
        module="tests.crash.power", long=("--images", "2000"), short=("--images", "60"),
    ),
    Layer(
        name="mutation", shows="bugs planted one at a time, each of which a named layer must catch",
        module="tests.mutation", long=("--all",), short=("--guarantee", "G1"), seeded=False,
    ),
    Layer(
        name="faults", shows="the ways in which memory systems have failed, as cases over five verbs",
        module="tests.faults", long=("--report",), short=("-k", "a03"), seeded=False,
    ),
    Layer(
        name="load", shows="what the real server holds while it takes in a hundred thousand messages",
        module="tests.load", long=("--messages", "100000"), short=("--messages", "5000"), seeded=False,
    ),
    Layer(
        name="processes", shows="4 workers, 2 servers, PostgreSQL and NATS under 16 clients, all killed at random",
        module="tests.proof.storm", long=("--minutes", "10"), short=("--minutes", "0.5"),
    ),
    Layer(
        name="processes, file", shows="the same processes on one file",
        module="tests.proof.storm", long=("--minutes", "3", "--on", "file"),
        short=("--minutes", "0.3", "--on", "file"),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    exit_code: int
    last_line: str


def run_layer(layer: Layer, root: Path, *, seed: int, quick: bool) -> Found:
    """What the layer prints is passed on as it comes."""
    process = subprocess.Popen(
        [sys.executable, "-u", *layer.arguments(seed=seed, quick=quick)], cwd=root, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    last = ""
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        last = line.strip() or last
    return Found(exit_code=process.wait(), last_line=last)
