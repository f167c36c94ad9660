"""Whose a change is after its project was merged: whoever asks for one subject is told of it, and its erase reaches it
(G10, G11)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.merging import Merging, check

from everkept.domain.erase import SubjectTarget
from everkept.store.changes import Only, acknowledge, read_changes
from everkept.store.erase import erase
from everkept.store.merge import merge_chunk
from everkept.store.merge_changes import LOOKED_THROUGH_PER_CHUNK
from everkept.store.projects import find_subject


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Merging]:
    made = Merging(tmp_path)
    yield made
    made.shut()


def told_of(world: Merging, subject: str) -> list[str | None]:
    """The threads in which this subject said something, as a follower of it hears of them."""
    number = world.read(find_subject, world.here.id, subject)
    only = Only(kinds=["messages.appended"], subject=number)
    rows, _ = world.read(read_changes, world.here.id, 0, 100, only)
    assert {row[2] for row in rows} <= {subject}
    return [row[3] for row in rows]


def test_what_a_merge_brings_is_told_to_whoever_asks_for_its_subject(world: Merging) -> None:
    """All had heard it in the source, so that it comes before its subject is joined to the target's."""
    world.add("here", "The harbour opens at nine")
    with world.in_old():
        world.add("there", "The ferry leaves at ten")
        world.write(acknowledge, world.old.id, "mirror", 1)
    world.merge()
    assert told_of(world, "ana") == ["here", "there"]
    check(world)


def test_it_is_told_from_the_carry_on_and_not_only_at_the_end(world: Merging) -> None:
    """A follower that passes it in between never comes back to it."""
    world.add("here", "The harbour opens at nine")
    with world.in_old():
        world.add("there", "The ferry leaves at ten")
    merge = world.begin()
    (lease,) = [lease for lease in world.claim(free=1) if lease.kind == "merge_projects"]
    assert world.write(merge_chunk, lease, merge.id)
    assert world.value("select count(*) from subjects where merged_into is not null") == 0
    assert told_of(world, "ana")[0] == "here"
    assert len(told_of(world, "ana")) == 2


def test_a_subject_that_the_target_names_in_between_has_what_came_before_at_once(world: Merging) -> None:
    """A follower that begins then, and looks before the two are joined, passes nothing by."""
    with world.in_old():
        world.add("there", "The ferry leaves at ten")
    merge = world.begin()
    (lease,) = [lease for lease in world.claim(free=1) if lease.kind == "merge_projects"]
    assert world.write(merge_chunk, lease, merge.id)
    world.add("here", "The harbour opens at nine", subject="ben")
    assert told_of(world, "ben") == ["here"]
    world.add("here too", "The harbour opens at nine")
    assert sorted(told_of(world, "ana"), key=str) == ["here too", "there"]


@pytest.mark.parametrize("others", [0, LOOKED_THROUGH_PER_CHUNK + 1], ids=["a short outbox", "a long outbox"])
def test_a_subject_that_the_target_named_only_after_the_carry_has_what_came_before(
    world: Merging, others: int
) -> None:  # fmt: skip
    with world.in_old():
        world.add("there", "The ferry leaves at ten")
    world.do(
        "insert into changes(project_id, seq, kind, ref, at) with recursive n(i) as (select 1 union all select i + 1"
        " from n where i < ?) select ?, i, 'page.written', 'pag_1', 0 from n where ? > 0",
        others, world.here.id, others,
    )  # fmt: skip
    world.do("update projects set change_seq = ? where id = ?", others, world.here.id)
    merge = world.begin()
    (lease,) = [lease for lease in world.claim(free=1) if lease.kind == "merge_projects"]
    assert world.write(merge_chunk, lease, merge.id)
    world.add("here", "The harbour opens at nine")
    while world.write(merge_chunk, lease, merge.id):
        pass
    world.run_until_idle()
    assert sorted(told_of(world, "ana"), key=str) == ["here", "there"]


def test_the_erase_of_a_subject_takes_the_names_of_threads_that_a_merge_brought(world: Merging) -> None:
    world.add("here", "The harbour opens at nine")
    with world.in_old():
        world.add("my-secret-thread", "The ferry leaves at ten")
    world.merge()
    number = world.read(find_subject, world.here.id, "ana")
    assert number is not None
    world.write(erase, world.here.id, SubjectTarget(subject=number))
    world.run_until_idle()
    assert world.value("select count(*) from changes where ref = 'my-secret-thread'") == 0
    assert world.value("select sum(residue) from erasures") == 0
