from __future__ import annotations

from everkept.doors.http.web.render import diff, markdown, unified


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
