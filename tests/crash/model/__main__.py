"""Run the state machines for many steps: `python -m tests.crash.model --steps 100000 --seed 7`.

Each seed is one stretch of conversations and one of deliveries; `--machine` runs one of the two alone.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
import traceback
from collections.abc import Sequence

import structlog
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.crash.model.deliveries.machine import Deliveries
from tests.crash.model.machine import Model

Machine = type[Model] | type[Deliveries]
MACHINES: dict[str, Machine] = {"conversations": Model, "deliveries": Deliveries}
RUNS_A_SEED = 25
STEPS_A_RUN = 80
VIOLATIONS_MAX = 10


def run_once(
    machine: Machine, number: int, runs: int = RUNS_A_SEED, steps: int = STEPS_A_RUN, *, shrink: bool = False
) -> None:
    """`runs` runs of `steps` steps each, all from one seed. Raises Violation."""
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    run_state_machine_as_test(
        seed(number)(type(f"{machine.__name__}{number}", (machine,), {})),
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
    parser.add_argument("--machine", choices=MACHINES, help="one of them alone")
    parser.add_argument("--shrink", action="store_true", help="look for the shortest run that fails")
    given = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    machines = [MACHINES[given.machine]] if given.machine else list(MACHINES.values())
    first = random.SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    began, number, violations = time.perf_counter(), first, 0
    while _count(machines, "steps") < given.steps and violations < VIOLATIONS_MAX:
        for machine in machines:
            violations += not _holds(machine, number, shrink=given.shrink)
        number += 1
    took = time.perf_counter() - began
    for machine in machines:
        for name, n in sorted(machine.tally.items()):
            print(f"{n:9,}  {machine.__name__}: {name}")
    steps = _count(machines, "steps")
    print(
        f"{steps:,} steps in {_count(machines, 'runs'):,} runs, seeds {first} to {number - 1}, {took:.0f} s,"
        f" {steps / took:.0f} steps/s, {violations} violations"
    )
    return 1 if violations else 0


def _count(machines: Sequence[Machine], what: str) -> int:
    return sum(machine.tally[what] for machine in machines)


def _holds(machine: Machine, number: int, *, shrink: bool) -> bool:
    try:
        run_once(machine, number, shrink=shrink)
    except Exception:  # noqa: BLE001  (whatever a run ends in is a finding; the next seeds are run all the same)
        print(f"--- {machine.__name__}, seed {number}", file=sys.stderr)
        traceback.print_exc()
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
