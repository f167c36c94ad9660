"""A process that has imported pytest and what the tests need of other packages, and forks a child for each run.

A run then costs what its tests cost and not what Python, pytest and SQLAlchemy cost to start. The process itself never
imports Everkept or a test: a child finds the copy it is given, as a fresh process would.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

HELD = (
    "pytest", "hypothesis.stateful", "sqlalchemy.dialects.postgresql", "sqlalchemy.dialects.sqlite", "numpy",
    "pydantic", "structlog", "snowballstemmer", "apsw", "pysqlite3",
)  # fmt: skip
"""What is imported once. One that is not installed is left out."""
OURS = "everkept"


class Warm:
    """Runs pytest in children of one warm process, one at a time. Is closed by `close`."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.mutation.warm"],
            cwd=root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(
        self, arguments: Sequence[str], *, path: Path, environment: Mapping[str, str], output: Path, timeout_s: int
    ) -> int:
        """The exit code of `pytest <arguments>` with `path` searched first; what it printed is in `output` afterwards.

        Less than 0: the signal that ended it, SIGALRM where it took longer than `timeout_s`.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        wish = {
            "arguments": [*arguments], "path": str(path), "environment": {**environment}, "output": str(output),
            "timeout_s": timeout_s,
        }  # fmt: skip
        self._process.stdin.write(json.dumps(wish) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def main() -> None:
    for name in HELD:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
    if OURS in sys.modules:
        raise SystemExit(f"{OURS} was imported already, so that no child could import another one")
    gc.freeze()
    for line in iter(sys.stdin.readline, ""):
        child = os.fork()
        if child == 0:
            _become(json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _become(wish: dict[str, Any]) -> NoReturn:
    """Be the process of one run to its end. The warm process's pipes are not the run's."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(wish["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for theirs, own in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(theirs, own)
    code = 1
    try:
        os.environ.clear()
        os.environ.update(wish["environment"])
        sys.path.insert(0, wish["path"])
        signal.alarm(wish["timeout_s"])
        code = int(importlib.import_module("pytest").main(wish["arguments"]))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
