"""The gate itself: what it takes for a bug to count as caught, and that no planted bug is without effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.mutation.bug import LAYERS, Layer, Planted
from tests.mutation.gate import PACKAGE, Gate, Ran, Vacuous, copy_package, plant
from tests.mutation.planted import PLANTED

BACKOFF = Planted(
    name="a back-off that does not grow", guarantee="G7", layer="contract", file="domain/jobs.py",
    old="self.first_s * 2.0 ** min(failures, 30)", new="self.first_s * 2.0",
    tests=("tests/contract/engine/test_outcomes.py::test_the_wait_grows_to_an_hour_at_most",),
)  # fmt: skip
BUGS_MIN: dict[Layer, int] = {"model": 4, "kill": 4, "power": 2, "faults": 3}
"""What each of these layers must catch at least."""


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gate, Ran]]:
    with Gate(tmp_path_factory.mktemp("mutation")) as gate:
        yield gate, gate.run_clean(BACKOFF.tests)


def test_a_bug_is_caught_by_the_test_that_fails_with_it(gate: tuple[Gate, Ran]) -> None:
    verdict = gate[0].judge(BACKOFF, gate[1])
    assert (verdict.why_not, verdict.caught_by) == ("", f"{BACKOFF.tests[0]}[sqlite]")


def test_a_change_that_no_test_sees_survives(gate: tuple[Gate, Ran]) -> None:
    harmless = replace(BACKOFF, new="self.first_s * 2.0 ** min(failures, 31)")
    assert gate[0].judge(harmless, gate[1]).why_not.startswith("its tests passed")


@pytest.mark.parametrize("broken", ["no_such_name", ")"], ids=["a wrong name", "no Python"])
def test_code_that_cannot_run_is_not_a_bug_that_was_caught(gate: tuple[Gate, Ran], broken: str) -> None:
    verdict = gate[0].judge(replace(BACKOFF, new=broken), gate[1])
    assert verdict.why_not
    assert verdict.caught_by == ""


def test_a_bug_whose_tests_fail_or_do_not_run_without_it_proves_nothing(gate: tuple[Gate, Ran]) -> None:
    missing = replace(BACKOFF, tests=("tests/contract/engine/test_outcomes.py::test_outcomes_are_values",))
    red = replace(gate[1], failed={BACKOFF.tests[0]: ["AssertionError"]})
    for bug, clean in ((missing, gate[1]), (BACKOFF, red)):
        assert gate[0].judge(bug, clean).why_not.startswith("without the bug")


def test_another_everkept_than_the_copy_is_refused(tmp_path: Path) -> None:
    """The first run proves it too: without the copy on the path the installed package would be found."""
    with Gate(tmp_path) as elsewhere:
        (tmp_path / "whole" / "everkept").rename(tmp_path / "whole" / "moved")
        with pytest.raises(Vacuous, match="and not the copy"):
            elsewhere.run_clean(BACKOFF.tests)


# ---- the list


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_package(PACKAGE, tmp_path_factory.mktemp("copy"))


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_text_of_every_bug_stands_in_the_code_once(bug: Planted, copy: Path) -> None:
    """Quick, and the first thing that a change of the code breaks."""
    file = copy / "everkept" / bug.file
    before = file.read_text("utf-8")
    plant(bug, copy)
    assert file.read_text("utf-8") != before
    file.write_text(before, encoding="utf-8")


@pytest.mark.parametrize("old", ["there is no such text", "return"])
def test_text_that_is_not_there_exactly_once_is_refused(old: str, copy: Path) -> None:
    with pytest.raises(Vacuous, match="not once"):
        plant(replace(BACKOFF, old=old), copy)


def test_every_guarantee_has_a_bug_and_every_layer_catches_some() -> None:
    assert {f"G{n}" for n in range(1, 17)} <= {bug.guarantee for bug in PLANTED}
    caught = Counter(bug.layer for bug in PLANTED)
    assert {layer: n for layer, n in BUGS_MIN.items() if caught[layer] < n} == {}


def test_each_bug_names_tests_of_its_layer_and_no_two_share_a_name() -> None:
    assert max(Counter(bug.name for bug in PLANTED).values()) == 1
    for bug in PLANTED:
        assert bug.tests, f"{bug.name} names no test"
        assert all(test.startswith(LAYERS[bug.layer]) for test in bug.tests), bug.name
