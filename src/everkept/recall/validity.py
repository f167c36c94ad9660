"""Which facts may be shown for a question about a given time, and why the others are held back. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    BELOW_CONFIDENCE_FLOOR = "below_confidence_floor"
    NOT_YET_VALID = "not_yet_valid"
    NO_LONGER_VALID = "no_longer_valid"
    RETIRED = "retired"
    NOT_YET_KNOWN = "not_yet_known"
    OVER_BUDGET = "over_budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    """What of a fact decides whether it is shown. Times are µs; validity is half-open: [from, until)."""

    id: int
    confidence: float
    valid_from_us: int | None
    valid_until_us: int | None
    """Its own end, as stated."""
    closed_at_us: int | None
    """Ended by a later statement: the end of its validity in the world."""
    closed_known_at_us: int | None
    """When that ending became known to us."""
    recorded_at_us: int
    retired_at_us: int | None
    """Belief in it ended: it is not held true of any time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What a question is about: the world at `as_of_us`, by what was known at `known_at_us`. Both default to now."""

    as_of_us: int
    known_at_us: int
    confidence_floor: float


def held_back(fact: FactRow, moment: Moment) -> Reason | None:
    """Why the fact is not shown; None where it is."""
    if fact.recorded_at_us > moment.known_at_us:
        return Reason.NOT_YET_KNOWN
    if fact.retired_at_us is not None and fact.retired_at_us <= moment.known_at_us:
        return Reason.RETIRED
    if fact.valid_from_us is not None and fact.valid_from_us > moment.as_of_us:
        return Reason.NOT_YET_VALID
    ends = [fact.valid_until_us]
    if fact.closed_known_at_us is None or fact.closed_known_at_us <= moment.known_at_us:
        ends.append(fact.closed_at_us)
    if any(end is not None and end <= moment.as_of_us for end in ends):
        return Reason.NO_LONGER_VALID
    if fact.confidence < moment.confidence_floor:
        return Reason.BELOW_CONFIDENCE_FLOOR
    return None
