"""Our parts in any settings file: put in, put in again, taken out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from tests.unit.wiring.conftest import PYTHON
from tests.unit.wiring.jsonc_texts import texts

from everkept.wiring import AGENTS
from everkept.wiring.agent import Commands, Place
from everkept.wiring.json_parts import HookPart, ServerPart
from everkept.wiring.jsonc import parse

PLACE = Place(home=Path("/home/me/.everkept"), user=Path("/home/me"), env={})
PARTS = [
    (agent.name, part)
    for agent in AGENTS.values()
    for part in agent.parts(PLACE)
    if isinstance(part, HookPart | ServerPart)
]
EVERY_PART = pytest.mark.parametrize(
    ("agent", "part"), PARTS, ids=[f"{agent}-{part.path.name}-{type(part).__name__}" for agent, part in PARTS]
)


@EVERY_PART
@given(text=texts())
@settings(max_examples=15, deadline=None)
def test_any_settings_file_is_byte_for_byte_as_it_was(agent: str, part: HookPart | ServerPart, text: str) -> None:
    """Without any backup: what was added is taken out of the text."""
    commands = Commands.of(PLACE, agent, PYTHON)
    assume(is_fit(text))
    kept = part.kept(text)
    after = part.add(text, commands)
    assert part.add(after, commands) == after
    assert part.foreign(after) == part.foreign(text)
    assert part.remove(after, kept) == text


@EVERY_PART
@given(text=texts())
@settings(max_examples=15, deadline=None)
def test_what_is_added_is_there_beside_what_was_there(agent: str, part: HookPart | ServerPart, text: str) -> None:
    assume(is_fit(text))
    after = part.add(text, Commands.of(PLACE, agent, PYTHON))
    if isinstance(part, HookPart):
        assert set(part.wired_events(after)) == set(part.events)
    elif part.find(text)[1] is None:
        assert part.is_ours(part.find(after)[1])
    before, now = parse(text).root.value, parse(after).root.value
    assert before.keys() <= now.keys()


@EVERY_PART
@pytest.mark.parametrize("text", ["", "\n", "{}", "{\n}\n", " { } "])
def test_an_empty_file_is_as_empty_as_it_was(agent: str, part: HookPart | ServerPart, text: str) -> None:
    after = part.add(text, Commands.of(PLACE, agent, PYTHON))
    bare = part.remove(after, part.kept(text))
    assert part.is_bare(bare)
    assert bare == text or not text.strip()


def is_fit(text: str) -> bool:
    """Whether containers of ours are what they must be in this text."""
    value = parse(text).root.value
    boxes = [value.get(key, {}) for key in ("hooks", "mcpServers", "mcp")]
    return all(isinstance(box, dict) for box in boxes)
