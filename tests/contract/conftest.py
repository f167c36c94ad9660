"""Contracts that a test names files for, on each database."""

from __future__ import annotations

import pytest
from tests.postgres import InPlaceOfFiles


@pytest.fixture(params=["sqlite", "postgresql"])
def each_database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """For `usefixtures`: each test once a database; one that is marked `only_on` on that alone."""
    if (marked := request.node.get_closest_marker("only_on")) is not None and marked.args[0] != request.param:
        pytest.skip(marked.kwargs["reason"])
    if request.param == "postgresql":
        monkeypatch.setattr("everkept.store.store.SqliteDatabase", InPlaceOfFiles())
