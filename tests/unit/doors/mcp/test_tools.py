"""What clients see of the tools: small, flat, and honest about what each does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.doors.mcp.memories import NoMemories

from everkept.doors.mcp.calls import Calls
from everkept.doors.mcp.tools import BY_NAME, INSTRUCTIONS, TOOLS

TOKENS_MAX = 2_000
CHARS_A_TOKEN = 4
COMBINATORS = {"anyOf", "oneOf", "allOf", "not", "if", "$ref", "$defs", "patternProperties"}


def test_all_tool_definitions_together_stay_under_2000_tokens():
    compact = json.dumps(TOOLS, ensure_ascii=False, separators=(",", ":"))

    assert len(compact) / CHARS_A_TOKEN < TOKENS_MAX


def test_the_tools_are_the_eight_that_are_promised_and_each_does_something():
    promised = ["remember", "recall", "read", "forget", "handoff", "timeline", "review", "status"]

    assert [tool["name"] for tool in TOOLS] == promised
    assert list(Calls(NoMemories())._tools) == promised
    assert INSTRUCTIONS.endswith(".")


@pytest.mark.parametrize("tool", TOOLS, ids=list(BY_NAME))
def test_a_schema_is_one_flat_object_without_references_or_combinators(tool):
    schema = tool["inputSchema"]

    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert not COMBINATORS & set(_words(schema))
    assert all(each["type"] != "object" for each in schema["properties"].values())
    assert set(schema.get("required", ())) <= schema["properties"].keys()


@pytest.mark.parametrize("tool", TOOLS, ids=list(BY_NAME))
def test_annotations_say_everything_that_a_client_may_ask(tool):
    hints = {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}

    assert tool["annotations"].keys() == hints
    assert tool["annotations"]["openWorldHint"] is False
    assert tool["annotations"]["title"] == tool["title"]


def test_only_tools_that_write_nothing_are_marked_as_reading():
    reading = {name for name, tool in BY_NAME.items() if tool["annotations"]["readOnlyHint"]}
    destroying = {name for name, tool in BY_NAME.items() if tool["annotations"]["destructiveHint"]}

    assert reading == {"recall", "read", "timeline", "status"}
    assert destroying == {"forget"}


def _words(schema: Any) -> Iterator[str]:
    match schema:
        case dict():
            for name, value in schema.items():
                yield name
                yield from _words(value)
        case list():
            for value in schema:
                yield from _words(value)
