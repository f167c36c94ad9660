"""A project that moves to another workspace takes its watermark, reviews, jobs and aliases along (G12, G15)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.reviewing import AGE_S, INTERVAL_S, Reviewing
from tests.factories import SECRET

from everkept.errors import Conflict
from everkept.store.aliases import aliases_of, resolve
from everkept.store.changes import lease_consumer
from everkept.store.projects import add_key, ensure_project, ensure_workspace, find_key, find_project, move_project
from everkept.store.reviews import claim_review


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Reviewing]:
    made = Reviewing(tmp_path)
    made.digested("one")
    made.live(AGE_S + INTERVAL_S)
    yield made
    made.shut()


def test_a_moved_project_goes_on_with_its_reviews_where_it_was(world: Reviewing) -> None:
    project = world.project.id
    under_review = world.digested("two")
    waiting = world.digested("three")
    assert world.write(claim_review, project, under_review) is not None
    world.write(resolve, [("remote", "h/a")], "default", SECRET)
    world.write(lease_consumer, project, "mine", "me", 60.0)
    before = world.rows("select kind, key, state, project_id from jobs order by id")
    workspace = world.write(ensure_workspace, "second").id
    world.write(move_project, project, workspace, "default")
    assert world.rows("select distinct workspace_id from reviews") == [(workspace,)]
    assert world.rows("select kind, key, state, project_id from jobs order by id") == before
    assert world.read(aliases_of, project) == [("remote", "h/a")]
    assert world.rows("select project_id, name from consumers") == [(project, "mine")]
    assert (world.states(), world.watermark()) == ({1: "reviewed", 2: "reviewing", 3: "waiting"}, 1)
    world.live(AGE_S + INTERVAL_S)
    assert (world.states(), world.watermark()) == ({1: "reviewed", 2: "reviewed", 3: "reviewed"}, 3)
    assert world.value("select count(*) from reviews where stream_id = ?", waiting) == 1
    if world.store.path is not None:  # a server looks at references itself
        assert world.value("select count(*) from pragma_foreign_key_check") == 0


def test_a_moved_project_is_not_mistaken_for_one_of_its_name_that_takes_its_place(world: Reviewing) -> None:
    world.write(add_key, world.project.id, "laptop", b"hash")
    world.write(move_project, world.project.id, world.write(ensure_workspace, "second").id, "default")
    other = world.write(ensure_project, "default", SECRET)
    assert other.id != world.project.id
    assert world.read(find_key, b"hash") == "second/default"
    assert world.value("select watermark from review_states where project_id = ?", other.id) == 0


def test_a_project_does_not_move_where_its_name_is_taken(world: Reviewing) -> None:
    workspace = world.write(ensure_workspace, "second").id
    world.do(
        "insert into projects(workspace_id, name, secret, created_at) values(?, 'default', ?, 1)", workspace, b"\x00"
    )
    with pytest.raises(Conflict, match="has a project 'default' already"):
        world.write(move_project, world.project.id, workspace, "default")
    assert world.read(find_project, "default") == world.project
