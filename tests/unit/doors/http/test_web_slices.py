"""A page of a list that the store gives whole."""

from __future__ import annotations

import pytest

from everkept.doors.http.web.slices import slice_of
from everkept.doors.http.web.visit import PAGE_ITEMS
from everkept.errors import InvalidInput

WHOLE = range(2 * PAGE_ITEMS + 1)


def test_the_pages_of_a_list_follow_each_other_without_a_gap_and_end() -> None:
    first = slice_of(WHOLE, "keys", None)
    second = slice_of(WHOLE, "keys", str(first.following))
    third = slice_of(WHOLE, "keys", str(second.following))
    assert [*first.items, *second.items, *third.items] == list(WHOLE)
    assert third.following is None
    assert slice_of(WHOLE[:PAGE_ITEMS], "keys", None).following is None
    assert list(slice_of(WHOLE, "keys", "999").items) == []


@pytest.mark.parametrize("begin", ["-1", "x", "1.5", "٣", "9" * 10])
def test_what_is_no_place_is_refused_by_name(begin: str) -> None:
    with pytest.raises(InvalidInput, match="keys is the place"):
        slice_of(WHOLE, "keys", begin)
