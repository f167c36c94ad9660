"""`python -m tests.load --messages 100000`: the long form, for the disk that the current directory lies on.

The server takes in a hundred thousand messages. Exit code 1 where it grew beyond a bound; what was left on the disk is
then kept, and named.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.load.growth import grow


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--messages", type=int, default=100_000)
    asked = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix=".everkept-load-", dir=Path.cwd()))  # /tmp is often memory
    grown = grow(place / "grown", messages=asked.messages)
    tell(grown.lines())
    if grown.excesses():
        tell([f"what is left is in {place}"])
    else:
        shutil.rmtree(place)
    tell([grown.sentence()])
    return 1 if grown.excesses() else 0


def tell(lines: list[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
