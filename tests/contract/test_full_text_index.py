"""The full-text index keeps no word of what was destroyed (G10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.factories import World, open_store

from everkept.domain.ids import ProjectId
from everkept.ports.clock import VirtualClock
from everkept.store.search import delete_passages

LONG = "so it goes on and on " * 400
"""The places of one word fill more than a page of the index."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    clock = VirtualClock()
    store = open_store(tmp_path / "everkept.db", clock)
    world = World(store, tmp_path / "home", clock)
    yield world
    world.close()
    store.close()


def test_index_keeps_no_word_of_a_long_turn_whose_turn_before_was_destroyed_first(world: World) -> None:
    world.add("chat", "Hello.")
    world.add("chat", LONG)
    for passage in [row[0] for row in world.rows("select id from passages order by id")]:
        world.write(delete_passages, ProjectId(world.project.id), [passage])
    assert world.rows("select term from passage_terms") == []
    assert world.rows("select * from pragma_integrity_check") == [("ok",)]


def test_long_turn_is_still_found_by_its_own_words_once_the_turn_before_is_gone(world: World) -> None:
    world.add("chat", "Zanzibar.")
    world.add("chat", LONG)
    before, after = [row[0] for row in world.rows("select id from passages order by id")]
    world.write(delete_passages, ProjectId(world.project.id), [before])
    assert world.rows("select rowid from passage_text where passage_text match 'goe'") == [(after,)]
    assert world.rows("select rowid from passage_text where passage_text match 'zanzibar'") == []
