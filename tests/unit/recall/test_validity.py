from typing import Any

import pytest

from everkept.recall.validity import FactRow, Moment, Reason, held_back

NOW = Moment(as_of_us=100, known_at_us=100, confidence_floor=0.5)


def fact(**changed: Any) -> FactRow:
    given: dict[str, Any] = {
        "id": 1,
        "confidence": 0.9,
        "valid_from_us": 10,
        "valid_until_us": None,
        "closed_at_us": None,
        "closed_known_at_us": None,
        "recorded_at_us": 20,
        "retired_at_us": None,
    }
    return FactRow(**{**given, **changed})


@pytest.mark.parametrize(
    ("expected", "changed"),
    [
        (None, {}),
        (None, {"valid_from_us": None}),
        (Reason.BELOW_CONFIDENCE_FLOOR, {"confidence": 0.49}),
        (None, {"confidence": 0.5}),
        (Reason.NOT_YET_VALID, {"valid_from_us": 101}),
        (None, {"valid_from_us": 100}),
        (Reason.NO_LONGER_VALID, {"valid_until_us": 100}),
        (None, {"valid_until_us": 101}),
        (Reason.NO_LONGER_VALID, {"closed_at_us": 50, "closed_known_at_us": 60}),
        (Reason.RETIRED, {"retired_at_us": 90}),
        (Reason.RETIRED, {"retired_at_us": 100}),
        (None, {"retired_at_us": 101}),
        (None, {"recorded_at_us": 100}),
        (Reason.NOT_YET_KNOWN, {"recorded_at_us": 101}),
    ],
)
def test_held_back_says_why(expected: Reason | None, changed: dict[str, Any]) -> None:
    assert expected == held_back(fact(**changed), NOW)


def test_closed_fact_was_valid_before_its_end() -> None:
    closed = fact(closed_at_us=50, closed_known_at_us=60)
    assert held_back(closed, Moment(as_of_us=40, known_at_us=100, confidence_floor=0.5)) is None


def test_closed_fact_was_believed_open_until_the_end_was_known() -> None:
    closed = fact(closed_at_us=50, closed_known_at_us=60)
    assert held_back(closed, Moment(as_of_us=55, known_at_us=55, confidence_floor=0.5)) is None
