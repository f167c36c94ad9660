"""Words in memory: rows given as the store gives them, (passage, speaker, own, said)."""

from __future__ import annotations

import numpy as np

from everkept.recall.words import KnownWords, Words


def words_of(known: KnownWords, *ids: int) -> Words:
    asked = np.array(ids, np.int64)
    assert known.missing(asked).size == 0
    return known.take(asked)


def known_of(*rows: tuple[int, str, str, str]) -> KnownWords:
    known = KnownWords()
    known.missing(np.array([r[0] for r in rows], np.int64))
    known.add(rows)
    return known


def test_words_come_in_the_order_asked_for_and_as_often() -> None:
    words = words_of(known_of((3, "ann", "a dog bark", "may"), (7, "bob", "cat", "june")), 7, 3, 7)
    assert words.lengths.tolist() == [1, 3, 1]
    assert words.hashes.tolist() == [hash(t) for t in ("cat", "a", "dog", "bark", "cat")]
    assert words.stop.tolist() == [False, True, False, False, False]
    assert [words.sets[code] for code in words.speaker] == [{"bob"}, {"ann"}, {"bob"}]
    assert [words.sets[code] for code in words.said] == [{"june"}, {"may"}, {"june"}]


def test_a_passage_that_is_not_there_has_no_words_and_is_asked_for_again() -> None:
    known = known_of((2, "ann", "dog", ""))
    asked = np.array([2, 5, 900], np.int64)
    assert known.missing(asked).tolist() == [5, 900]
    known.add([])
    words = known.take(asked)
    assert (words.lengths.tolist(), words.hashes.tolist()) == ([1, 0, 0], [hash("dog")])
    assert words.sets[words.speaker[2]] == frozenset()
    assert known.missing(asked).tolist() == [5, 900]


def test_words_taken_stay_as_they_were_while_more_are_added() -> None:
    known = known_of((1, "ann", "dog", ""))
    first = words_of(known, 1)
    known.missing(np.array([50_000], np.int64))
    known.add([(50_000, "bob", " ".join(map(str, range(1000))), "may")])
    assert (first.hashes.tolist(), first.sets[first.speaker[0]]) == ([hash("dog")], {"ann"})
    both = words_of(known, 50_000, 1)
    assert both.lengths.tolist() == [1000, 1]
    assert both.hashes[-2:].tolist() == [hash("999"), hash("dog")]


def test_keys_are_equal_for_the_same_words_only() -> None:
    words = words_of(known_of((1, "ann", "dog cat", ""), (2, "bob", "dog cat", "may"), (3, "", "cat dog", "")), 1, 2, 3)
    first, second, third = words.keys([0, 1, 2])
    assert first == second != third
    assert words.keys([2]) == [third]
