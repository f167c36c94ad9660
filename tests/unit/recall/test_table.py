"""The table of passages in memory: rows given as the store gives them."""

from __future__ import annotations

import numpy as np
import pytest

from everkept.domain.ids import ProjectId, StreamId, SubjectId
from everkept.domain.scope import Scope
from everkept.recall.table import NOBODY, PassageTable
from everkept.store.search import KINDS, NEVER_US

Row = tuple[int, int, int, int, int, int, int, int, int, str | None]


def turn(id_: int, seq: int, *, stream: int = 1, subject: int = 1, sitting: int = 1, speaker: str = "Ann") -> Row:
    return (id_, 0, 0, subject, stream, seq, 1000 * seq, sitting, 0, speaker)


def table_of(*batches: list[Row]) -> PassageTable:
    table = PassageTable(revision=0)
    for rows in batches:
        table = table.extended(rows, rows[-1][0])
    return table


def beside(table: PassageTable, distance: int) -> list[int]:
    rows = np.arange(table.all.id.size)
    return [int(table.all.id[r]) if r >= 0 else 0 for r in table.beside(rows, (distance,))[0]]


def test_neighbours_are_turns_of_the_same_sitting() -> None:
    table = table_of([turn(1, 1), turn(2, 2), turn(5, 1, stream=2), turn(6, 3), turn(9, 4, sitting=4)])
    assert beside(table, -1) == [0, 1, 0, 2, 0]
    assert beside(table, 1) == [2, 6, 0, 0, 0]
    assert beside(table, 2) == [6, 0, 0, 0, 0]


def test_neighbours_are_found_across_batches_and_out_of_order() -> None:
    table = table_of([turn(1, 1), turn(2, 3)], [turn(3, 1, stream=2)], [turn(4, 2)])
    assert beside(table, -1) == [0, 4, 0, 1]
    assert table.last == 4


def test_facts_are_nobodys_neighbours() -> None:
    fact: Row = (3, KINDS.index("fact"), 7, 1, 1, 2, NEVER_US, 1, 0, None)
    table = table_of([turn(1, 1), turn(2, 2), fact])
    assert beside(table, -1) == [0, 1, 0]
    (hit,) = table.take(np.array([2])).hits(table.names)
    assert (hit.kind, hit.ref, hit.speaker, hit.occurred_at_us) == ("fact", 7, None, None)
    assert table.all.speaker[2] == NOBODY


def test_a_table_made_from_another_leaves_it_as_it_was() -> None:
    first = table_of([turn(1, 1)])
    longer = first.extended([turn(2, 2, speaker="Bob")], 2)
    assert (first.all.id.tolist(), longer.all.id.tolist()) == ([1], [1, 2])
    assert [h.speaker for h in longer.take(np.array([0, 1])).hits(longer.names)] == ["Ann", "Bob"]


def test_rows_of_unknown_ids_are_minus_one() -> None:
    assert table_of([turn(2, 1), turn(4, 2)]).rows_of(np.array([1, 2, 3, 4, 5])).tolist() == [-1, 0, -1, 1, -1]
    assert PassageTable(0).rows_of(np.array([1])).tolist() == [-1]


@pytest.mark.parametrize("far", [3, 3_000_000_000_000])
def test_rows_are_found_whether_ids_lie_close_or_far_apart(far: int) -> None:
    table = table_of([turn(2, 1)], [turn(far, 2), turn(far + 1, 3)])
    asked = np.array([far, 0, 2, far + 2, far + 1, -5, 2**62])
    assert table.rows_of(asked).tolist() == [1, -1, 0, -1, 2, -1, -1]


def test_scope_kind_and_time_limit_the_rows() -> None:
    table = table_of([turn(1, 1), turn(2, 1, stream=2, subject=2), turn(3, 2)])
    rows = np.arange(3)
    everything = Scope(project=ProjectId(1))
    assert table.in_scope(rows, everything, KINDS, None).tolist() == [True, True, True]
    assert table.in_scope(rows, everything, ("fact",), None).tolist() == [False, False, False]
    assert table.in_scope(rows, everything, KINDS, 1999).tolist() == [True, True, False]
    subject = Scope(project=ProjectId(1), subject=SubjectId(1))
    assert table.in_scope(rows, subject, KINDS, None).tolist() == [True, False, True]
    stream = Scope(project=ProjectId(1), subject=SubjectId(1), stream=StreamId(2))
    assert not table.in_scope(rows, stream, KINDS, None).any()
