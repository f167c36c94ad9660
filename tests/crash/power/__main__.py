"""Cut the power many times: `python -m tests.crash.power --images 2000 --seed 1`. Exit code 1 for any violation."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import structlog

from everkept.prove.power import cut_runs, why_not


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--images", type=int, default=2000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--directory", type=Path, help="where to work; a new temporary folder without it")
    asked = options.parse_args()
    missing = why_not()
    if missing is not None:
        print(missing, file=sys.stderr)
        return 1
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    started_s = time.monotonic()
    with tempfile.TemporaryDirectory(dir=asked.directory) as folder:
        report = cut_runs(Path(folder), asked.seed, until=lambda images: images >= asked.images)
    took_s = time.monotonic() - started_s
    for violation in report.violations:
        print(violation)
    print(
        f"Of {report.images:,} images, from {report.runs} runs in WAL and TRUNCATE mode by turns, {report.drained} were"
        f" worked to their end and {report.again} were cut again during recovery: {len(report.violations)} violations"
        f" in {took_s:.0f} s (seed {asked.seed})."
    )
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
