"""Edits of JSON texts: what is added can be read, and every other byte stays."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from tests.unit.wiring.jsonc_texts import texts

from everkept.errors import CannotWire
from everkept.wiring.json_edit import append_item, drop_child, drop_member, set_member
from everkept.wiring.jsonc import parse

MARKED = {"deep": ["OURS", {"more": "OURS"}]}


@given(texts())
def test_a_member_is_added_and_all_else_means_the_same(text: str) -> None:
    after = set_member(text, ("new one", "in it"), "key", MARKED)
    assert parse(text).root.value | {"new one": {"in it": {"key": MARKED}}} == parse(after).root.value


@given(texts())
def test_adding_only_adds(text: str) -> None:
    """Every byte of before is still there, in its order."""
    after = iter(set_member(text, (), "new one", MARKED))
    assert all(letter in after for letter in text)


@given(texts())
def test_a_member_that_is_added_and_dropped_again_leaves_the_meaning_and_the_comments(text: str) -> None:
    after = drop_member(set_member(text, (), "new one", MARKED), (), "new one")
    assert parse(text).root.value == parse(after).root.value
    before_comments = [text[each.start : each.end] for each in parse(text).comments]
    assert before_comments == [after[each.start : each.end] for each in parse(after).comments]
    if parse(text).root.children:
        assert text == after


@example('{\n  "a": 1, // n\n  "b": 2/*\n*/\n}')
@example('{\n  "a": 1, // n\n  "b": 2, /* b */ "c": 3\n}')
@given(texts())
def test_each_child_can_be_dropped_alone(text: str) -> None:
    root = parse(text).root
    for index, child in enumerate(root.children):
        after = parse(drop_child(text, root, index)).root.value
        assert {key: value for key, value in root.value.items() if key != child.key} == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "k": 1\n}'),
        ("{\n}\n", '{\n  "k": 1\n}\n'),
        ('{"a": 0}', '{"a": 0, "k": 1}'),
        ('{"a": 0, }', '{"a": 0, "k": 1, }'),
        ('{\n    "a": 0 // why\n}', '{\n    "a": 0, // why\n    "k": 1\n}'),
        ('{\r\n\t"a": 0\r\n}', '{\r\n\t"a": 0,\r\n\t"k": 1\r\n}'),
        ('{\n  "a": 0, // why\n  // later: "b"\n}', '{\n  "a": 0, // why\n  "k": 1,\n  // later: "b"\n}'),
        ("{\n  // nothing yet\n}", '{\n  // nothing yet\n  "k": 1\n}'),
    ],
)
def test_what_is_added_follows_the_form_of_the_file(before: str, after: str) -> None:
    assert after == set_member(before, (), "k", 1)
    if "[" not in before and parse(before).root.children:
        assert before == drop_member(after, (), "k")


def test_a_deep_value_takes_the_indentation_of_the_file() -> None:
    before = '{\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{}\n\t\t]\n\t}\n}'
    after = append_item(before, ("hooks", "Stop"), {"a": [1]})
    assert after == before.replace("{}", '{},\n\t\t\t{\n\t\t\t\t"a": [\n\t\t\t\t\t1\n\t\t\t\t]\n\t\t\t}')


def test_a_value_after_a_line_comment_is_not_swallowed_when_its_neighbour_goes() -> None:
    text = "[\n  1, // one\n  2, 3\n]"
    assert parse(drop_child(text, parse(text).root, 1)).root.value == [1, 3]


@pytest.mark.parametrize(("text", "where"), [("[]", "the whole"), ('{\n"a": 1}', "`a`"), ('{"a": {"b": []}}', "`a.b`")])
def test_a_container_of_another_kind_is_refused_with_its_line(text: str, where: str) -> None:
    with pytest.raises(CannotWire, match="line ") as caught:
        set_member(text, ("a", "b"), "k", 1)
    assert where in caught.value.message
