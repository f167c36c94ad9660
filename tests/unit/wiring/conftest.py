"""A person's folder, and a Python that stays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from everkept.wiring.agent import Place

PYTHON = "/opt/everkept/bin/python"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    user = tmp_path / "user"
    user.mkdir()
    return Place(home=user / ".everkept", user=user, env={})


def tree(folder: Path) -> Mapping[str, bytes]:
    """Every file below, but Everkept's own."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".everkept" not in path.parts
    }
