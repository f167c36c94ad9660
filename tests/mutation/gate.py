"""Plants one bug into a copy of Everkept, runs the tests that must catch it, and says what they came to.

A bug counts as caught when its tests pass over an unchanged copy and, over the copy with the bug, one of them fails in
its own body by a violated assertion. A text that is not there exactly once is an error, so that a change of the code
cannot leave a bug without effect; a copy that was not imported is an error too.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from typing import Self

from tests.mutation.bug import Planted
from tests.mutation.warm import Warm

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "everkept"
TIMEOUT_S = 600
"""A run that takes longer hangs, and catches nothing. Far more than is needed, for a machine that has other work."""
OURS = ("PYTEST_", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "HYPOTHESIS_")
"""Variables of the run that runs the gate, which are no business of the runs it starts."""


class Vacuous(Exception):
    """The bug cannot be planted as it is written, or was not in the code that ran: it would prove nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one run of tests came to."""

    passed: Sequence[str]
    failed: Mapping[str, Sequence[str]]
    """Test → classes of the errors that ended its body."""
    broken: Mapping[str, Sequence[str]]
    """The same of set-up and tear-down."""
    seconds: float
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a planted bug was caught, by which test and how fast; `why_not` is empty where it was."""

    bug: Planted
    caught_by: str
    seconds: float
    why_not: str


def copy_package(source: Path, home: Path) -> Path:
    """A copy of the package at `source` as `home/everkept`, with its bytecode; `home` is what goes on the path."""
    shutil.copytree(source, home / "everkept", symlinks=True)
    return home


def link_package(copy: Path, home: Path) -> Path:
    """As `copy_package`, from a copy that nobody writes to: the same files under new names. `plant` makes its own."""
    shutil.copytree(copy, home / "everkept", symlinks=True, copy_function=os.link)
    return home


def plant(bug: Planted, home: Path) -> None:
    """Write the bug into the copy. Raises Vacuous where its text is not there exactly once."""
    file = home / "everkept" / bug.file
    source = file.read_text("utf-8")
    found = source.count(bug.old)
    if found != 1:
        raise Vacuous(f"{bug.name}: {bug.file} holds its text {found} times, not once:\n{bug.old}")
    if bug.old == bug.new:
        raise Vacuous(f"{bug.name} changes nothing")
    file.unlink()  # it may be a link
    file.write_text(source.replace(bug.old, bug.new), encoding="utf-8")
    Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)


def run_tests(warm: Warm, tests: Sequence[str], home: Path, scratch: Path, *options: str) -> Ran:
    """Run these tests over the copy in `home`. Raises Vacuous where another Everkept was imported."""
    if not tests:
        raise Vacuous("no test is named, and pytest would run all of them")
    witness, printed = scratch / "witness.json", scratch / "printed.txt"
    arguments = [
        "-q", "-p", "no:cacheprovider", "-p", "tests.mutation.witness", *options,
        "--witness", str(witness), "--basetemp", str(scratch / "tmp"), "--rootdir", str(ROOT), *tests,
    ]  # fmt: skip
    started = time.monotonic()
    code = warm.run(arguments, path=home, environment=_environment(home, scratch), output=printed, timeout_s=TIMEOUT_S)
    seconds = time.monotonic() - started
    output = "it hung" if code == -signal.SIGALRM else printed.read_text("utf-8", "replace")[-6_000:]
    if not witness.exists():
        return Ran(passed=(), failed={}, broken={}, seconds=seconds, output=output)
    seen = json.loads(witness.read_text("utf-8"))
    _require_copy(seen["files"], home)
    body = [row for row in seen["rows"] if row["phase"] == "call"]
    around = [row for row in seen["rows"] if row["phase"] != "call"]
    return Ran(
        passed=tuple(row["test"] for row in body if row["outcome"] == "passed"),
        failed={row["test"]: row["error"] for row in body if row["outcome"] == "failed"},
        broken={row["test"]: row["error"] for row in around if row["outcome"] == "failed"},
        seconds=seconds,
        output=output,
    )


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(OURS)}


def _environment(home: Path, scratch: Path) -> dict[str, str]:
    """Plugins of other packages are left out: they cost a second each time and none of the tests needs them."""
    return _inherited() | {
        "PYTHONPATH": os.pathsep.join([str(home), str(ROOT)]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(scratch / "hypothesis"),
    }


def _require_copy(files: dict[str, str], home: Path) -> None:
    strangers = [file for file in files.values() if not Path(file).is_relative_to(home)]
    if strangers or not files:
        raise Vacuous(f"the tests imported {strangers or 'no Everkept at all'}, and not the copy in {home}")


class Gate:
    """Copies of Everkept to plant bugs into, in a directory of their own. Several threads may share one."""

    def __init__(self, scratch: Path, package: Path = PACKAGE) -> None:
        self._scratch = scratch
        self._whole = copy_package(package, scratch / "whole")
        self._idle: SimpleQueue[Warm] = SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while not self._idle.empty():
            self._idle.get().close()

    def run_clean(self, tests: Sequence[str]) -> Ran:
        """The tests over Everkept as it is. Comes first, and leaves the bytecode that the other copies take over."""
        with TemporaryDirectory(dir=self._scratch) as scratch:
            return self._run(sorted(set(tests)), self._whole, Path(scratch))

    def judge(self, bug: Planted, clean: Ran) -> Verdict:
        """Plant the bug and run its tests, up to the first that fails. Raises Vacuous."""
        red = [test for test in (*clean.failed, *clean.broken) if any(_is(test, named) for named in bug.tests)]
        missing = [named for named in bug.tests if not any(_is(test, named) for test in clean.passed)]
        if red or missing:
            why = f"without the bug, these failed: {red}, and these did not run: {missing}\n{clean.output}"
            return Verdict(bug=bug, caught_by="", seconds=clean.seconds, why_not=why)
        with TemporaryDirectory(dir=self._scratch) as scratch:
            home = link_package(self._whole / "everkept", Path(scratch) / "planted")
            plant(bug, home)
            return _verdict(bug, self._run(bug.tests, home, Path(scratch), "-x"))

    def _run(self, tests: Sequence[str], home: Path, scratch: Path, *options: str) -> Ran:
        try:
            warm = self._idle.get_nowait()
        except Empty:
            warm = Warm(ROOT, _inherited())
        try:
            return run_tests(warm, tests, home, scratch, *options)
        finally:
            self._idle.put(warm)


def _is(test: str, named: str) -> bool:
    """Whether `named` means this test: by its whole name, or without its parameters, or as one of a class."""
    return test == named or test.startswith((f"{named}[", f"{named}::"))


def _verdict(bug: Planted, ran: Ran) -> Verdict:
    for test, errors in ran.failed.items():
        if set(errors) & set(bug.fails_with):
            return Verdict(bug=bug, caught_by=test, seconds=ran.seconds, why_not="")
    if ran.failed or ran.broken:
        why = f"it ended otherwise than by {' or '.join(bug.fails_with)}: {dict(ran.failed)} {dict(ran.broken)}"
    else:
        why = "its tests passed" if ran.passed else "no test ran"
    return Verdict(bug=bug, caught_by="", seconds=ran.seconds, why_not=f"{why}\n{ran.output}")
