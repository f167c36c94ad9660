"""A project in another workspace is found by its workspace and name, and goes on as it was (G12, G15)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.merging import Merging
from tests.contract.reviewing import AGE_S, INTERVAL_S
from tests.factories import SECRET

from everkept import AsyncMemory
from everkept.errors import Conflict, InvalidInput, NotFound
from everkept.store.aliases import find_by_signs, resolve
from everkept.store.merge import begin_merge
from everkept.store.projects import (
    add_key,
    ensure_project,
    find_key,
    find_project,
    list_projects,
    move_to_workspace,
    update_project,
)
from everkept.store.sessions import project_of_session


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Merging]:
    made = Merging(tmp_path)
    yield made
    made.shut()


def names(world: Merging) -> list[str]:
    return [project.name for project in world.read(list_projects)]


def test_a_workspace_is_in_no_name_until_a_second_one_exists(world: Merging) -> None:
    assert names(world) == ["default", "old"]
    moved = world.write(move_to_workspace, "old", "research")
    assert (moved.id, moved.name) == (world.old.id, "research/old")
    assert names(world) == ["default", "research/old"]
    assert world.named("research/old").id == world.old.id
    assert world.read(find_project, "old") is None


def test_keys_signs_and_sessions_of_a_moved_project_lead_to_it(world: Merging) -> None:
    world.write(add_key, world.old.id, "laptop", b"hash")
    with world.in_old():
        world.work_on("one")
    world.write(resolve, [("remote", "h/old")], "old", SECRET)
    remote = world.read(find_by_signs, [("remote", "h/old")])
    assert remote is not None
    world.write(move_to_workspace, "old", "research")
    assert world.read(find_key, b"hash") == "research/old"
    assert world.read(project_of_session, "claude-code", "one") == "research/old"
    again = world.write(resolve, [("remote", "h/old")], "another", SECRET)
    assert again.project.id == remote.project.id == world.old.id


def test_a_review_in_flight_and_the_watermark_go_on_after_a_move(world: Merging) -> None:
    with world.in_old():
        world.digested("one")
        world.live(AGE_S + INTERVAL_S)
        world.digested("two")
        world.tick(AGE_S + INTERVAL_S)
        world.step()
        assert world.states() == {1: "reviewed", 2: "reviewing"}
        world.promote()
        assert "review_session" in [lease.kind for lease in world.claim(free=4)]
        world.write(move_to_workspace, "old", "research")
        world.live(700 + AGE_S + INTERVAL_S)
        assert (world.states(), world.watermark()) == ({1: "reviewed", 2: "reviewed"}, 2)
    assert world.value("select count(*) from reviews where completed_at is not null") == 2


def test_a_moved_project_keeps_its_workspace_when_it_is_renamed_and_comes_back(world: Merging) -> None:
    world.write(move_to_workspace, "old", "research")
    renamed = world.write(update_project, "research/old", "young", None)
    assert renamed.name == "research/young"
    assert world.write(move_to_workspace, "research/young", "default").name == "young"


def test_a_project_does_not_move_where_its_name_would_be_anothers(world: Merging) -> None:
    with pytest.raises(Conflict, match="stays where it is"):
        world.write(move_to_workspace, "default", "research")
    with pytest.raises(InvalidInput, match="no slash"):
        world.write(move_to_workspace, "old", "a/b")
    with pytest.raises(NotFound):
        world.write(move_to_workspace, "nobody", "research")
    world.write(ensure_project, "research/old", SECRET)
    with pytest.raises(Conflict, match="there is a project 'research/old' already"):
        world.write(move_to_workspace, "old", "research")
    world.begin()
    with pytest.raises(Conflict):
        world.write(move_to_workspace, "old", "science")


def test_projects_of_two_workspaces_are_not_merged(world: Merging) -> None:
    world.write(move_to_workspace, "old", "research")
    with pytest.raises(Conflict, match="workspace"):
        world.write(begin_merge, "research/old", "default")


def test_a_moved_project_is_opened_by_its_name_with_its_workspace(tmp_path: Path) -> None:
    async def go() -> None:
        async with AsyncMemory.open(tmp_path, worker=False) as memory:
            await memory.create_project("old")
            async with AsyncMemory.open(tmp_path, project="old", worker=False) as old:
                await (await old.thread("chat", subject="ana")).add_many([("user", "Blue")], key="k")
            assert (await memory.move_project("old", workspace="research")).name == "research/old"
        async with AsyncMemory.open(tmp_path, project="research/old", worker=False) as moved:
            again = await (await moved.thread("chat")).add_many([("user", "Blue")], key="k")
            assert again.replayed

    asyncio.run(go())
