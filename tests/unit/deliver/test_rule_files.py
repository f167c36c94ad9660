"""Blocks and skill files: byte-stable, found again by page, and removed to the byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everkept.deliver.rule_files import (
    RulePage,
    block_in,
    can_be_shown,
    can_be_skill,
    skill_file,
    skill_in,
    with_block,
    without_block,
)
from everkept.errors import Conflict

UV = RulePage(slug="use-uv", version=3, title="Use uv", body="Use uv, not pip.\n\n## Why\n\nIt locks.")
LINT = RulePage(slug="lint-first", version=1, title="Lint first", body="- before every commit")
BLOCK = """\
<!-- everkept:rules:begin use-uv@3 lint-first@1 -->
What was agreed on in this project. Edit it here or with `everkept pages`: either way it is kept.

<!-- everkept:rule use-uv@3 -->
## Use uv

Use uv, not pip.

## Why

It locks.

<!-- everkept:rule lint-first@1 -->
## Lint first

- before every commit

<!-- everkept:rules:end -->
"""
FILES = st.builds(
    lambda lines, newline, end: newline.join(lines) + end,
    st.lists(st.sampled_from(["", "# Ours", "words", "<!-- a comment -->", "  indented"]), max_size=6),
    st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\n", "\r\n", "\n\n"]),
)  # fmt: skip


def test_a_block_stands_at_the_end_below_an_empty_line():
    assert with_block("# Ours\n", [UV, LINT]) == f"# Ours\n\n{BLOCK}"


def test_the_same_pages_give_the_same_bytes():
    once = with_block("# Ours\n", [UV, LINT])
    assert with_block(once, [UV, LINT]) == once


def test_what_stands_in_the_block_is_found_again_by_page():
    block = block_in(with_block("# Ours\n", [UV, LINT]))
    assert block is not None
    assert block.listed == {"use-uv": 3, "lint-first": 1}
    assert block.found == (UV, LINT)


def test_what_was_changed_and_taken_out_by_hand_is_seen():
    edited = with_block("", [UV, LINT]).replace("not pip", "never pip")
    edited = edited[: edited.index("<!-- everkept:rule lint")] + "<!-- everkept:rules:end -->\n"
    block = block_in(edited)
    assert block is not None
    assert [page.slug for page in block.found] == ["use-uv"]
    assert block.found[0].body.startswith("Use uv, never pip.")
    assert block.listed.keys() == {"use-uv", "lint-first"}


def test_a_new_version_takes_the_place_of_the_old_and_what_is_around_stays():
    old = with_block("# Ours\n", [UV]) + "\n# Below\n"
    new = with_block(old, [RulePage(slug="use-uv", version=4, title="Use uv", body="Always.")])
    assert new.startswith("# Ours\n\n<!-- everkept:rules:begin use-uv@4 -->\n")
    assert new.endswith("## Use uv\n\nAlways.\n\n<!-- everkept:rules:end -->\n\n# Below\n")


@given(FILES)
def test_without_its_block_a_file_is_what_it_was_to_the_byte(text: str):
    assert without_block(with_block(with_block(text, [UV]), [UV, LINT])) == text


def test_without_its_block_a_file_that_was_made_for_it_is_gone():
    assert without_block(with_block("", [UV], is_new=True)) is None
    assert without_block(with_block("", [UV], is_new=True) + "by hand\n") == "by hand\n"
    assert without_block("no block\n") == "no block\n"


def test_a_file_with_windows_line_ends_keeps_them():
    text = with_block("# Ours\r\n", [UV])
    assert "\n" not in text.replace("\r\n", "")
    block = block_in(text)
    assert block is not None
    assert block.found == (UV,)


@pytest.mark.parametrize("broken", [BLOCK + BLOCK, BLOCK[:40] + "\n", "<!-- everkept:rules:end -->\n"])
def test_marks_that_do_not_pair_are_not_guessed_at(broken: str):
    for read in (block_in, without_block):
        if broken == BLOCK[:40] + "\n":
            assert read(broken) in (None, broken), "half a mark is no mark"
        else:
            with pytest.raises(Conflict, match="do not pair"):
                read(broken)


def test_words_that_look_like_our_marks_are_not_shown():
    assert can_be_shown(UV)
    assert not can_be_shown(RulePage(slug="x", version=1, title="x", body=f"see {BLOCK}"))


def test_a_skill_has_the_head_that_agents_read_and_is_found_again():
    text = skill_file(LINT)
    assert text == (
        '---\nname: lint-first\ndescription: "Lint first: - before every commit"\neverkept: lint-first@1\n---\n\n'
        "- before every commit\n"
    )
    assert skill_in(text) == RulePage(slug="lint-first", version=1, title="", body="- before every commit")
    assert skill_in("---\nname: theirs\ndescription: x\n---\n\nwords\n") is None


def test_only_plain_names_are_names_of_skills():
    assert can_be_skill(LINT)
    assert not any(can_be_skill(RulePage(slug=s, version=1, title="x", body="x")) for s in ("ü", "a" * 65, "-x"))
