"""Every refused finish is counted, also where the store cannot be written at that moment."""

from __future__ import annotations

from typing import Any

import pytest
from tests.factories import World, kind_of

from everkept.errors import StoreUnavailable
from everkept.store.leases import refuse_finish
from everkept.work import runner


def test_a_refused_finish_that_could_not_be_counted_is_counted_at_the_next_look(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database was restarted while a frozen worker's finish came: 1 was logged, and 0 were counted for ever."""
    away = ["the database"]

    def count_once_it_is_back(conn: Any) -> None:
        if away:
            away.pop()
            raise StoreUnavailable("the database is restarted")
        refuse_finish(conn)

    async def outlive(args: Any, ctx: Any) -> Any:
        world.tick(700)
        return await ctx.finish(lambda _conn: None)

    monkeypatch.setattr(runner, "refuse_finish", count_once_it_is_back)
    world.runner(kinds=kind_of(outlive))
    world.schedule("a")
    world.step()
    assert world.counter("refused_finishes") == 0
    world.step()
    assert world.counter("refused_finishes") == 1
