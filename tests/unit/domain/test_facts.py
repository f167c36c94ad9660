"""A draft is believed only if the window says it (D04)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from everkept.domain.dates import to_us
from everkept.domain.facts import Checked, FactDraft, check_drafts
from everkept.domain.predicates import is_single_valued, normalise_name, normalise_predicate
from everkept.domain.transcript import Turn

SAID = to_us(datetime(2024, 5, 15, 12, tzinfo=UTC))


def turn(seq: int, content: str, **fields: Any) -> Turn:
    made = {
        "role": "user",
        "name": "Ana",
        "occurred_at_us": SAID,
        "zone_min": None,
        "evidence": True,
        "tokens": 1,
        **fields,
    }
    return Turn(stream=1, seq=seq, content=content, **made)


DRAFT = FactDraft(
    entity="Ana",
    predicate="lives in",
    object="Lisbon",
    text="Ana lives in Lisbon",
    quote="I live in Lisbon",
    confidence=0.9,
)
WINDOW = [
    turn(1, "Hi there"),
    turn(2, "Well,  I live\nin “Lisbon”, I think."),
    turn(3, "I live in Rome", evidence=False),
]


def reasons(checked: Checked) -> list[str]:
    return [rejected.reason for rejected in checked.rejected]


def test_quote_is_found_whatever_its_spaces_quotes_and_case() -> None:
    checked = check_drafts(WINDOW, [replace(DRAFT, quote='i LIVE in "lisbon"')])
    assert [draft.seqs for draft in checked.accepted] == [(2,)]


def test_quote_may_cross_the_slices_of_one_event() -> None:
    parts = [turn(1, "I live in "), turn(1, "Lisbon now")]
    assert len(check_drafts(parts, [DRAFT]).accepted) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"quote": "I live in Porto"}, "the quote is not in the window"),
        ({"quote": "I live in Rome"}, "the quote is not in the window"),
        ({"quote": "."}, "the quote is not in the window"),
        ({"object": " "}, "object is empty"),
        ({"object": "!!"}, "object or predicate has no words"),
        ({"object": "x" * 501}, "object is longer than 500 characters"),
        ({"object": "ana."}, "entity and object are the same"),
        ({"confidence": float("nan")}, "confidence nan is not between 0 and 1"),
        ({"confidence": 1.5}, "confidence 1.5 is not between 0 and 1"),
        ({"valid_from_said": "one fine day"}, "valid_from 'one fine day' is not a date"),
        ({"valid_until_said": "never"}, "valid_until 'never' is not a date"),
        ({"valid_from_said": "2024-05", "valid_until_said": "2020"}, "valid_from lies after valid_until"),
        ({"object_type": "planet"}, "object type 'planet' is not known"),
    ],
)
def test_draft_is_rejected_with_its_reason(change: dict[str, Any], reason: str) -> None:
    window = [*WINDOW, turn(4, "I live in Lisbon")]
    checked = check_drafts(window, [replace(DRAFT, **change)])
    assert checked.accepted == ()
    assert reasons(checked) == [reason]


def test_one_bad_item_does_not_spoil_the_rest_and_repeats_are_dropped() -> None:
    window = [turn(1, "I live in Lisbon. I like tea.")]
    tea = replace(DRAFT, predicate="likes", object="tea", quote="I like tea")
    checked = check_drafts(window, [tea, replace(DRAFT, quote="nowhere"), DRAFT, replace(DRAFT, object="LISBON")])
    assert [draft.object for draft in checked.accepted] == ["Lisbon", "tea"]
    assert reasons(checked) == ["the quote is not in the window", "repeats another item"]


def test_relative_dates_resolve_against_the_quoted_turn() -> None:
    window = [turn(1, "I live in Lisbon since last month"), turn(2, "bye", occurred_at_us=SAID + 10**14)]
    (draft,) = check_drafts(window, [replace(DRAFT, valid_from_said="last month")]).accepted
    assert draft.valid_from_us == to_us(datetime(2024, 4, 1, tzinfo=UTC))
    assert draft.valid_from_said is None


def test_names_and_predicates_compare() -> None:
    assert normalise_name(" The “Acme” Corp. ") == normalise_name('acme" corp') or normalise_name("The Acme.") == "acme"
    assert normalise_predicate("Wohnt_in") == normalise_predicate("moved to") == "lives in"
    assert [is_single_valued(word) for word in ("mora em", "favourite colour", "loves", "is part of")] == [
        True,
        True,
        False,
        None,
    ]
