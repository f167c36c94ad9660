"""Patches of pages: byte-exact outside of what they change, and taken back under later versions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stubs.effort import counted

from everkept.domain.pages import sections_of, spans_of
from everkept.domain.review.patch import patched, reversed_patch
from everkept.domain.review.values import Action, Draft
from everkept.errors import Conflict

BODY = "Before all.\n\n## Setup\n\nRun `make`.\n\n```\n## not a heading\n```\n\n## Tests\nRun `pytest`.\n"
LINES = st.lists(
    st.sampled_from(["", "words", "# One", "## Two", "```", "more  ", "- item", "\ttab", "ü 語"]), max_size=12
)
BODIES = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n", "\n\n"]))


def draft(action: Action, body: str = "New words.", section: str = "", section_hash: str = "") -> Draft:
    return Draft(
        action=action, kind="rule", slug="page", title="Page", body=body, section=section, section_hash=section_hash,
        base=1, why="", confidence=0.9, signature="s", evidence=(),
    )  # fmt: skip


def hash_of(body: str, anchor: str) -> str:
    return next(s.text_hash for s in sections_of("Page", body) if s.anchor == anchor)


def test_a_new_page_is_what_was_proposed_to_the_byte():
    assert patched("", draft("create", "# A\n\nwords  \n")) == "# A\n\nwords  \n"


def test_an_addition_stands_below_an_empty_line_at_the_end():
    assert patched("old\n", draft("append")) == "old\n\nNew words.\n"
    assert patched("old", draft("append")) == "old\n\nNew words.\n"
    assert patched("old\n\n", draft("append")) == "old\n\nNew words.\n"
    assert patched("", draft("append")) == "New words.\n"


def test_an_added_section_has_its_heading_and_an_own_anchor():
    assert patched("old\n", draft("add_section", section="Pitfalls")) == "old\n\n## Pitfalls\n\nNew words.\n"
    with pytest.raises(Conflict, match="has a section 'Tests' already"):
        patched(BODY, draft("add_section", section="Tests"))


def test_a_section_is_replaced_between_its_heading_and_the_next():
    changed = patched(BODY, draft("replace_section", section="setup", section_hash=hash_of(BODY, "setup")))
    assert changed == "Before all.\n\n## Setup\n\nNew words.\n\n## Tests\nRun `pytest`.\n"


def test_the_words_before_any_heading_are_the_section_of_the_title():
    changed = patched(BODY, draft("replace_section", section="page", section_hash=hash_of(BODY, "page")))
    assert changed == BODY.replace("Before all.", "New words.")


def test_front_matter_is_no_part_of_a_section():
    body = "---\ntags: [a]\n---\nBefore.\n\n# One\nwords\n"
    changed = patched(body, draft("replace_section", section="page", section_hash=hash_of(body, "page")))
    assert changed == "---\ntags: [a]\n---\nNew words.\n\n# One\nwords\n"


def test_the_last_section_keeps_an_open_end_closed():
    body = "# One\nwords"
    changed = patched(body, draft("replace_section", section="one", section_hash=hash_of(body, "one")))
    assert changed == "# One\nNew words.\n"


def test_a_section_that_was_changed_or_is_gone_is_not_replaced():
    with pytest.raises(Conflict, match="was changed since"):
        patched(BODY, draft("replace_section", section="setup", section_hash="0" * 24))
    with pytest.raises(Conflict, match="no section 'deploy' any more"):
        patched(BODY, draft("replace_section", section="deploy", section_hash="0" * 24))


def test_a_page_with_windows_line_ends_keeps_them_and_gets_no_others():
    body = "old\r\n\r\n## One\r\nwords\r\n\r\n## Two\r\nmore\r\n"
    new = draft("replace_section", "a\nb", section="one", section_hash=hash_of(body, "one"))
    assert patched(body, new) == "old\r\n\r\n## One\r\na\r\nb\r\n\r\n## Two\r\nmore\r\n"
    assert patched(body, draft("append", "a\nb")) == f"{body}\r\na\r\nb\r\n"


def test_retiring_a_page_changes_no_word_of_it():
    assert patched(BODY, draft("retire", "")) == BODY


@given(BODIES)
def test_the_span_of_each_section_holds_its_words_and_nothing_else(body: str):
    for span in spans_of("Page", body):
        assert body[span.start : span.end].strip("\n") == span.section.body


@given(BODIES, st.data())
def test_whatever_a_patch_changes_the_rest_stays_and_can_be_brought_back(body: str, data: st.DataObject):
    sections = sections_of("Page", body)
    added = patched(body, draft("append"))
    assert added.startswith(body)
    assert reversed_patch(body, added, added) == body
    if sections:
        one = data.draw(st.sampled_from(sections))
        changed = patched(body, draft("replace_section", section=one.anchor, section_hash=one.text_hash))
        place = next(s for s in spans_of("Page", body) if s.section == one)
        assert changed.startswith(body[: place.start])
        assert changed.endswith(body[place.end :])
        assert reversed_patch(body, changed, changed) == body


def test_a_patch_is_taken_back_from_under_later_versions():
    after = patched(BODY, draft("replace_section", section="setup", section_hash=hash_of(BODY, "setup")))
    now = f"On top.\n{after}\nAt the end.\n"
    assert reversed_patch(BODY, after, now) == f"On top.\n{BODY}\nAt the end.\n"


def test_an_addition_to_an_open_line_is_taken_back_from_above_later_words():
    after = patched("old", draft("append"))
    assert reversed_patch("old", after, f"{after}later\n") == "old\nlater\n"


def test_what_was_changed_in_the_same_lines_since_is_a_conflict():
    after = patched(BODY, draft("append"))
    with pytest.raises(Conflict, match="changed since"):
        reversed_patch(BODY, after, after.replace("New words.", "Newer words."))


def test_of_equal_words_those_at_the_patch_s_own_place_are_taken_back():
    before = "# A\nsame\n\n# B\nother\n"
    after = patched(before, draft("replace_section", "same", section="b", section_hash=hash_of(before, "b")))
    assert after == "# A\nsame\n\n# B\nsame\n"
    assert reversed_patch(before, after, f"On top.\n{after}") == f"On top.\n{before}"


def test_words_that_stand_in_two_places_alike_are_not_guessed_at():
    after = patched("old\n", draft("append"))
    with pytest.raises(Conflict, match="changed since"):
        reversed_patch("old\n", after, f"{after}\n{after}")


def test_taking_back_from_a_long_page_of_equal_lines_is_no_work():
    body = "- a\n\n- b\n" * 20_000
    after = patched(body, draft("append"))
    taken_back, calls = counted(lambda: reversed_patch(body, after, f"On top.\n{after}At the end.\n"))
    assert taken_back == f"On top.\n{body}At the end.\n"
    assert calls < 1_000  # by far fewer than there are lines
