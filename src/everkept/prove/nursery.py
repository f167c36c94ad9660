"""A process that has imported everything and opened nothing: it forks the players that are killed.

A connection must not be carried over a fork, so whoever opens connections (the one that recovers and checks) asks this
process, by one line of JSON on its standard input for each player, and reads one line back: how the player ended.
Windows cannot fork; there this part of the proof is not run, and says so.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

OUTCOME = "outcome.json"
FAILED = 97
"""The exit code of a player that could not play."""
AVAILABLE = hasattr(os, "fork")


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """How a player ended that was not killed."""

    boundaries: tuple[str, ...]
    """Each instant at which it could have been killed, by its name."""
    changed: tuple[int, ...]
    """The instants, from 1, at which its folder was not what it was at the instant before, byte for byte."""
    statements: frozenset[str]
    clock_us: int


class PlayerFailed(Exception):
    """A player ended in an error of its own: the scenario is wrong, or the code under it. Holds the traceback."""


class Nursery:
    """The forking process, seen from outside. Raises PlayerFailed where it does not start."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "everkept.prove.nursery"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        try:
            ready = self._process.stdout.readline()  # it has imported all that players need
        except BaseException:  # interrupted; it has not forked yet, and need not come to an end of its own
            self._process.kill()
            self.close()
            raise
        if not ready:
            self.close()
            raise PlayerFailed("the process that forks the players did not start")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def play(
        self, scenario: str, folder: Path, *, part: str, start_us: int, die_at: int | None, synced: bool
    ) -> Played | None:
        """Play a scenario's `prepare`, `act` or `recover` in `folder`; None where the player was killed.

        Raises PlayerFailed.
        """
        order = {"scenario": scenario, "folder": str(folder), "part": part, "start_us": start_us, "die_at": die_at,
                 "synced": synced}  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise PlayerFailed("the process that forks the players has ended")
        status = json.loads(line)["status"]
        if os.WIFSIGNALED(status):
            if die_at is None:
                raise PlayerFailed(f"{scenario}: killed by signal {os.WTERMSIG(status)}, and not by us")
            return None
        outcome = json.loads((folder / OUTCOME).read_text("utf-8"))
        if os.WEXITSTATUS(status) != 0:
            raise PlayerFailed(f"{scenario}, {part}: {outcome['error']}")
        return Played(
            boundaries=tuple(outcome["boundaries"]), changed=tuple(outcome["changed"]),
            statements=frozenset(outcome["statements"]), clock_us=outcome["clock_us"],
        )  # fmt: skip


# ---- inside


def _serve() -> None:
    # Whoever only talks to the nursery needs none of this; here it is imported once, so that no player has to.
    importlib.import_module("everkept.prove.boundaries")
    importlib.import_module("everkept.prove.scenarios")
    importlib.import_module("asyncio.threads")
    if find_spec("psycopg") is not None:
        importlib.import_module("everkept.prove.boundaries_postgres")
    from everkept.domain.passage import analyse
    from everkept.prove.statements import compile_all
    from everkept.store.sqlite import choose_driver

    choose_driver()
    analyse("What is needed to analyse a text is loaded at the first one.", speaker="", occurred_at_us=0)
    compile_all()
    gc.collect()
    gc.freeze()
    _say("ready")
    for line in sys.stdin.buffer:
        order = json.loads(line)
        player = os.fork()
        if player == 0:
            _play_and_exit(order)
        _, status = os.waitpid(player, 0)
        _say(json.dumps({"status": status}))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _play_and_exit(order: Mapping[str, Any]) -> None:
    """Never returns."""
    from everkept.prove.boundaries import mute

    code = FAILED
    folder = Path(order["folder"])
    try:
        mute()
        outcome = _play(order, folder)
        code = 0
    except BaseException:  # noqa: BLE001  (a forked process must not run on into its parent's code)
        outcome = {"error": traceback.format_exc()}
    try:
        (folder / OUTCOME).write_text(json.dumps(outcome), "utf-8")
    finally:
        os._exit(code)


def _nothing_elsewhere() -> int:
    return 0


def _play(order: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    from everkept.prove.boundaries import Boundaries, Watched, install
    from everkept.prove.grounds import is_server
    from everkept.prove.scenarios import SCENARIOS

    scenario = SCENARIOS[order["scenario"]]
    boundaries = Boundaries(order["die_at"])
    commits = _nothing_elsewhere
    if order["part"] != "prepare":
        install(boundaries)
        if is_server(folder):
            from everkept.prove.boundaries_postgres import install_postgres

            commits = install_postgres(boundaries)
    if order["die_at"] is None:
        boundaries.watch(Watched(folder, commits))
    clock_us = scenario.play(folder, order["part"], order["start_us"], boundaries, synced=order["synced"])
    return {
        "boundaries": boundaries.passed, "changed": boundaries.changed, "statements": sorted(boundaries.statements),
        "clock_us": clock_us,
    }  # fmt: skip


if __name__ == "__main__":
    _serve()
