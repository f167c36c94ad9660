"""What is kept in memory of a few projects."""

from __future__ import annotations

import numpy as np

from everkept.recall.kept import KeptOfProjects
from everkept.recall.vectors import SignBits


def test_the_project_that_was_not_asked_for_the_longest_makes_room() -> None:
    kept = KeptOfProjects[str](10, len)
    kept.put(1, "aaaa")
    kept.put(2, "bbbb")
    assert kept.get(1) == "aaaa"
    kept.put(3, "cccc")
    assert [kept.get(n) for n in (1, 2, 3)] == ["aaaa", None, "cccc"]


def test_a_longer_value_takes_the_place_of_its_own() -> None:
    kept = KeptOfProjects[str](10, len)
    kept.put(1, "aaaa")
    kept.put(2, "bbbb")
    kept.put(2, "bbbbbb")
    assert [kept.get(n) for n in (1, 2)] == ["aaaa", "bbbbbb"]
    kept.put(2, "bbbbbbb")
    assert [kept.get(n) for n in (1, 2)] == [None, "bbbbbbb"]


def test_what_is_larger_than_all_the_room_is_kept_alone() -> None:
    kept = KeptOfProjects[str](10, len)
    kept.put(1, "aaaa")
    kept.put(2, "b" * 11)
    assert [kept.get(n) for n in (1, 2)] == [None, "b" * 11]
    kept.put(3, "cccc")
    assert [kept.get(n) for n in (2, 3)] == [None, "cccc"]


def test_sign_bits_know_how_large_they_are() -> None:
    rows = [(n, 1, bytes(32), bytes(32)) for n in range(1, 101)]
    assert SignBits(0, 256).extended(rows).size_bytes == 100 * (8 + 8 + 32 + 32 + 1)


def test_of_equally_near_passages_the_oldest_are_taken() -> None:
    """Whatever order a partition leaves them in: another database must choose the same."""
    near, far = b"\xff" * 32, b"\x7f" + b"\xff" * 31
    rows = [(n, 1, b"", near if n % 2 else far) for n in range(1, 1_001)]
    question = np.full(256, 1 / 16, np.float32)
    found = SignBits(0, 256).extended(rows).nearest(question, None, 600).tolist()
    assert found == [*range(1, 1_001, 2), *range(2, 202, 2)]
