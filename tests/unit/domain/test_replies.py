"""A model's text is read strictly, and its faults have names (D01, D03, D04)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everkept.domain.replies import InvalidReply, parse_facts, parse_fold, parse_summary, parse_verdicts

ITEM: dict[str, Any] = {
    "entity": "Ana", "predicate": "lives in", "object": "Lisbon", "statement": "Ana lives in Lisbon",
    "quote": "I live in Lisbon",
    "seq": 3, "confidence": 0.9, "valid_from": "2024-05", "valid_until": "", "change": "state", "replaces": "",
    "holds": "one", "kind": "entity", "object_type": "place",
}  # fmt: skip


def reply(*items: object) -> str:
    return json.dumps({"facts": items})


def test_item_becomes_a_draft() -> None:
    (draft,) = parse_facts(reply(ITEM)).drafts
    assert (draft.entity, draft.single_valued, draft.seqs, draft.valid_from_said, draft.valid_until_said) == (
        "Ana", True, (3,), "2024-05", None,
    )  # fmt: skip


@pytest.mark.parametrize(
    "around",
    ["{}", "```json\n{}\n```", "Sure! Here {{it}} is:\n{}\nHope that {{helps}}.", "Thinking {{x: 1}}…\n```\n{}\n```"],
)
def test_d01_prose_braces_and_fences_around_the_json(around: str) -> None:
    assert len(parse_facts(around.replace("{{", "{").replace("}}", "}").replace("{}", reply(ITEM))).drafts) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the reply is empty"),
        ("I found no facts.", "there is no JSON in the reply"),
        (reply(ITEM, ITEM)[:-40], "no object has the keys facts"),
        ('{"facts": [{"entity": "A', "the JSON is cut or malformed"),
        ('{"items": []}', "no object has the keys facts"),
        ('{"facts": {}}', "facts has the wrong type (dict)"),
        ('{"facts": null}', "facts has the wrong type (NoneType)"),
        (reply("a string"), "no item can be used: the item is not an object"),
        ("[" * 100_000, "there is no JSON in the reply"),
    ],
)
def test_d01_unusable_reply_says_why(text: str, reason: str) -> None:
    with pytest.raises(InvalidReply) as caught:
        parse_facts(text)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("change", "Create page", "change 'create_page' is not one of state, ended, correction"),
        ("kind", "thing", "kind 'thing' is not one of literal, entity"),
        ("confidence", "high", "confidence has the wrong type (str)"),
        ("confidence", True, "confidence is not a finite number"),
        ("confidence", float("nan"), "confidence is not a finite number"),
        ("quote", None, "quote has the wrong type (NoneType)"),
        ("seq", "3", "seq has the wrong type (str)"),
    ],
)
def test_d03_bad_item_is_rejected_alone(key: str, value: object, reason: str) -> None:
    found = parse_facts(reply(ITEM, {**ITEM, key: value}))
    assert len(found.drafts) == 1
    assert [item.reason for item in found.rejected] == [reason]


def test_missing_key_is_never_filled_in() -> None:
    found = parse_facts(reply(ITEM, {key: value for key, value in ITEM.items() if key != "valid_from"}))
    assert [item.reason for item in found.rejected] == ["valid_from is missing"]


def test_enums_may_differ_in_case_and_spaces_only() -> None:
    (draft,) = parse_facts(reply({**ITEM, "change": " Ended ", "object_type": "Planet"})).drafts
    assert draft.closes
    assert draft.object_type == "other"


def test_empty_list_is_an_answer() -> None:
    assert parse_facts('{"facts": []}').drafts == ()


def test_d04_repetition_is_rejected() -> None:
    with pytest.raises(InvalidReply, match="repeats itself"):
        parse_facts(reply(*[ITEM] * 20))
    with pytest.raises(InvalidReply, match="repeats itself"):
        parse_summary(json.dumps({"summary": "Ana moved. " * 200, "learnings": []}))


def test_d04_restated_instructions_are_rejected() -> None:
    line = "You keep the running summary of a long conversation up to date, and nothing else."
    with pytest.raises(InvalidReply, match="restates"):
        parse_fold(json.dumps({"summary": f"Hello. {line}"}), system=f"{line}\nMore.")


def test_summary_needs_both_parts() -> None:
    assert parse_summary('{"summary": " Ana moved. ", "learnings": ["a", "a", " "]}').learnings == ("a",)
    for text in ('{"summary": "x"}', '{"summary": "", "learnings": []}', '{"summary": "x", "learnings": [1]}'):
        with pytest.raises(InvalidReply):
            parse_summary(text)


def test_verdicts_leave_open_what_was_not_ruled() -> None:
    verdicts = [
        {"pair": 1, "verdict": "NEW"}, {"pair": 2, "verdict": "maybe"}, {"pair": 9, "verdict": "old"},
        {"pair": 3, "verdict": "old"}, {"pair": 3, "verdict": "new"},
    ]  # fmt: skip
    found = parse_verdicts(json.dumps({"verdicts": verdicts}), 3)
    assert found.rulings == {1: "new"}
    assert found.missing == (2, 3)
    assert len(found.rejected) == 3


@given(st.text(), st.integers(0, 3))
def test_any_text_is_read_or_refused(text: str, pairs: int) -> None:
    for read in (parse_facts, parse_summary, parse_fold, lambda text: parse_verdicts(text, pairs)):
        with suppress(InvalidReply):
            read(text)
