"""Differences are what `diff -u` says, and quick on any page."""

from __future__ import annotations

import difflib
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stubs.effort import counted

from everkept.domain.review.difference import difference

TEXTS = st.lists(st.sampled_from(["a", "b", "", "  c", "## d"]), max_size=12).map("\n".join)


def shown(before: str, after: str) -> str:
    return difference(before, after, before_name="old", after_name="new")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "a\n"), ("a\n", ""), ("a\n", "b\n"), ("1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\nfive\n6\n7\n8\n"),
        ("a\nb\n" * 5, "a\nb\n" * 5 + "c\n"), ("x\n1\n2\n3\n4\n5\n6\n7\ny\n", "X\n1\n2\n3\n4\n5\n6\n7\nY\n"),
    ],
)  # fmt: skip
def test_a_difference_is_as_the_standard_library_writes_it(before: str, after: str):
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), "old", "new")
    assert shown(before, after) == "".join(lines)


def test_the_lines_around_a_change_are_never_taken_for_it():
    shown_here = shown("a\n" * 8, "a\na\na\nb\n" + "a\n" * 4)
    assert shown_here == "--- old\n+++ new\n@@ -1,7 +1,7 @@\n a\n a\n a\n-a\n+b\n a\n a\n a\n"


def test_texts_that_are_the_same_differ_in_nothing():
    assert shown("a\nb", "a\nb") == ""


def test_a_last_line_without_an_end_is_told():
    assert shown("a", "a\n") == "--- old\n+++ new\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"


@pytest.mark.skipif(shutil.which("patch") is None, reason="there is no `patch` here")
@settings(max_examples=30, deadline=None)
@given(before=TEXTS.filter(bool), after=TEXTS.filter(bool))
def test_patch_makes_the_one_of_the_other(before: str, after: str):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page"
        file.write_text(before, "utf-8")
        if before != after:
            words = ["patch", "-s", "--posix", str(file)]
            done = subprocess.run(words, input=shown(before, after), text=True, check=False, capture_output=True)
            assert done.returncode == 0, (before, after, done.stdout, done.stderr)
        assert file.read_text("utf-8") == after


def test_a_long_page_of_equal_lines_is_no_work():
    before = "- a\n\n- b\n" * 20_000
    difference, calls = counted(lambda: shown(before, before[:63_000] + "new\n" + before[63_000:]))
    assert difference.count("\n") == 10
    assert calls < 1_000  # by far fewer than there are lines
