"""The disk that remembers: what lasts, what may not, and that a torn write harms nothing beside itself."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from everkept.prove.power_disk import SECTOR_BYTES, Disk, Image, Replay

SEEDS = range(200)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def cut(disk: Disk, seed: int) -> Image:
    replay = Replay(disk)
    replay.go_to(disk.moment)
    return replay.cut(random.Random(seed))


def every_cut(disk: Disk) -> list[Image]:
    return [cut(disk, seed) for seed in SEEDS]


def synced_file(disk: Disk, name: str, content: bytes) -> int:
    node = disk.create(name)
    disk.write(node, 0, content)
    disk.sync(node)
    disk.sync_folder("")
    return node


def test_what_was_synced_is_there_after_every_cut(disk: Disk) -> None:
    synced_file(disk, "a", b"x" * 5000)
    assert every_cut(disk) == [{"a": b"x" * 5000}] * len(SEEDS)


def test_name_that_was_not_synced_may_be_gone(disk: Disk) -> None:
    node = disk.create("a")
    disk.write(node, 0, b"x")
    disk.sync(node)
    assert {tuple(image.items()) for image in every_cut(disk)} == {(), (("a", b"x"),)}


def test_file_whose_folder_was_lost_is_lost(disk: Disk) -> None:
    disk.make_folder("f")
    node = disk.create("f/a")
    disk.sync(node)
    disk.sync_folder("f")
    assert {frozenset(image) for image in every_cut(disk)} == {frozenset(), frozenset({"f", "f/a"})}


def test_rename_is_one_stroke(disk: Disk) -> None:
    synced_file(disk, "old", b"1")
    new = synced_file(disk, "new", b"2")
    disk.rename({"new": None, "old": new})
    assert {tuple(sorted(image.items())) for image in every_cut(disk)} == {
        (("new", b"2"), ("old", b"1")),
        (("old", b"2"),),
    }


def test_write_that_was_not_synced_is_torn_at_sectors_and_harms_nothing_beside_it(disk: Disk) -> None:
    node = synced_file(disk, "a", b"." * 4 * SECTOR_BYTES)
    disk.write(node, SECTOR_BYTES + 100, b"#" * 2 * SECTOR_BYTES)
    contents = {bytes(image["a"] or b"") for image in every_cut(disk)}
    assert {len(content) for content in contents} == {4 * SECTOR_BYTES}
    assert {content[: SECTOR_BYTES + 100] for content in contents} == {b"." * (SECTOR_BYTES + 100)}
    assert {content[3 * SECTOR_BYTES + 100 :] for content in contents} == {b"." * (SECTOR_BYTES - 100)}
    assert b"." * 4 * SECTOR_BYTES in contents
    assert any(b"#" in content and content.count(b"#") < 2 * SECTOR_BYTES for content in contents)


def test_file_that_grew_may_hold_anything_where_nothing_was_written(disk: Disk) -> None:
    node = synced_file(disk, "a", b"")
    disk.write(node, 0, b"#" * SECTOR_BYTES)
    disk.write(node, SECTOR_BYTES, b"#" * SECTOR_BYTES)
    contents = {bytes(image["a"] or b"") for image in every_cut(disk)}
    assert {0, SECTOR_BYTES, 2 * SECTOR_BYTES} >= {len(content) for content in contents}
    assert any(content[:SECTOR_BYTES] == bytes(SECTOR_BYTES) for content in contents)
    assert any(set(content) - {0, ord("#")} for content in contents)


def test_shrinking_that_was_not_synced_may_be_undone(disk: Disk) -> None:
    node = synced_file(disk, "a", b"x" * 1000)
    disk.truncate(node, 0)
    assert {image["a"] for image in every_cut(disk)} == {b"x" * 1000, b""}
