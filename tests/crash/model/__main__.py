"""Run the state machine for many steps: `python -m tests.crash.model --steps 100000 --seed 7`."""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
import traceback

import structlog
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.crash.model.machine import Model

RUNS_A_SEED = 25
STEPS_A_RUN = 80
VIOLATIONS_MAX = 10


def run_once(number: int, runs: int = RUNS_A_SEED, steps: int = STEPS_A_RUN, *, shrink: bool = False) -> None:
    """`runs` runs of `steps` steps each, all from one seed. Raises Violation."""
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    run_state_machine_as_test(
        seed(number)(type(f"Model{number}", (Model,), {})),
        settings=settings(
            max_examples=runs, stateful_step_count=steps, database=None, deadline=None, phases=phases,
            report_multiple_bugs=False, suppress_health_check=list(HealthCheck), print_blob=False,
        ),
        _min_steps=steps - 1,
    )  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.model", description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=None, help="of the first runs; the next ones count up from it")
    parser.add_argument("--shrink", action="store_true", help="look for the shortest run that fails")
    given = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    first = random.SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    began, number, violations = time.perf_counter(), first, 0
    while Model.tally["steps"] < given.steps and violations < VIOLATIONS_MAX:
        try:
            run_once(number, shrink=given.shrink)
        except Exception:  # noqa: BLE001  (whatever a run ends in is a finding; the next seeds are run all the same)
            violations += 1
            print(f"--- seed {number}", file=sys.stderr)
            traceback.print_exc()
        number += 1
    took = time.perf_counter() - began
    for name, n in sorted(Model.tally.items()):
        print(f"{n:9,}  {name}")
    steps = Model.tally["steps"]
    print(
        f"{steps:,} steps in {Model.tally['runs']:,} runs, seeds {first} to {number - 1}, {took:.0f} s,"
        f" {steps / took:.0f} steps/s, {violations} violations"
    )
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
