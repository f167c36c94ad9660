"""One run of all tests of a module's bugs over an unchanged copy comes before the bugs are planted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.mutation.bug import Planted
from tests.mutation.gate import Gate, Verdict


@pytest.fixture(scope="module")
def judge(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Planted], Verdict]]:
    """Plants one of the module's `BUGS` and says whether its tests caught it."""
    with Gate(tmp_path_factory.mktemp("mutation")) as gate:
        clean = gate.run_clean([test for bug in request.module.BUGS for test in bug.tests])
        yield lambda bug: gate.judge(bug, clean)
