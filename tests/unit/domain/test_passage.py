import pytest

from everkept.domain.passage import Traits, analyse, capitals_of, date_text, traits_of


def test_analyse_gives_terms_of_text_speaker_and_day() -> None:
    analysed = analyse("I bought a red car", speaker="Ann Lee", occurred_at_us=1_683_554_160_000_000)
    assert analysed.own == "i bought a red car"
    assert analysed.speaker == "ann lee"
    assert analysed.said == "8 mai 2023"


def test_date_text_is_the_day_in_the_senders_zone() -> None:
    just_before_midnight = 1_683_590_340_000_000  # 23:59 UTC
    assert date_text(just_before_midnight) == "8 may 2023"
    assert date_text(just_before_midnight, 60) == "9 may 2023"


@pytest.mark.parametrize("at", [-(2**62), 2**62])
def test_date_text_holds_absurd_times_inside_the_calendar(at: int) -> None:
    assert date_text(at, 600)


@pytest.mark.parametrize(
    "text", ["I went yesterday", "two years ago", "In June we met", "gestern war ich da", "ontem à noite", "昨日行った"]
)
def test_traits_see_a_time_expression(text: str) -> None:
    assert traits_of(text) & Traits.TEMPORAL


def test_traits_see_a_question_before_an_image_note() -> None:
    assert traits_of("Do you like it? [shared image: a cat]") & Traits.ASKS
    assert not traits_of("I like it.") & Traits.ASKS


def test_traits_count_capitals_inside_english_sentences_only() -> None:
    assert capitals_of(traits_of("I went to Paris with Ann. Then we left")) == 2
    assert capitals_of(traits_of("Ich habe den Hund und die Katze mit in das Haus genommen")) == 0
