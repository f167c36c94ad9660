"""Layer 2 whole: `python -m tests.crash.kill --all` kills every scenario at every instant; names choose some.

Instants between which no byte of the folder changed are one: a kill at the first of them leaves what a kill at each
leaves. `--each` kills at each of them all the same, and takes hours for all scenarios.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from everkept.prove.grounds import Clones, Files, Ground
from everkept.prove.kill import Choice, KillReport, ScenarioReport, Theatre, at_changes, everywhere, sample
from everkept.prove.nursery import Nursery
from everkept.prove.scenarios import SCENARIOS, playable
from everkept.prove.torture import silence


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m tests.crash.kill", description=__doc__)
    arguments.add_argument("scenario", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    arguments.add_argument("--all", action="store_true", help="every scenario")
    arguments.add_argument("--on", choices=("file", "postgresql"), default="file", help="where the stores lie")
    how_often = arguments.add_mutually_exclusive_group()
    how_often.add_argument("--instants", type=int, help="a sample of so many of each scenario, of all unless named")
    how_often.add_argument("--each", action="store_true", help="also at instants that change nothing")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--double", type=float, default=0.1, help="how many recoveries, of 1, are killed too")
    given = arguments.parse_args()
    names = given.scenario or (playable(on_a_server=given.on == "postgresql") if given.all or given.instants else [])
    unknown = [name for name in names if name not in SCENARIOS]
    if not names or unknown:
        arguments.error(f"there is no scenario {', '.join(unknown)}" if unknown else "name scenarios, or --all")
    choose: Choice = everywhere if given.each else at_changes
    if given.instants is not None:
        choose = sample(given.seed, given.instants)
    started, whole = time.monotonic(), KillReport()
    print(f"{'scenario':28} statements instants changes   kills  twice states violations seconds")
    with (
        tempfile.TemporaryDirectory(prefix="everkept-kill-") as folder, silence(), Nursery() as nursery,
        ground_of(given.on) as ground,
    ):  # fmt: skip
        for name in names:
            theatre = Theatre(Path(folder), nursery, ground=ground)
            done = theatre.run([name], choose, seed=given.seed, double=given.double)
            whole.scenarios += done.scenarios
            whole.statements |= done.statements
            _tell(done.scenarios[0])
    print(summary(whole, time.monotonic() - started))
    return 1 if whole.fallen else 0


def ground_of(on: str) -> AbstractContextManager[Ground]:
    """Files, or a server of PostgreSQL that is started for this and stopped at the end of the process."""
    if on == "file":
        return nullcontext(Files())
    from tests.postgres import server_url

    return Clones(server_url())


def _tell(one: ScenarioReport) -> None:
    print(
        f"{one.name:28} {one.statements:10} {one.boundaries:8} {one.changes:7} {one.kills:7} {one.double_kills:6}"
        f" {one.states:6} {len(one.fallen):10} {one.seconds:7.1f}",
        flush=True,
    )
    for fallen in one.fallen:
        print(f"  {fallen}", flush=True)


def summary(whole: KillReport, seconds: float) -> str:
    twice = sum(s.double_kills for s in whole.scenarios)
    instants = sum(s.boundaries for s in whole.scenarios)
    return (
        f"{len(whole.scenarios)} scenarios, {len(whole.statements):,} different statements, {instants:,} instants:"
        f" {whole.kills - twice:,} kills, {twice:,} of recoveries too, {len(whole.fallen):,} violations,"
        f" in {seconds:,.0f} seconds."
    )


if __name__ == "__main__":
    sys.exit(main())
