"""`python -m tests.load --minutes 10 --seed 1`: the long form, for the disk that the current directory lies on.

First the server is killed under sixteen clients for that long; then it takes in a hundred thousand messages. Exit
code 1 where anything was lost, done twice or grew beyond its bound; what was left on the disk is then kept, and named.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.load.growth import grow
from tests.load.run import run

BETWEEN_STRIKES_S = 8.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="how long the server is killed; 0 leaves it out")
    parser.add_argument("--messages", type=int, default=100_000, help="how many it takes in; 0 leaves it out")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix=".everkept-load-", dir=Path.cwd()))  # /tmp is often memory
    bad, said = [], []
    if asked.minutes:
        killed = run(place / "killed", minutes=asked.minutes, seed=asked.seed, between_s=BETWEEN_STRIKES_S)
        bad += killed.violations
        said.append(killed.sentence())
        tell(killed.lines())
    if asked.messages:
        grown = grow(place / "grown", messages=asked.messages)
        bad += grown.excesses()
        said.append(grown.sentence())
        tell(grown.lines())
    if bad:
        tell([f"seed {asked.seed}; what is left is in {place}"])
    else:
        shutil.rmtree(place)
    tell(["; ".join(said)])
    return 1 if bad else 0


def tell(lines: list[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
