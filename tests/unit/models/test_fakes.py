"""The scripted model that we ship for the tests of others."""

from __future__ import annotations

import asyncio

import pytest

from everkept.errors import ProviderDown, Transient
from everkept.models.fakes import ScriptedModel
from everkept.models.prompts.questions import build_fold_question

QUESTION = build_fold_question(None, ["a"], chars_max=10)


def test_replies_come_in_turn_and_questions_are_kept() -> None:
    model = ScriptedModel(["one", {"summary": "two"}, Transient()])
    assert asyncio.run(model.ask(QUESTION)).text == "one"
    assert asyncio.run(model.ask(QUESTION)).text == '{"summary": "two"}'
    with pytest.raises(Transient):
        asyncio.run(model.ask(QUESTION))
    with pytest.raises(AssertionError, match="no reply is scripted"):
        asyncio.run(model.ask(QUESTION))
    assert (model.calls, model.calls_of("fold"), model.calls_of("facts")) == (4, 4, 0)


def test_weather_lasts_until_it_is_mended() -> None:
    model = ScriptedModel(lambda question: question.step)
    model.fail_with(ProviderDown())
    for _ in range(3):
        with pytest.raises(ProviderDown):
            asyncio.run(model.ask(QUESTION))
    model.fail_with(None)
    assert asyncio.run(model.ask(QUESTION)).text == "fold"
