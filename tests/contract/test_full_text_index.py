"""The full-text index keeps no word of what was destroyed (G10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.factories import World, open_store

from everkept.domain.ids import ProjectId
from everkept.domain.scope import Scope
from everkept.ports.clock import VirtualClock
from everkept.store.search import delete_passages, find_postings

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


@pytest.mark.only_on("sqlite", reason="it looks into the index of FTS5; PostgreSQL's is below")
def test_index_keeps_no_word_of_a_long_turn_whose_turn_before_was_destroyed_first(world: World) -> None:
    world.add("chat", "Hello.")
    world.add("chat", LONG)
    for passage in [row[0] for row in world.rows("select id from passages order by id")]:
        world.write(delete_passages, ProjectId(world.project.id), [passage])
    assert world.rows("select term from passage_terms") == []
    assert world.rows("select * from pragma_integrity_check") == [("ok",)]


@pytest.mark.only_on("postgresql", reason="its index is three tables; SQLite's is above")
def test_tables_of_the_index_are_empty_once_all_its_passages_were_destroyed(world: World) -> None:
    world.add("chat", "Hello.")
    world.add("chat", LONG)
    ids = [row[0] for row in world.rows("select id from passages order by id")]
    world.write(delete_passages, ProjectId(world.project.id), ids[:1])
    assert world.value("select count(*) from passage_index") == 1
    assert world.rows("select term from passage_terms where term = 'hello' and passages > 0") == []
    world.write(delete_passages, ProjectId(world.project.id), ids[1:])
    for table in ("passage_index", "passage_text"):
        assert world.value(f"select count(*) from {table}") == 0
    assert world.rows("select term from passage_terms where passages > 0") == []
    assert world.rows("select passages, terms from passage_totals") == [(0, 0)]


def test_long_turn_is_still_found_by_its_own_words_once_the_turn_before_is_gone(world: World) -> None:
    world.add("chat", "Zanzibar.")
    world.add("chat", LONG)
    before, after = [row[0] for row in world.rows("select id from passages order by id")]
    world.write(delete_passages, ProjectId(world.project.id), [before])
    assert found(world, "goe") == [after]
    assert found(world, "zanzibar") == []


def found(world: World, word: str) -> list[int]:
    scope = Scope(project=ProjectId(world.project.id))
    postings = world.read(find_postings, scope, word, ("turn",))
    return [int(id_) for _, some in postings for id_ in some.split(",")]
