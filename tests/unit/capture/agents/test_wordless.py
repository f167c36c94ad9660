"""An event in which nothing was said or done is kept, and is nothing to be found by."""

from __future__ import annotations

from typing import Any

import pytest

from everkept.capture.agents.keeping import prepare
from everkept.domain.session import AgentEvent, ToolCall


def own_words(**told: Any) -> str:
    event = AgentEvent(**{"agent": "codex", "session": "s1", "key": "k1", "source": "hook", "kind": "turn_end", **told})
    return prepare([event], secret=b"s" * 32, now_us=1)[0].analysed.own


@pytest.mark.parametrize("told", [{}, {"detail": "completed"}, {"kind": "session_start", "detail": "startup"}])
def test_the_name_of_an_event_is_no_word_that_finds_it(told: dict[str, object]) -> None:
    assert own_words(**told) == ""


def test_what_was_said_or_done_finds_it() -> None:
    assert "harbour" in own_words(text="the harbour is closed")
    assert "pytest" in own_words(kind="tool", tool=ToolCall(name="Bash", family="shell", command="pytest -q"))
