from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from everkept.doors.http.web.render import diff, markdown, stamp, unified
from everkept.doors.http.web.timelines import first_day


def test_what_stands_in_front_of_a_text_is_a_list_of_terms_and_stays_text() -> None:
    shown = markdown('---\ntype: session\nactive_minutes: 1\nname: "<b>x</b>"\n---\n\n# Title\n')
    assert "<dt>type</dt><dd>session</dd><dt>active minutes</dt><dd>1</dd>" in shown
    assert "<dd>&lt;b&gt;x&lt;/b&gt;</dd>" in shown
    assert shown.endswith("<h1>Title</h1>\n")


def test_a_line_across_a_text_is_no_front_matter() -> None:
    assert "<dl" not in markdown("Above\n\n---\na: b\n---\n")


def test_a_difference_reads_the_same_from_two_texts_and_from_a_unified_diff() -> None:
    lines = diff("one\ntwo\n", "one\n2\n")
    assert list(lines) == [("cut", "@@ -1,2 +1,2 @@"), ("same", "one"), ("gone", "two"), ("new", "2")]
    assert unified("--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n") == lines
    assert list(unified("")) == []
    assert unified("--- a\n+++ b\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n")[2][0] == "cut"


def test_what_happens_within_a_minute_is_told_apart_by_seconds_in_one_zone() -> None:
    said = datetime(2026, 3, 1, 12, 0, 1, tzinfo=timezone(timedelta(hours=2)))
    assert ">2026-03-01 10:00:01<" in stamp(said)
    assert ">2026-03-01 10:00:41<" in stamp(said + timedelta(seconds=40))
    assert stamp(None, "never yet") == "never yet"


def test_a_day_is_slid_to_from_the_first_that_is_known_or_a_year_ago() -> None:
    assert first_day([datetime(2020, 5, 1, tzinfo=UTC), datetime(2021, 5, 1, tzinfo=UTC)]) == "2020-05-01"
    assert datetime.now(UTC) - datetime.fromisoformat(f"{first_day([])}T00:00:00+00:00") < timedelta(days=366.1)
