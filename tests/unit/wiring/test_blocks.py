"""Our block in an instruction file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everkept.errors import CannotWire
from everkept.wiring.blocks import BEGIN, END, add_block, has_block, remove_block

LINES = st.lists(st.sampled_from(["", "# Rules", "- be kind", "  text", "<!-- other -->", "é"]), max_size=6)


@given(LINES, st.sampled_from(["\n", "\r\n"]))
def test_a_block_is_put_in_and_taken_out_again(lines: list[str], newline: str) -> None:
    before = "".join(line + newline for line in lines)
    after = add_block(before)
    assert has_block(after)
    assert after.startswith(before)
    assert add_block(after) == after
    assert remove_block(after) == before


def test_an_older_block_is_replaced_where_it_stands() -> None:
    text = f"# Mine\n\n{BEGIN}\nold words\n{END}\n\n# Below\n"
    assert add_block(text) == f"# Mine\n\n{add_block('').rstrip()}\n\n# Below\n"


def test_the_block_follows_the_line_ends_of_the_file() -> None:
    assert "\n" not in add_block("a\r\n").replace("\r\n", "")


@pytest.mark.parametrize("text", [f"a\n{BEGIN}\n", f"a\n{END}\n", f"{END}\n{BEGIN}\n", f"{BEGIN}{END}\n{BEGIN}{END}\n"])
def test_marks_that_do_not_pair_are_refused_with_their_line(text: str) -> None:
    for edit in (add_block, remove_block):
        with pytest.raises(CannotWire, match=r"line \d: the marks"):
            edit(text)


def test_the_block_is_short_and_gives_facts() -> None:
    assert len(add_block("")) < 1_000
    assert "not an instruction" in add_block("")
