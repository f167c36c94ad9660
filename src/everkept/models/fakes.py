"""A scripted model for tests, ours and our users': no network, no clock, every question kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from everkept.ports.models import Question, RawReply

Scripted: TypeAlias = str | dict[str, Any] | list[Any] | RawReply | Exception
"""Text, JSON to be dumped, a whole reply, or an error to raise."""
Script: TypeAlias = Iterable[Scripted] | Callable[[Question], Scripted]


class ScriptedModel:
    """Answers from a list, in order, or from a function of the question.

    Weather is scripted too: `fail_with(error)` makes every call fail until `fail_with(None)`, as an outage does;
    a list that has run out raises AssertionError, so that a question nobody expected is seen.
    """

    def __init__(
        self, script: Script, *, name: str = "fake:scripted", pool: str = "fake", usd: float | None = 0.0
    ) -> None:
        self._answer = script if callable(script) else _in_turn(script)
        self._name = name
        self._pool = pool
        self._usd = usd
        self._weather: Exception | None = None
        self.questions: list[Question] = []
        """Every question asked, also those that failed."""

    @property
    def name(self) -> str:
        return self._name

    @property
    def pool(self) -> str:
        return self._pool

    @property
    def calls(self) -> int:
        return len(self.questions)

    def calls_of(self, step: str) -> int:
        return sum(question.step == step for question in self.questions)

    def fail_with(self, error: Exception | None) -> None:
        self._weather = error

    async def ask(self, question: Question) -> RawReply:
        self.questions.append(question)
        if self._weather is not None:
            raise self._weather
        scripted = self._answer(question)
        if isinstance(scripted, Exception):
            raise scripted
        if isinstance(scripted, RawReply):
            return scripted
        text = scripted if isinstance(scripted, str) else json.dumps(scripted, ensure_ascii=False)
        return RawReply(text=text, tokens_in=len(question.user) // 4, tokens_out=len(text) // 4, usd=self._usd)

    def estimate_usd(self, tokens_in: int, tokens_out: int) -> float | None:
        return self._usd

    async def close(self) -> None:
        return None


def _in_turn(script: Iterable[Scripted]) -> Callable[[Question], Scripted]:
    rest = iter(script)

    def answer(question: Question) -> Scripted:
        for scripted in rest:
            return scripted
        raise AssertionError(f"no reply is scripted for another question ({question.step})")

    return answer
