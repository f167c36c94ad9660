"""Arguments are checked against the schema that the client saw, and a fault names its field."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from everkept.doors.mcp.arguments import checked, moment
from everkept.doors.mcp.tools import BY_NAME
from everkept.errors import InvalidInput, UnknownScope

RECALL = BY_NAME["recall"]["inputSchema"]


def test_defaults_are_filled_in_and_null_counts_as_left_out():
    given = checked(RECALL, {"query": "harbour", "subject": None})

    assert given == {"query": "harbour", "limit": 8, "tokens": 2_000}


def test_a_whole_number_may_be_written_with_a_point():
    assert checked(RECALL, {"query": "x", "limit": 3.0})["limit"] == 3


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (None, "query"),
        ({"query": ""}, "query"),
        ({"query": 7}, "query"),
        ({"query": "x", "limit": 0}, "limit"),
        ({"query": "x", "limit": 2.5}, "limit"),
        ({"query": "x", "limit": True}, "limit"),
        ({"query": "x", "limit": float("inf")}, "limit"),
        ({"query": "x", "limit": float("nan")}, "limit"),
        ({"query": "x", "kinds": []}, "kinds"),
        ({"query": "x", "kinds": ["turns"]}, "kinds"),
        ({"query": "x", "colour": "red"}, "colour"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(arguments: dict[str, Any] | None, field: str):
    with pytest.raises(InvalidInput) as refused:
        checked(RECALL, arguments)

    assert refused.value.details["field"] == field


def test_a_scope_word_of_another_system_is_an_unknown_scope():
    with pytest.raises(UnknownScope, match="project"):
        checked(RECALL, {"query": "x", "session_id": "7"})


def test_a_switch_takes_no_word():
    with pytest.raises(InvalidInput, match="true or false"):
        checked(BY_NAME["handoff"]["inputSchema"], {"take": "yes"})


def test_a_time_needs_its_zone():
    assert moment("since", "2026-05-01T12:00:00Z") == datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert moment("since", None) is None
    for text in ("2026-05-01T12:00:00", "yesterday"):
        with pytest.raises(InvalidInput, match="zone"):
            moment("since", text)
