"""A smoke of layer 2: every scenario, killed at some instants; `python -m tests.crash.kill --all` kills at all."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.crash.kill.__main__ import summary

import everkept
from everkept.ports.faults import POINTS
from everkept.prove.boundaries import Watched
from everkept.prove.kill import KillReport, Theatre, at_changes, everywhere, sample
from everkept.prove.nursery import Nursery
from everkept.prove.scenarios import SCENARIOS
from everkept.prove.statements import writing_statements
from everkept.prove.torture import silence

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes cannot be forked on Windows")
SEED = 1
INSTANTS = 1
PIPELINE = ("append", "end", "end-only")
"""Killed wherever they change a byte."""
SHORTEST = "thread-settings"
SOURCE = Path(everkept.__file__).parent


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as forking:
        yield forking


@pytest.fixture(scope="module")
def report(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> KillReport:
    """Every scenario, played once undisturbed and killed at some instants."""
    with silence():
        return Theatre(tmp_path_factory.mktemp("kill"), nursery).run(
            SCENARIOS, sample(SEED, INSTANTS, pipeline=PIPELINE), seed=SEED, double=0.2
        )


def test_kill_breaks_nothing_in_any_scenario(report: KillReport) -> None:
    assert [str(fallen) for fallen in report.fallen] == []
    assert {s.name for s in report.scenarios} == set(SCENARIOS)
    assert all(s.kills > 0 for s in report.scenarios)


def test_kill_scenarios_run_every_statement_that_writes(report: KillReport) -> None:
    assert sorted(where for sql, where in writing_statements().items() if sql not in report.statements) == []


def test_kill_scenarios_pass_every_fault_point(report: KillReport) -> None:
    assert [point for point in POINTS if f"at {point}" not in report.points] == []


# ---- one kill stands for all between which nothing changes


def test_kill_at_changes_leaves_every_state_that_kills_everywhere_leave(nursery: Nursery, tmp_path: Path) -> None:
    with silence():
        theatre = Theatre(tmp_path, nursery)
        theatre.run([SHORTEST], at_changes)
        theatre.run([SHORTEST], everywhere)
    few, all_ = theatre.report.scenarios
    assert (few.fallen, all_.fallen) == ([], [])
    assert few.kills < all_.kills / 5
    assert few.states == all_.states > 3


def test_command_ends_with_one_sentence_of_what_it_did(report: KillReport) -> None:
    assert re.fullmatch(
        rf"{len(SCENARIOS)} scenarios, \d+ different statements, [\d,]+ instants: \d+ kills, \d+ of recoveries too,"
        r" 0 violations, in 7 seconds\.", summary(report, 7.0)
    )  # fmt: skip


def test_watched_notices_any_byte_but_the_logs_index(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    pages = tmp_path / "pages"
    changes: list[Callable[[], object]] = [
        lambda: pages.write_bytes(b"one"),
        lambda: pages.write_bytes(b"two"),
        lambda: pages.rename(tmp_path / "moved"),
        lambda: (tmp_path / "folder").mkdir(),
        lambda: (tmp_path / "folder" / "inside").touch(),
        lambda: (tmp_path / "moved").unlink(),
    ]
    assert watched.changed()
    assert not watched.changed()
    for change in changes:
        change()
        assert watched.changed()
        assert not watched.changed()
    (tmp_path / "pages-shm").write_bytes(b"index")
    assert not watched.changed()


# ---- no statement is hidden from the list

WRITES = re.compile(r"\s*(insert|update|delete|replace|vacuum|begin|commit|savepoint|release)\b", re.IGNORECASE)


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        place = str(path.relative_to(SOURCE))
        if not place.startswith(("prove/", "store/migrations/", "store/diagnosis/")):
            yield place, ast.parse(path.read_text("utf-8"))


def raw_writes() -> dict[str, str]:
    """{the beginning of a writing statement that is given to the driver as text: where}."""
    found: dict[str, str] = {}
    for place, module in modules():
        if place.startswith("capture/agents/"):  # these read files of other programs, which are opened to be read
            continue
        if place.startswith(("store/moving/", "store/postgres")):  # contract/test_move_killed.py; run on a server alone
            continue
        for node in ast.walk(module):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            if node.func.attr not in ("execute", "executemany", "executescript"):
                continue
            first = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str) and WRITES.match(first.value):
                found[first.value] = f"{place}:{node.lineno}"
    return found


def test_kill_scenarios_run_every_raw_statement_that_writes(report: KillReport) -> None:
    ran = tuple(report.statements)
    missing = {sql: where for sql, where in raw_writes().items() if not any(s.startswith(sql) for s in ran)}
    assert missing == {}


def test_statements_are_made_where_the_list_finds_them() -> None:
    """A statement made inside a function that is not called at import would be in no module's constants."""
    hidden = []
    for place, module in modules():
        if not place.startswith("store/"):
            imports = [n for n in ast.walk(module) if isinstance(n, ast.ImportFrom) and n.module]
            hidden += [place for n in imports if str(n.module).startswith("sqlalchemy")]
            continue
        at_import = {
            call.func.id
            for statement in module.body
            if not isinstance(statement, ast.FunctionDef | ast.ClassDef)
            for call in ast.walk(statement)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        }
        for function in (n for n in ast.walk(module) if isinstance(n, ast.FunctionDef)):
            makes = any(
                isinstance(n, ast.Call)
                and isinstance(n.func, ast.Name)
                and n.func.id in ("text", "insert", "update", "delete")
                for n in ast.walk(function)
            )
            if makes and function.name not in at_import:
                hidden.append(f"{place}: {function.name}")
    assert hidden == []
