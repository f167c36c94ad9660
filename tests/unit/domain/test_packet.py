"""A packet in words: the newest events, and one line that counts the earlier ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from everkept.domain.packet import PacketEvent, compose_packet
from everkept.domain.transcript import estimate_tokens


def event(text: str, agent: str = "codex", at_us: int = 0) -> PacketEvent:
    return PacketEvent(agent=agent, kind="said", text=text, occurred_at_us=at_us)


def test_nothing_new_is_an_empty_packet():
    told = compose_packet("login", [], {}, tokens=300, continued=True)
    assert (told.text, told.shown, told.counted) == ("", 0, 0)


def test_what_fits_is_shown_whole_the_newest_last():
    events = [event("One", "claude-code"), event("Two")]
    told = compose_packet("login", events, {"claude-code": 1, "codex": 1}, tokens=300, continued=False)
    assert told.text.splitlines() == [
        "2 events of other sessions so far (claude-code 1, codex 1), the newest last.",
        "- 1970-01-01 00:00 claude-code said: One",
        "- 1970-01-01 00:00 codex said: Two",
    ]
    assert told.counted == 0


def test_a_long_event_says_what_was_cut_of_it():
    told = compose_packet("login", [event("x" * 5_000)], {"codex": 1}, tokens=300, continued=True)
    assert "characters cut" in told.text
    assert told.shown == 1


def test_a_time_that_no_calendar_has_is_shown_all_the_same():
    for at_us in (-5, 1 << 62):
        assert compose_packet("login", [event("One", at_us=at_us)], {"codex": 1}, tokens=300, continued=True).shown == 1


@given(st.lists(st.text(min_size=1, max_size=600), max_size=40), st.integers(0, 500), st.integers(300, 1_700))
def test_shown_and_counted_are_all_there_are_and_the_packet_is_bounded(texts: list[str], more: int, tokens: int):
    newest = [event(text) for text in texts]
    by_agent = {"codex": len(newest) + (more if newest else 0)}
    told = compose_packet("login", newest, by_agent, tokens=tokens, continued=True)
    assert told.shown + told.counted == by_agent["codex"]
    assert told.shown >= min(1, len(newest))
    longest = max((estimate_tokens(text) for text in texts), default=0)
    assert told.shown <= 1 or estimate_tokens(told.text) <= tokens + min(longest, 600)
