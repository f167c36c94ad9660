"""The contracts hold on each database: a test that cannot be asked of one of them says why, and none is left out."""

from __future__ import annotations

import pytest
from tests.databases import UrlOf
from tests.databases import each_database as each_database  # a fixture


@pytest.fixture(autouse=True)
def _on_each(each_database: UrlOf) -> None:
    """All of them."""
