"""What people changed, found by comparing trees."""

from __future__ import annotations

from typing import Any

import pytest

from everkept.deliver.disk_edits import Edits, Trees, find_edits, too_many

PAGES = {"note/a.md": "a1", "note/b.md": "b1", "README.md": "r1"}


def found(**changed: dict[str, str]) -> Edits:
    alike: dict[str, Any] = dict.fromkeys(("common", "projected", "written", "branch", "disk"), PAGES)
    return find_edits(Trees(**(alike | changed)))


def without(path: str, **more: str) -> dict[str, str]:
    return {p: blob for p, blob in {**PAGES, **more}.items() if p != path}


def told(edits: Edits) -> list[tuple[str, str, str]]:
    return [(e.where, e.path, e.blob) for e in edits.edits]


def test_where_all_is_alike_there_is_nothing() -> None:
    edits = found()
    assert (edits.edits, edits.vanished, edits.undone, edits.files) == ([], {}, [], 2)


def test_a_commit_and_then_an_edit_of_one_file_are_two_edits_in_order() -> None:
    edits = found(branch=PAGES | {"note/a.md": "a2"}, disk=PAGES | {"note/a.md": "a3"})
    assert told(edits) == [("branch", "note/a.md", "a2"), ("disk", "note/a.md", "a3")]
    assert edits.edits[1].of == {"a1", "a2"}


def test_a_committed_edit_that_stands_on_disk_too_is_one() -> None:
    changed = PAGES | {"note/a.md": "a2"}
    assert told(found(branch=changed, disk=changed)) == [("branch", "note/a.md", "a2")]


def test_a_file_that_was_not_written_yet_is_no_edit() -> None:
    newer = PAGES | {"note/a.md": "a2"}
    edits = found(common=newer, projected=newer, branch=newer)
    assert (edits.edits, edits.vanished) == ([], {})


def test_a_page_that_was_never_on_disk_did_not_vanish() -> None:
    newer = PAGES | {"note/new.md": "n1"}
    assert found(common=newer, projected=newer, branch=newer).vanished == {}


def test_a_file_that_is_gone_from_disk_has_vanished_whether_committed_or_not() -> None:
    gone = without("note/a.md")
    assert found(disk=gone).vanished == {"note/a.md": "a1"}
    assert found(disk=gone, branch=gone).vanished == {"note/a.md": "a1"}


def test_a_page_that_only_the_branch_lost_is_projected_again() -> None:
    edits = found(branch=without("note/a.md"))
    assert (edits.vanished, edits.undone) == ({}, ["note/a.md"])


def test_a_branch_set_back_is_no_edit() -> None:
    newer = PAGES | {"note/a.md": "a2"}
    edits = found(projected=newer, written=newer)
    assert (edits.edits, edits.undone) == ([], ["note/a.md"])


def test_a_file_in_the_folder_of_another_kind_is_a_move() -> None:
    edits = found(disk=without("note/a.md", **{"rule/a.md": "a1"}))
    assert [(e.path, e.moved_from, e.of) for e in edits.edits] == [("rule/a.md", "note/a.md", frozenset({"a1"}))]
    assert edits.vanished == {}


def test_files_that_are_no_pages_are_nobodys_business() -> None:
    edits = found(disk=without("README.md"), branch=PAGES | {"README.md": "r2", "docs/x.md": "x"})
    assert (edits.edits, edits.vanished, edits.undone) == ([], {}, [])


@pytest.mark.parametrize(
    ("vanished", "files", "expected"), [(5, 5, False), (6, 100, True), (6, 120, False), (7, 139, True), (0, 0, False)]
)
def test_more_than_five_and_five_per_cent_is_too_many(vanished: int, files: int, expected: bool) -> None:
    assert too_many(vanished, files) is expected
