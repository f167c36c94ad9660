"""`python -m tests.mutation`: plant bugs, and print which test of which layer caught each."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.mutation.bug import LAYERS, Planted
from tests.mutation.gate import Gate, Ran, Vacuous, Verdict
from tests.mutation.planted import PLANTED


def main() -> int:
    """0 where every bug was caught, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--all", action="store_true", help="plant every bug")
    parser.add_argument("--layer", choices=sorted(LAYERS), help="only the bugs that this layer must catch")
    parser.add_argument("--guarantee", metavar="G1", help="only the bugs that void this guarantee")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("words", nargs="*", help="only the bugs with these words in their name")
    asked = parser.parse_args()
    if not (asked.all or asked.layer or asked.guarantee or asked.words):
        parser.error("say which bugs, or --all")
    bugs = [bug for bug in PLANTED if _wanted(bug, asked)]
    verdicts = plant_all(bugs, asked.jobs)
    survived = [verdict for verdict in verdicts if verdict.why_not]
    for verdict in survived:
        print(f"\n{verdict.bug.guarantee} {verdict.bug.name}: {verdict.why_not}")
    print(f"\n{len(verdicts) - len(survived)} of {len(verdicts)} planted bugs were caught")
    return 1 if survived else 0


def _wanted(bug: Planted, asked: argparse.Namespace) -> bool:
    return (
        asked.layer in (None, bug.layer)
        and asked.guarantee in (None, bug.guarantee)
        and all(word in bug.name for word in asked.words)
    )


def plant_all(bugs: Sequence[Planted], jobs: int) -> list[Verdict]:
    """The verdicts in the order of `bugs`, each printed as a row of a table as soon as it is known."""
    with TemporaryDirectory(prefix="everkept-mutation-") as scratch, Gate(Path(scratch)) as gate:
        clean = gate.run_clean([test for bug in bugs for test in bug.tests])
        print(f"{'':4}{'planted bug':72}{'layer':10}{'s':>5}  caught by")
        with ThreadPoolExecutor(jobs) as pool:
            verdicts = []
            for verdict in pool.map(lambda bug: _judge(gate, bug, clean), bugs):
                print(_row(verdict), flush=True)
                verdicts.append(verdict)
        return verdicts


def _judge(gate: Gate, bug: Planted, clean: Ran) -> Verdict:
    try:
        return gate.judge(bug, clean)
    except Vacuous as error:
        return Verdict(bug=bug, caught_by="", seconds=0, why_not=str(error))


def _row(verdict: Verdict) -> str:
    bug = verdict.bug
    by = verdict.caught_by.rpartition("/")[2] or "NOT CAUGHT"
    return f"{bug.guarantee:4}{bug.name:72}{bug.layer:10}{verdict.seconds:5.1f}  {by}"


if __name__ == "__main__":
    sys.exit(main())
