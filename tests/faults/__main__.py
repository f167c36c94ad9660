"""Run the fault bench against one system, and keep the result: `python -m tests.faults --help`."""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.faults.report import ON_POSTGRES, PAGE, ROOT, Run, load_runs, merged, read_junit, save_runs, write_page

import everkept

SYSTEMS = ("everkept", "mem0")


def main() -> int:
    chosen = _arguments().parse_args()
    version = everkept.__version__ if chosen.system == "everkept" else _peer_version(chosen)
    environment = {**os.environ, "FAULT_BENCH_SYSTEM": chosen.system}
    if chosen.venv is not None:
        environment["FAULT_BENCH_VENV"] = str(chosen.venv.resolve())
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        pytest = [sys.executable, "-m", "pytest", "-q", "-n", "2", "tests/faults", f"--junitxml={results}"]
        command = [*pytest, "-k", _selection(chosen.k)]
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        outcomes = read_junit(results)
        elsewhere = read_junit(results, on_postgres=True)
    if chosen.report:
        shown = "python -m tests.faults" + (
            "" if chosen.system == "everkept" else f" --system {chosen.system} --venv …"
        )
        date = datetime.now(UTC).date().isoformat()
        runs = load_runs()
        for name, found in ((chosen.system, outcomes), (chosen.system + ON_POSTGRES, elsewhere)):
            if found and (name in SYSTEMS or chosen.system == "everkept"):
                run = Run(version=version, date=date, command=f"{shown} --report", outcomes=found)
                runs[name] = merged(runs.get(name), run)
        save_runs(runs)
        write_page(runs)
        print(f"written: {PAGE.relative_to(ROOT)}")
    tried = [*outcomes.values(), *elsewhere.values()]
    held, failed, left_out = (sum(getattr(each, of) for each in tried) for of in ("held", "failed", "not_applicable"))
    ways = held + failed + left_out
    print(f"{len(outcomes)} cases in {ways} ways: {held} held, {failed} failed, {left_out} do not apply")
    return code if chosen.system == "everkept" else 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="The fault bench, against one system.")
    parser.add_argument("--system", choices=SYSTEMS, default="everkept", help="whom to try (default: %(default)s)")
    parser.add_argument("--venv", type=Path, help="a venv that holds the peer; it is not installed by make test")
    parser.add_argument("--report", action="store_true", help="keep the results and write the table in the docs")
    parser.add_argument("-k", default="", help="only these cases, as for pytest")
    return parser


def _selection(words: str) -> str:
    """The cases; the test of the table itself is no case."""
    return "not test_table" + (f" and ({words})" if words else "")


def _peer_version(chosen: argparse.Namespace) -> str:
    """Of the peer in its venv; says what to install where it is not there."""
    needed: Sequence[str] = importlib.import_module(f"tests.faults.{chosen.system}_system").REQUIREMENTS
    package = needed[0].partition("==")[0]
    if chosen.venv is None:
        raise SystemExit(f"--venv is needed: a venv with {' '.join(needed)}")
    script = f"import importlib.metadata as m; print(m.version({package!r}))"
    asked = subprocess.run(
        [str(chosen.venv / "bin" / "python"), "-c", script], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        raise SystemExit(f"{package} is not installed in {chosen.venv}; install {' '.join(needed)}")
    return asked.stdout.strip()


if __name__ == "__main__":
    raise SystemExit(main())
