from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from everkept.doors.cli.options import plain_words
from everkept.doors.cli.wording import ago, clean, clip, count, size, span

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "–"),
        (0.0204, "20 ms"),
        (1.5, "1.5 s"),
        (59, "59 s"),
        (61, "1 min"),
        (3600, "1 h"),
        (5400, "1 h 30 min"),
        (3 * 86400, "3 days"),
    ],
)
def test_span_has_at_most_two_units(seconds, words):
    assert span(seconds) == words


def test_ago_looks_both_ways():
    assert ago(NOW - timedelta(minutes=5), NOW) == "5 min ago"
    assert ago(NOW + timedelta(minutes=5), NOW) == "in 5 min"
    assert ago(None, NOW) == "–"


def test_count_and_size_are_readable():
    assert count(1, "fact") == "1 fact"
    assert count(1204, "fact") == "1,204 facts"
    assert count(2, "entry", "entries") == "2 entries"
    assert size(999) == "999 B"
    assert size(1_234_567) == "1.2 MB"


def test_clean_takes_out_what_commands_a_terminal():
    assert clean("a\x1b[2J\n\u202eb\x9b") == "a [2J b"


def test_clip_keeps_to_its_length():
    assert clip("x" * 10, 5) == "xxxx…"
    assert clip("short", 5) == "short"


def test_plain_words_translates_options_only():
    given = ["recall", "--user-id", "u", "--run_id=r", "--", "--user-id"]
    assert plain_words(given) == ["recall", "--subject", "u", "--thread=r", "--", "--user-id"]
