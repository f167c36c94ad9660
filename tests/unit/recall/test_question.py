import pytest

from everkept.errors import InvalidInput
from everkept.recall.question import read_question


@pytest.mark.parametrize("text", ["", "   ", "?!", '"', "\0"])
def test_question_without_a_term_is_invalid(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_question(text)


def test_question_reads_months_and_years() -> None:
    asked = read_question("What did we do in May 2023 and im März?")
    assert asked.months == {3, 5}
    assert asked.years == {2023}


def test_question_does_not_take_the_verb_for_the_month() -> None:
    assert read_question("may I ask about the dog?").months == frozenset()
    assert read_question("May I ask about the dog?").months == frozenset()


@pytest.mark.parametrize(
    "text", ["When did he leave?", "Wann ging er?", "Quando ele saiu?", "いつ引っ越した?", "In which year?"]
)
def test_question_asks_for_a_time(text: str) -> None:
    assert read_question("did it rain?").asks_when is False
    assert read_question(text + " in which year").asks_when
    assert read_question(text).asks_when


def test_question_pairs_adjacent_stems_without_stop_words() -> None:
    assert read_question("the support of the group").pairs == {("support", "group")}
