"""Measure speed and recall on this machine: every figure beside its floor or peer in the same run.

    python -m tests.bench [--quick] [--only NAME]... [--json FILE] [--locomo FILE]

What each figure is and how to read it: docs/bench.md. Four to six minutes on two cores; --quick takes one to two.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench import (
    agents,
    deliveries,
    hooks,
    http_append,
    job_speed,
    mcp,
    postgres_appends,
    postgres_idle,
    postgres_jobs,
    postgres_recall,
    recall_sets,
    recall_speed,
    redaction,
    review_quality,
    reviews,
    service,
    store_append,
    web_pages,
)
from tests.bench.machine import describe_machine
from tests.bench.processes import temporary_home
from tests.bench.report import Figure, print_section, write_json

SECTIONS: dict[str, tuple[str, Callable[..., Iterator[Figure]]]] = {
    "http": ("Durable appends through HTTP", http_append.measure),
    "store": ("Durable appends into the store", store_append.measure),
    "recall": ("Recall, speed", recall_speed.measure),
    "quality": ("Recall, share of the evidence among the first ten", recall_sets.measure),
    "jobs": ("Jobs", job_speed.measure),
    "service": ("The running server", service.measure),
    "agents": ("Sessions of coding agents", agents.measure),
    "hooks": ("Hooks of coding agents", hooks.measure),
    "reviews": ("Reviews of sessions", reviews.measure),
    "review-quality": ("Reviews without a model, on histories of fifty sessions", review_quality.measure),
    "deliveries": ("Deliveries", deliveries.measure),
    "redaction": ("Redaction", redaction.measure),
    "mcp": ("MCP", mcp.measure),
    "pages": ("Pages of the site, over 100,000 events and 10,000 jobs", web_pages.measure),
    "postgres-jobs": ("Jobs on PostgreSQL", postgres_jobs.measure),
    "postgres-appends": ("Durable appends on PostgreSQL", postgres_appends.measure),
    "postgres-idle": ("Idle workers on PostgreSQL", postgres_idle.measure),
    "postgres-recall": ("Recall on PostgreSQL, at 10k, 100k and 1M passages", postgres_recall.measure),
}
BY_NAME = frozenset({"postgres-jobs", "postgres-appends", "postgres-idle", "postgres-recall"})
"""Sections that take long, and are measured only when they are asked for."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and no store of 100,000 turns")
    parser.add_argument("--only", action="append", choices=list(SECTIONS), help="measure this section; may be repeated")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument(
        "--locomo", type=Path, metavar="FILE", help=f"R@10 of a LoCoMo file, too; also {recall_sets.LOCOMO}"
    )
    given = parser.parse_args()
    if given.locomo is not None:
        os.environ[recall_sets.LOCOMO] = str(given.locomo)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers and stores go with it
    with temporary_home(Path.cwd()) as home:
        machine = describe_machine(home)
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    start = time.perf_counter()
    found = []
    for name in given.only or [section for section in SECTIONS if section not in BY_NAME]:
        title, measure = SECTIONS[name]
        with temporary_home(Path.cwd()) as home:
            figures = list(measure(home, quick=given.quick))
        print_section(title, figures)
        found.append((title, figures))
    print(f"\n{time.perf_counter() - start:.0f} s in all")
    if given.json is not None:
        write_json(given.json, found, machine)


if __name__ == "__main__":
    main()
