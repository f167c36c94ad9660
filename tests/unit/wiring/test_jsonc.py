"""Reading JSON with the place of each part."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.wiring.jsonc_texts import VALUES, texts

from everkept.wiring.jsonc import DEPTH_MAX, JsonFault, Node, parse


@given(VALUES, st.sampled_from([None, 1, "\t"]))
def test_json_means_the_same_as_to_the_standard_library(value: Any, indent: int | str | None) -> None:
    text = json.dumps(value, indent=indent)
    assert json.loads(text) == parse(text).root.value


@given(texts())
def test_each_part_is_where_it_is_said_to_be(text: str) -> None:
    def check(node: Node) -> None:
        assert parse(text[node.start : node.end]).root.value == node.value
        for child in node.children:
            assert child.key is None or text[child.start] == '"'
            assert child.comma is None or text[child.comma] == ","
            check(child.value)

    check(parse(text).root)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1), ("{", 1), ("{\n\n", 3), ('{"a": 1\n"b": 2}', 2), ('{"a" 1}', 1), ("{a: 1}", 1), ("[1 2]", 1),
        ('{"a":\n\n tru}', 3), ("{}\n{}", 2), ("{} x", 1), ('"a\nb"', 1), ("{\n/* no end", 2), ("01", 1), ("1.", 1),
        ("nullx", 1), ("'a'", 1), ('"\\x"', 1), ("NaN", 1), ('{"a": 1,, "b": 2}', 1),
    ],
)  # fmt: skip
def test_what_is_not_json_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(JsonFault) as caught:
        parse(text)
    assert line == caught.value.line


def test_comments_and_trailing_commas_are_read() -> None:
    text = '// head\n{ /* a */ "a": [1, 2,], // b\r\n "b": {"c": "// no comment",}, }\n// tail'
    assert parse(text).root.value == {"a": [1, 2], "b": {"c": "// no comment"}}
    assert [text[each.start : each.end] for each in parse(text).comments] == ["// head", "/* a */", "// b", "// tail"]


def test_the_last_of_two_members_of_one_name_counts() -> None:
    node = parse('{"a": 1, "a": 2}').root.member("a")
    assert node is not None
    assert node.value == 2


def test_a_text_nested_without_end_is_refused_and_not_a_crash() -> None:
    with pytest.raises(JsonFault, match=f"deeper than {DEPTH_MAX}"):
        parse("[" * 100_000)


def test_a_number_of_thousands_of_digits_is_no_fault() -> None:
    assert parse(f'{{"a": {"9" * 10_000}}}').root.member("a") is not None
