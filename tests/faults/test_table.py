"""The table of the docs and the list of kinds are those of the cases that exist."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.faults.catalogue import KINDS, cases
from tests.faults.report import BEGIN, END, PAGE, load_runs, read_junit, render


def test_every_kind_has_a_case_and_every_case_a_kind() -> None:
    assert {kind for kind, _ in cases()} == set(KINDS)


def test_no_two_cases_have_the_same_name() -> None:
    names = Counter(cases())
    assert [case for case, times in names.items() if times > 1] == []


def test_the_table_lists_exactly_the_cases_that_exist() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.split(BEGIN)[1].split(END)[0].strip() == render(load_runs()).strip()


def test_every_case_has_a_result_of_everkept() -> None:
    """Made again by `python -m tests.faults --report`."""
    assert set(load_runs()["everkept"].outcomes) == {name for _, name in cases()}


def test_everkept_holds_in_every_case_of_the_table() -> None:
    ours = {name: run for name, run in load_runs().items() if name.startswith("everkept")}
    assert [name for run in ours.values() for name, outcome in run.outcomes.items() if outcome.failed] == []


def test_cases_on_postgresql_are_told_from_the_same_cases_on_a_file(tmp_path: Path) -> None:
    told = "".join(f'<testcase name="{name}"/>' for name in ("test_a[1]", "test_a[postgresql-1]", "test_b[sqlite]"))
    (tmp_path / "results.xml").write_text(f"<testsuite>{told}</testsuite>")
    here, there = (read_junit(tmp_path / "results.xml", on_postgres=way) for way in (False, True))
    assert ({name: o.held for name, o in here.items()}, list(there)) == ({"test_a": 1, "test_b": 1}, ["test_a"])
