"""No contract is left out on a database without a reason: opting out is written down, opting in is not needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.factories import open_store
from tests.stubs.agent_desk import a_desk

from everkept.ports.clock import VirtualClock
from everkept.store.sqlite_database import SqliteDatabase
from everkept.store.store import Store

HERE = Path(__file__).parent


@pytest.fixture
def contracts(request: pytest.FixtureRequest) -> list[pytest.Function]:
    """Those of this run: all of them where the whole folder is run."""
    return [i for i in request.session.items if isinstance(i, pytest.Function) and i.path.is_relative_to(HERE)]


@pytest.mark.only_on("sqlite", reason="it looks at tests")
def test_every_contract_is_held_against_each_database(contracts: list[pytest.Function]) -> None:
    assert [each.nodeid for each in contracts if "each_database" not in each.fixturenames] == []


@pytest.mark.only_on("sqlite", reason="it looks at tests")
def test_whoever_opts_out_of_a_database_says_why(contracts: list[pytest.Function]) -> None:
    def wrong() -> Iterator[str]:
        for each in contracts:
            for mark in each.iter_markers("only_on"):
                if mark.args not in (("sqlite",), ("postgresql",)) or len(mark.kwargs.get("reason", "").split()) < 3:
                    yield each.nodeid

    assert contracts
    assert list(wrong()) == []


@pytest.mark.only_on("postgresql", reason="a file is what it names")
def test_what_names_a_file_is_opened_on_the_server_of_the_run(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a.db", VirtualClock())
    assert store.database.dialect.name == "postgresql"
    store.close()
    with a_desk(tmp_path / "home") as desk:
        assert desk.app.parts.store.database.dialect.name == "postgresql"
    with pytest.raises(AssertionError, match="is said to run on PostgreSQL"):
        Store(SqliteDatabase(tmp_path / "b.db"), threads=False).open()
    assert not (tmp_path / "a.db").exists()
