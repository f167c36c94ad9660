"""The long form of every layer, one after another, and what they found written into docs/guarantees.md.

    python -m tests.proof [--only LAYER]... [--quick] [--seed N]

About an hour on two quiet cores (--quick: five minutes, and nothing is written). Each layer prints what it does, its
last line is what is written down; a layer that finds a violation fails the whole. Run by `make torture`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.machine import describe_machine
from tests.proof.figures import FIGURES, PAGE, Proof, Run, read_proof, write_page, write_proof
from tests.proof.layers import LAYERS, run_layer

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """0 where no layer found a violation, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.proof", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=[layer.name for layer in LAYERS], help="may be repeated")
    parser.add_argument("--quick", action="store_true", help="a short run of each; writes nothing")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="run nothing: write the page from the kept figures")
    asked = parser.parse_args()
    if asked.write:
        write_page(PAGE, read_proof(FIGURES))
        return 0
    runs = []
    for layer in LAYERS:
        if asked.only and layer.name not in asked.only:
            continue
        print(f"\n== {layer.name}: {layer.shows}", flush=True)
        start = time.perf_counter()
        found = run_layer(layer, ROOT, seed=asked.seed, quick=asked.quick)
        runs.append(
            Run(
                layer=layer.name,
                command=layer.command_line(seed=asked.seed, quick=asked.quick),
                summary=found.last_line,
                held=found.exit_code == 0,
                seconds=round(time.perf_counter() - start),
                at=datetime.now(UTC).date().isoformat(),
            )
        )
        if not asked.quick:
            _keep(runs[-1])
    print()
    for run in runs:
        print(f"{'held' if run.held else 'FAILED':7} {run.layer:9} {run.seconds:5} s  {run.summary}")
    return 0 if all(run.held for run in runs) else 1


def _keep(run: Run) -> None:
    """Layers are written one by one: a proof that is cut off keeps what it has."""
    with tempfile.TemporaryDirectory() as place:
        machine = {name: str(value) for name, value in describe_machine(Path(place)).items()}
    before = read_proof(FIGURES).runs if FIGURES.exists() else ()
    known = {kept.layer: kept for kept in before} | {run.layer: run}
    proof = Proof(machine=machine, runs=tuple(known[layer.name] for layer in LAYERS if layer.name in known))
    write_proof(FIGURES, proof)
    write_page(PAGE, proof)


if __name__ == "__main__":
    sys.exit(main())
