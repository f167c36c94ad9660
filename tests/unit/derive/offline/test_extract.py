"""Only what a clear sentence of a person says, quoted; restraint goes before recall."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from everkept.derive.offline.extract import extract_offline
from everkept.domain.dates import to_us
from everkept.domain.facts import FactDraft, check_drafts
from everkept.domain.transcript import Turn

SAID = to_us(datetime(2024, 5, 15, 12, tzinfo=UTC))


def turn(content: str, seq: int = 1, **fields: Any) -> Turn:
    made = {
        "role": "user",
        "name": None,
        "occurred_at_us": SAID,
        "zone_min": None,
        "evidence": True,
        "tokens": 1,
        **fields,
    }
    return Turn(stream=1, seq=seq, content=content, **made)


def extract(*turns: Turn, **names: str) -> list[FactDraft]:
    """What is extracted, all of which must pass the checks that a model's drafts have to pass."""
    drafts = extract_offline(turns, subject="user_42", known_names=names)
    assert check_drafts(turns, drafts).rejected == ()
    return drafts


def texts(content: str) -> list[str]:
    return [draft.text for draft in extract(turn(content))]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "I live in Lisbon now, and I love pastéis de nata.",
            ["user_42 lives in Lisbon", "user_42 likes pastéis de nata"],
        ),
        ("We moved from Berlin to Porto in March", ["user_42 moved to Porto"]),
        ("I work as a nurse at St. Mary's", ["user_42 works as nurse"]),
        ("I just started a new job at Acme Corp.", ["user_42 works at Acme Corp"]),
        (
            "I'm allergic to peanuts and shellfish.",
            ["user_42 is allergic to peanuts", "user_42 is allergic to shellfish"],
        ),
        ("My sister Ana lives in Porto", ["user_42 has sister named Ana", "Ana lives in Porto"]),
        ("I have a cat named Tom", ["user_42 has cat named Tom"]),
        ("My favourite colour is blue", ["user_42's favourite colour is blue"]),
        ("I’m vegetarian", ["user_42 follows the diet vegetarian"]),
        ("I speak English and Portuguese", ["user_42 speaks English", "user_42 speaks Portuguese"]),
        (
            "My name is John Smith and I live in New York City.",
            ["user_42 is named John Smith", "user_42 lives in New York City"],
        ),
        ("I'm going to visit Rome next week", ["user_42 plans to visit Rome"]),
        ("Please always answer in French", ["user_42 asks to always answer in French"]),
        ("My birthday is on 3 May", ["user_42 has birthday on 3 May"]),
        ("I got engaged last Saturday!", ["user_42's relationship status is engaged"]),
        ("Ich wohne seit 2019 in Berlin. Ich mag Kaffee", ["user_42 wohnt in Berlin", "user_42 mag Kaffee"]),
        ("Moro em São Paulo. Sou alérgica a amendoim", ["user_42 mora em São Paulo", "user_42 é alérgico a amendoim"]),
        ("Me llamo Luz. Vivo en Madrid", ["user_42 se llama Luz", "user_42 vive en Madrid"]),
        ("私は東京に住んでいます。コーヒーが好きです。", ["user_42は東京に住んでいる", "user_42はコーヒーが好き"]),
    ],
)
def test_statement_is_taken_in_its_own_language(said: str, expected: list[str]) -> None:
    assert texts(said) == expected


@pytest.mark.parametrize(
    "said",
    [
        "Do I live in Lisbon?", "If I lived in Rome I would eat pizza", "I wish I could say I live in Rome",
        "My friend lives in Rome", 'He said "I live in Paris"', "> I live in Oslo", "```\nI live in Oslo\n```",
        "I like it", "I love you", "I love how this works", "I like the second option", "I'd like a coffee",
        "I'm going to try that", "I think I live in a simulation", "I live in a small flat", "Maybe I work at Acme",
        "もし私が東京に住んでいたら", "東京に住んでいますか", "",
    ],
)  # fmt: skip
def test_question_hypothesis_and_pleasantry_give_nothing(said: str) -> None:
    assert texts(said) == []


def test_only_people_are_listened_to() -> None:
    assert extract(turn("I live in the cloud", role="assistant")) == []
    assert extract(turn("I live in Rome", evidence=False)) == []
    assert extract(turn("I live in Rome", role="tool")) == []


def test_both_sides_of_a_chat_of_two_people_count_under_their_names() -> None:
    drafts = extract(turn("I live in Rome", name="Ana"), turn("I live in Oslo", 2, role="assistant", name="Tom"))
    assert [draft.text for draft in drafts] == ["Ana lives in Rome", "Tom lives in Oslo"]
    assert [draft.text for draft in extract(turn("I live in Rome"), user="Eva")] == ["Eva lives in Rome"]


@pytest.mark.parametrize(
    ("said", "text", "object"),
    [
        ("I sold my car last week.", "user_42 sold car", "car"),
        ("I no longer work at Acme", "user_42 no longer works at Acme", "Acme"),
        ("We broke up last week", "user_42 broke up with the partner", "partner"),
        ("I'm not vegetarian anymore", "user_42 is no longer vegetarian", "vegetarian"),
        ("Ich wohne nicht mehr in Berlin", "user_42 wohnt nicht mehr in Berlin", "Berlin"),
    ],
)
def test_closure_ends_something(said: str, text: str, object: str) -> None:
    (draft,) = extract(turn(said))
    assert (draft.closes, draft.text, draft.object) == (True, text, object)
    if "last week" in said:
        assert draft.valid_until_us == to_us(datetime(2024, 5, 6, tzinfo=UTC))


def test_dates_are_resolved() -> None:
    moved, since, until = (extract(turn(said))[0] for said in (
        "I moved to Lisbon last month.", "I've lived in Lisbon since 2019", "I lived in Rome until 2019",
    ))  # fmt: skip
    assert moved.valid_from_us == to_us(datetime(2024, 4, 1, tzinfo=UTC))
    assert since.valid_from_us == to_us(datetime(2019, 1, 1, tzinfo=UTC))
    assert (until.valid_from_us, until.valid_until_us) == (None, to_us(datetime(2020, 1, 1, tzinfo=UTC)))


def test_correction_takes_back_what_it_names() -> None:
    (draft,) = extract(turn("Actually, I live in Porto, not Lisbon"))
    assert (draft.correction, draft.object, draft.replaces) == (True, "Porto", "Lisbon")
    first, second = extract(turn("I live in Lisbon."), turn("No, I meant Porto.", 2))
    assert (second.correction, second.predicate, second.text, second.replaces) == (
        True, first.predicate, "user_42 lives in Porto", "Lisbon",
    )  # fmt: skip


def test_braces_and_long_documents_do_no_harm() -> None:
    assert texts("I live in {x} %s {0}") in ([], ["user_42 lives in {x} %s {0}"])
    assert texts("I live in Rome. " + "lorem ipsum " * 3_000) == []
