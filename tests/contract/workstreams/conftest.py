"""A line of work at a desk whose clock the tests move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stubs.agent_desk import a_desk
from tests.stubs.line_of_work import LineOfWork


@pytest.fixture
def line(tmp_path: Path) -> Iterator[LineOfWork]:
    with a_desk(tmp_path / "home") as desk:
        yield LineOfWork(desk)
