"""Merging two projects: what was in either is in the target, once, under one name or visibly under two (G12, G2)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.merging import OLD_SECRET, Merging, check
from tests.contract.test_sessions import call, prompt
from tests.factories import SECRET

from everkept import AsyncMemory
from everkept.domain.erase import StreamTarget
from everkept.errors import Conflict, NotFound
from everkept.store.aliases import find_by_signs, resolve
from everkept.store.erase import erase
from everkept.store.merge import begin_merge
from everkept.store.merging import last_merge
from everkept.store.pages import find_page
from everkept.store.projects import (
    add_key,
    ensure_project,
    find_key,
    find_project,
    list_projects,
    names_of,
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Merging]:
    made = Merging(tmp_path)
    yield made
    made.shut()


# ---- names


def test_the_sources_name_signs_and_keys_mean_the_target(world: Merging) -> None:
    world.write(add_key, world.old.id, "laptop", b"hash")
    world.write(resolve, [("remote", "h/a")], "old", SECRET)
    with world.in_old():
        world.write(resolve, [("remote", "h/b"), ("path", "/code/b")], "old", SECRET)
    world.begin()
    for name in ("old", "default"):
        found = world.read(find_project, name)
        assert found is not None
        assert (found.id, found.name) == (world.here.id, "default")
    assert world.named("old").found_as == "old"
    assert world.named("default").former_secrets == (OLD_SECRET,)
    assert [p.name for p in world.read(list_projects)] == ["default"]
    assert world.read(find_key, b"hash") == "old"
    assert world.read(names_of, "old") == world.read(names_of, "default") == {"old", "default"}
    assert world.write(ensure_project, "old", bytes(32)).id == world.here.id
    for sign in (("remote", "h/a"), ("remote", "h/b")):
        found_by = world.read(find_by_signs, [sign])
        assert found_by is not None
        assert found_by.project.id == world.here.id


def test_a_merge_into_what_was_merged_takes_the_earlier_name_along(world: Merging) -> None:
    with world.in_old():
        world.add("chat", "The harbour opens at nine", key="k")
    world.write(ensure_project, "older", bytes(range(64, 96)))
    world.write(begin_merge, "older", "old")
    world.run_until_idle()
    world.merge()
    assert world.named("older").id == world.here.id
    assert len(world.named("default").former_secrets) == 2
    check(world)


@pytest.mark.parametrize(
    ("source", "into", "why"),
    [("default", "old", "stays"), ("old", "old", "itself")],
)
def test_what_cannot_be_merged_is_refused(world: Merging, source: str, into: str, why: str) -> None:
    with pytest.raises(Conflict, match=why):
        world.write(begin_merge, source, into)
    with pytest.raises(NotFound):
        world.write(begin_merge, "nobody", "default")


def test_a_project_that_was_merged_is_not_merged_again_nor_renamed(world: Merging) -> None:
    world.merge()
    world.write(ensure_project, "third", bytes(32))
    with pytest.raises(Conflict, match="merged into 'default' already"):
        world.write(begin_merge, "old", "third")


def test_nothing_is_erased_while_a_merge_runs_and_nothing_merged_while_an_erase_does(world: Merging) -> None:
    stream = world.add("chat", "The harbour opens at nine")[0].stream
    world.begin()
    with pytest.raises(Conflict, match="being merged"):
        world.write(erase, world.here.id, StreamTarget(stream=stream))
    world.run_until_idle()
    world.write(erase, world.here.id, StreamTarget(stream=stream))
    world.write(ensure_project, "third", bytes(32))
    with pytest.raises(Conflict, match="being erased"):
        world.write(begin_merge, "third", "default")


# ---- everything is there, once


def test_whatever_was_found_in_either_is_found_in_the_target(world: Merging) -> None:
    world.add("here", "The harbour opens at nine", "The boat is blue", subject="ana")
    with world.in_old():
        world.add("there", "The harbour closes at five", "The boat was sold", subject="ana")
        world.add("else", "The harbour is far", subject="ben")
        world.know("ben", "lives in", "Lisbon", entity="Ben")
        world.page("harbour", "How the harbour works")
        world.end("there")
        world.run_until_idle()
    questions = ("harbour", "boat", "Lisbon")
    before = {}
    for question in questions:
        with world.in_old():
            there = world.recalled(question)
        before[question] = sorted(world.recalled(question) + there)
    assert all(before.values())
    with world.in_old():
        bens = world.recalled("harbour", subject="ben")
    counted = "select (select count(*) from events), (select count(*) from facts), (select count(*) from pages)"
    counts = world.rows(counted)
    world.merge()
    assert {q: world.recalled(q) for q in questions} == before
    assert world.recalled("harbour", subject="ben") == bens
    assert world.rows(counted) == counts
    check(world)


def test_a_subject_of_one_name_is_one_and_what_was_said_of_it_is_settled_as_a_set(world: Merging) -> None:
    with world.in_old():
        first = world.know("ana", "lives in", "Berlin")
    world.tick(60)
    second = world.know("ana", "lives in", "Lisbon")
    with world.in_old():
        world.know("ana", "owns", "a boat")
    world.merge()
    states = world.rows("select id, closed_by from facts order by id")
    assert states == [(first, second), (second, None), (second + 1, None)]
    assert world.value("select count(*) from entities where norm = 'ana'") == 1
    assert world.value("select count(distinct subject_id) from facts") == 1
    assert world.recalled("boat", subject="ana") == world.recalled("boat") != []
    check(world)


def test_threads_of_one_name_are_kept_apart_and_the_merge_says_how_they_are_called(world: Merging) -> None:
    here = world.add("chat", "Blue")[0].stream
    with world.in_old():
        there = world.add("chat", "Red")[0].stream
    world.merge()
    assert world.stream("chat") == here
    assert world.stream("chat~old") == there
    merge = world.read(last_merge, world.here.id)
    assert merge is not None
    assert merge.renamed == (("thread", "chat", "chat~old"),)
    check(world)


def test_a_message_sent_again_after_the_merge_is_a_replay(world: Merging) -> None:
    with world.in_old():
        first = world.add("chat", "Blue", key="turn-1")[0]
    world.merge()
    again = world.send("chat", "Blue", key="turn-1")[0]
    assert (again.stream, again.seq, again.replayed) == (first.stream, first.seq, True)
    with pytest.raises(Conflict, match="used before with another payload"):
        world.send("chat", "Red", key="turn-1")
    assert world.value("select count(*) from events") == 1


def test_an_event_told_again_after_the_merge_is_known(world: Merging) -> None:
    events = (prompt("one", "Mend the login", id_="p1"), call("one", "c1", "make", outcome="ok", exit_code=0))
    without_id = prompt("one", "And the docs", id_=None)
    with world.in_old():
        stream = world.tell("one", *events, without_id)
    world.merge()
    for _ in range(2):
        answer = world.tell_again("one", *events, without_id)
        assert (answer.stream, answer.stored, answer.revised, answer.known) == (stream, 0, 0, 3)
    resumed = world.tell_again("another", *events)
    assert (resumed.stored, resumed.elsewhere) == (0, {stream})
    more = world.tell_again("one", prompt("one", "And the tests", id_="p2"))
    assert (more.stream, more.stored) == (stream, 1)
    check(world)


def test_a_session_that_was_erased_before_the_merge_stays_out(world: Merging) -> None:
    events = (prompt("one", "Mend the login", id_="p1"), call("one", "c1", "make", outcome="ok", exit_code=0))
    with world.in_old():
        stream = world.tell("one", *events)
    world.write(erase, world.old.id, StreamTarget(stream=stream))
    world.run_until_idle()
    world.merge()
    assert world.tell_again("one", *events).stored == 0
    check(world)


def test_a_memory_that_was_open_before_the_merge_knows_what_was_said_in_the_source(tmp_path: Path) -> None:
    async def go() -> None:
        async with AsyncMemory.open(tmp_path) as memory:
            await memory.create_project("old")
            async with AsyncMemory.open(tmp_path, project="old", worker=False) as old:
                fact = await old.remember("Ana lives in Lisbon", subject="ana", key="k")
                said = await (await old.thread("chat", subject="ana")).add_many([("user", "Blue")], key="turn-1")
            await memory.merge_project("old", into="default")
            assert await memory.settle(timeout_s=30)
            found = await memory.find_merge("old")
            assert found is not None
            assert found.state == "done"
            assert (await memory.remember("Ana lives in Lisbon", subject="ana", key="k")).id == fact.id
            with pytest.raises(Conflict):
                await memory.remember("Ana lives in Berlin", subject="ana", key="k")
            again = await (await memory.thread("chat")).add_many([("user", "Blue")], key="turn-1")
            assert again.replayed
            assert [r.event_id for r in again.receipts] == [r.event_id for r in said.receipts]

    asyncio.run(go())


def test_pages_of_one_slug_are_both_kept(world: Merging) -> None:
    world.page("setup", "Run make")
    world.page("same", "Word for word")
    world.page("focus", "The harbour", kind="slot")
    world.tick(60)
    with world.in_old():
        world.page("setup", "Run pnpm")
        world.page("same", "Word for word")
        world.page("focus", "The boat", kind="slot")
    world.merge()
    body = {row.slug: (row.body, row.superseded_by is not None) for slug in (
        "setup", "setup-old", "same", "same-old", "focus", "focus-old")
        if (row := world.read(find_page, world.here.id, slug)) is not None}  # fmt: skip
    assert body == {
        "setup": ("Run make", False), "setup-old": ("Run pnpm", False),
        "same": ("Word for word", False), "same-old": ("Word for word", True),
        "focus": ("The harbour", True), "focus-old": ("The boat", False),
    }  # fmt: skip
    check(world)
