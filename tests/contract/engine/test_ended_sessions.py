"""A session that the server ended is one that could not look: said as such, and the next one is another."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

import pytest
from sqlalchemy import text
from tests.factories import World

from everkept.errors import StoreUnavailable
from everkept.store import postgres
from everkept.store.connection import Connection

pytestmark = pytest.mark.only_on("postgresql", reason="a file has no sessions that somebody else ends")
_COUNT = text("select count(*) from projects")
_NAME = text("insert into workspaces(name, created_at) values(:name, 0)")


@pytest.mark.parametrize(("way", "at_once"), [("read_now", False), ("write_now", False), ("write_now", True)])
def test_a_process_that_stood_still_in_a_transaction_is_told_so_and_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch, way: str, at_once: bool
) -> None:
    """As one that was frozen: what it had begun is gone with its locks, and no error of its own; also where it stood
    still while it wrote several things at once."""
    do: Any = getattr(world.store, way)
    patient = postgres._SET
    monkeypatch.setattr(postgres, "_SET", (*patient, "set local idle_in_transaction_session_timeout = '50ms'"))

    def stand_still(conn: Connection) -> Any:
        with conn.at_once() if at_once else nullcontext():
            if at_once:
                conn.put(_NAME, {"name": "a"})
                conn.scalar(_COUNT)
                conn.put(_NAME, {"name": "b"})
            time.sleep(0.5)
            return conn.scalar(_COUNT)

    with pytest.raises(StoreUnavailable):
        do(stand_still)
    monkeypatch.setattr(postgres, "_SET", patient)
    assert do(lambda conn: conn.scalar(_COUNT)) == 1
