"""Only what a clear sentence of a person says, quoted; restraint goes before recall."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from everkept.derive.offline.extract import extract_offline
from everkept.derive.offline.sentences import split_sentences
from everkept.domain.dates import to_us
from everkept.domain.facts import FactDraft, check_drafts
from everkept.domain.timeline import TimelineFact, settle
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
    assert check_drafts(turns, drafts, names.values()).rejected == ()
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
        ("I work as a nurse at St. Mary's", ["user_42 works at St. Mary", "user_42 works as a nurse"]),
        ("I just started a new job at Acme Corp.", ["user_42 works at Acme Corp"]),
        (
            "I'm allergic to peanuts and shellfish.",
            ["user_42 is allergic to peanuts", "user_42 is allergic to shellfish"],
        ),
        ("My sister Ana lives in Porto", ["user_42 has a sister named Ana", "Ana lives in Porto"]),
        ("I have a cat named Tom", ["user_42 has a cat named Tom"]),
        ("My favourite colour is blue", ["user_42's favourite colour is blue"]),
        ("I’m vegetarian", ["user_42 is vegetarian"]),
        ("I speak English and Portuguese", ["user_42 speaks English", "user_42 speaks Portuguese"]),
        (
            "My name is John Smith and I live in New York City.",
            ["user_42 is named John Smith", "user_42 lives in New York City"],
        ),
        ("I'm going to visit Rome next week", ["user_42 plans to visit Rome"]),
        ("Please always answer in French", ["user_42 asks to always answer in French"]),
        ("My birthday is on 3 May", ["user_42's birthday is 3 May"]),
        ("I got engaged last Saturday!", ["user_42 got engaged"]),
        ("Ich wohne seit 2019 in Berlin. Ich mag Kaffee", ["user_42 wohnt in Berlin", "user_42 mag Kaffee"]),
        ("Moro em São Paulo. Sou alérgica a amendoim", ["user_42 mora em São Paulo", "user_42 é alérgica a amendoim"]),
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


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("I grew up in Braga in Portugal", ["user_42 grew up in Braga"]),
        ("Jonas is my oldest friend here", ["user_42 has a friend named Jonas"]),
        ("My aunt Celeste lives in Guimarães with her husband Armando",
         ["user_42 has an aunt named Celeste", "Celeste lives in Guimarães", "Celeste is married to Armando"]),
        ("My nephew Leo is five now", ["user_42 has a nephew named Leo", "Leo is five years old"]),
        ("My mother's birthday is on 6 June", ["user_42's mother's birthday is 6 June"]),
        ("Mum loves fish", ["user_42's mother likes fish"]),
        ("My brother is allergic to cats and eggs", ["user_42's brother is allergic to cats",
          "user_42's brother is allergic to eggs"]),
        ("I have two older brothers", ["user_42 has two older brothers"]),
        ("I'm allergic to reptiles and animals with fur",
         ["user_42 is allergic to reptiles", "user_42 is allergic to animals with fur"]),
        ("I lost my job", ["user_42 no longer has the job"]),
        ("I have asthma", ["user_42 has asthma"]),
        ("I'm a software engineer at Acme", ["user_42 is a software engineer"]),
        ("I work with Duarte", ["user_42 works with Duarte"]),
        ("My new flat is in Rua do Heroísmo, third floor", ["user_42 has a home in Rua do Heroísmo"]),
        ("I joined a choir last month", ["user_42 joined a choir"]),
        ("I started learning Japanese this week", ["user_42 started learning Japanese"]),
        ("My budget is 250 euros for everything", ["user_42's budget is 250 euros"]),
        ("Please answer in short sentences", ["user_42 asks to answer in short sentences"]),
        ("I'm drinking coffee again", ["user_42 drinks coffee again"]),
        ("I like action and sci-fi movies", ["user_42 likes action and sci-fi movies"]),
        ("I bought a second-hand bike this morning, red", ["user_42 bought a second-hand bike"]),
        ("Meine Schwester Ana wohnt in Köln", ["Die Schwester von user_42 heißt Ana", "Ana wohnt in Köln"]),
        ("Mit meinem Vermieter, Herrn Brandt, um 16 Uhr", ["Der Vermieter von user_42 heißt Herr Brandt"]),
        ("Ich singe seit Januar in einem Chor in Plagwitz", ["user_42 singt in einem Chor in Plagwitz"]),
        ("Henning verträgt keine Milch mehr", ["Henning verträgt keine Milch"]),
        ("Ich spreche Deutsch und Polnisch", ["user_42 spricht Deutsch", "user_42 spricht Polnisch"]),
        ("Ich fliege am Freitag nach Porto", ["user_42 hat vor, nach Porto zu fliegen"]),
        ("Ich habe mir gestern ein neues Fahrrad gekauft", ["user_42 hat ein neues Fahrrad gekauft"]),
        ("Bitte antworte immer auf Deutsch", ["user_42 bittet: antworte immer auf Deutsch"]),
        ("A minha senhoria, a dona Graça, é simpática", ["A senhoria de user_42 chama-se dona Graça"]),
        ("O Bolota odeia as escadas", ["Bolota odeia as escadas"]),
        ("A Lívia está grávida", ["Lívia está grávida"]),
        ("Estou morando em Curitiba", ["user_42 mora em Curitiba"]),
        ("Já não bebo café", ["user_42 já não bebe café"]),
        ("Falo português e alemão", ["user_42 fala português", "user_42 fala alemão"]),
        ("Mi hermana Ana vive lejos", ["La hermana de user_42 se llama Ana"]),
        ("私、小麦アレルギーなの", ["user_42は小麦のアレルギーがある"]),
    ],
)  # fmt: skip
def test_kinds_of_statements(said: str, expected: list[str]) -> None:
    assert texts(said) == expected


@pytest.mark.parametrize(
    "said",
    [
        "I like my ward", "I love your painting", "I have a job I enjoy every day",
        "The things I love makes writing fun",
        "Just like home", "I love stories that matter", "My girlfriend, Toby and I went out", "I'm learning a lot",
        "I bought a coffee this morning", "I speak to her often", "She said I live in Rome",
        "I remember when I lived in Rome",
        "Ich mag meine Station", "dass mein Mann Urlaub hat", "Wenn ich in Rom wohne", "Ich spreche mit meiner Mutter",
        "Adoro isso", "Falo com a minha mãe", "Vou falar com ela amanhã", "Acho que moro em Roma",
        "A Ana disse que vivo em Roma",
    ],
)  # fmt: skip
def test_what_points_elsewhere_or_is_passing_gives_nothing(said: str) -> None:
    assert texts(said) == []


def test_time_is_no_part_of_an_object_and_the_article_stays_in_the_sentence() -> None:
    (bought,) = extract(turn("I bought a second-hand e-bike this morning, red, from a friend"))
    assert (bought.object, bought.text) == ("second-hand e-bike", "user_42 bought a second-hand e-bike")
    assert bought.valid_from_us == to_us(datetime(2024, 5, 15, tzinfo=UTC))
    (joined,) = extract(turn("I joined an orchestra a couple of weeks ago"))
    assert (joined.object, joined.text) == ("orchestra", "user_42 joined an orchestra")


def test_plan_holds_for_its_own_time() -> None:
    (hike,) = extract(turn("On Saturday I'm going hiking in Saxony with Jonas"))
    assert (hike.predicate, hike.object) == ("plans to", "go hiking in Saxony with Jonas")
    saturday, sunday = (to_us(datetime(2024, 5, day, tzinfo=UTC)) for day in (18, 19))
    assert (hike.valid_from_us, hike.valid_until_us) == (saturday, sunday)
    assert texts("On 3 April I'm going hiking") == []  # over when it was said
    assert texts("Tomorrow is my farewell party") == ["user_42 has a farewell party"]


def test_new_job_takes_the_place_of_the_old_one() -> None:
    old = extract(turn("I work as a nurse at the Lindenhof clinic, mostly lates"))
    new = extract(turn("I'm now working as a paediatric nurse at Hospital de São Bento"))
    assert [draft.object for draft in old] == ["Lindenhof clinic", "nurse"]
    assert [draft.object for draft in new] == ["Hospital de São Bento", "paediatric nurse"]
    said = [draft for drafts in (old, new) for draft in drafts]
    facts = [
        TimelineFact(
            id=place, said_us=place // 2 * 1_000, stream=1, seq=place // 2, draft=place, entity=draft.entity,
            predicate=draft.predicate, object=draft.object, confidence=draft.confidence,
            single_valued=draft.single_valued,
        )
        for place, draft in enumerate(said)
    ]  # fmt: skip
    assert [state.closed_by for state in settle(facts, {})] == [2, 3, None, None]


def test_name_stays_true_in_a_doubt() -> None:
    assert texts("My sister Ana might come if it rains") == ["user_42 has a sister named Ana"]


def test_ordinal_ends_no_sentence() -> None:
    assert list(split_sentences("Am 19. Mai um 16 Uhr. Vor dem 19. bitte! Im 3. Stock. Es sind 3. Gut.")) == [
        "Am 19. Mai um 16 Uhr.", "Vor dem 19. bitte!", "Im 3. Stock.", "Es sind 3.", "Gut.",
    ]  # fmt: skip
    assert list(split_sentences("At St. Mary's since v1.2. Ok\n> quoted. text\nDr. Who")) == [
        "At St. Mary's since v1.2.", "Ok", "Dr. Who",
    ]  # fmt: skip


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
        ("I sold my car last week.", "user_42 sold the car", "car"),
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
