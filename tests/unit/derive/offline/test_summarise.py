"""A summary without a model is the window's own words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from everkept.derive.offline.summarise import fold, summarise_offline
from everkept.domain.transcript import Turn


def turn(content: str, role: str = "user", *, evidence: bool = True) -> Turn:
    return Turn(
        stream=1,
        seq=1,
        role=role,
        name=None,
        content=content,
        occurred_at_us=0,
        zone_min=None,
        evidence=evidence,
        tokens=1,
    )


TALK = [
    turn("Hi! How are you?"),
    turn("Hello, how can I help?", "assistant"),
    turn("I am planning a trip to Japan in May with my sister Ana. We want to see Kyoto."),
    turn("Great! Kyoto in May is lovely.", "assistant"),
    turn("Our budget for the trip is 3000 euros. Ana is allergic to fish, so food in Japan is a worry."),
    turn("ok thanks"),
]


def test_summary_is_verbatim_with_its_speaker_and_in_order() -> None:
    found = summarise_offline(TALK, known_names={"user": "Tom"})
    said = " ".join(one.content for one in TALK)
    lines = found.text.splitlines()
    assert "Tom: I am planning a trip to Japan in May with my sister Ana." in lines
    assert all(line.split(": ", 1)[1] in said for line in lines)
    places = [said.index(line.split(": ", 1)[1]) for line in lines]
    assert places == sorted(places)
    assert len(found.text) <= 600


def test_pleasantries_and_questions_are_no_learnings() -> None:
    learnings = summarise_offline(TALK, known_names={"user": "Tom"}).learnings
    assert "Tom: Our budget for the trip is 3000 euros." in learnings
    assert not any("?" in one or "thanks" in one for one in learnings)


def test_what_tells_something_comes_before_small_talk() -> None:
    talk = [
        turn("Welcome back! How nice to hear from you on this lovely day.", "assistant"),
        turn("Careful, what did I tell you about nuts? I'd like to be alive."),
        turn("Take a cake with nuts for the party, nuts are always good at a party.", "assistant"),
        turn("My nephew Leo is five. The party is on Saturday in Braga."),
    ]
    lines = summarise_offline(talk, known_names={"user": "Tom"}, chars_max=80).text.splitlines()
    assert lines == ["Tom: My nephew Leo is five.", "Tom: The party is on Saturday in Braga."]
    whole = summarise_offline(talk, known_names={"user": "Tom"}).text
    assert whole.startswith("Tom: ")


def test_what_is_no_evidence_is_not_summarised() -> None:
    assert summarise_offline([turn("Secret plan", evidence=False)], known_names={}).text == ""


def test_scripts_without_spaces_are_read() -> None:
    found = summarise_offline(
        [turn("来月、京都へ旅行に行きます。京都の宿を探しています。"), turn("はい")], known_names={}
    )
    assert "user: 京都の宿を探しています。" in found.text


@given(st.lists(st.text(max_size=400), max_size=6), st.integers(20, 600))
def test_summary_fits_and_is_repeatable(contents: list[str], chars_max: int) -> None:
    turns = [turn(content) for content in contents]
    found = summarise_offline(turns, known_names={}, chars_max=chars_max)
    assert len(found.text) <= chars_max
    assert found == summarise_offline(turns, known_names={}, chars_max=chars_max)


def test_fold_keeps_the_first_and_the_newest() -> None:
    folded = fold("a: first\nb: second", ["c: third", "d: fourth"], 18)
    assert folded == "a: first\nd: fourth"
    assert fold(None, ["a: x"], 100) == "a: x"
    assert fold("a: x", ["a: x"], 100) == "a: x"


@given(st.lists(st.text(max_size=80), max_size=6), st.integers(1, 200))
def test_fold_fits(summaries: list[str], chars_max: int) -> None:
    assert len(fold(None, summaries, chars_max)) <= chars_max
