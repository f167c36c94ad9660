"""A model that reads what it is shown, answers or fails as the weather is, and writes down what it was asked."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from everkept.errors import Permanent, ProviderDown, RateLimited, Refused, Transient
from everkept.ports.models import Question, RawReply

WORD = re.compile(r"zq\d{5}x")
WEATHERS = ("fine", "down", "limited", "limited_until", "error", "garbage", "refusal", "late", "permanent")
QuestionKey = tuple[str, tuple[str, ...]]
_FILLER = "They spoke at some length about plans, people and places, and came back to it later in the day. "


def key_of(question: Question) -> QuestionKey:
    """What names a piece of work from outside: the step and the words it rests on; known facts may move."""
    shown = question.user
    if question.step in ("facts", "summary"):
        shown = shown.partition("<transcript>\n")[2]
    return question.step, tuple(dict.fromkeys(WORD.findall(shown)))


class Provider:
    """`ports.models.LanguageModel` of all workers."""

    name = "fake:model"
    pool = "fake"

    def __init__(self, asked: Callable[[QuestionKey], None], answered: Callable[[QuestionKey, bool], None]) -> None:
        self.weather = "fine"
        self.late: list[tuple[asyncio.Future[None], QuestionKey]] = []
        self.tally: Counter[str] = Counter()
        self._asked = asked
        self._answered = answered

    async def ask(self, question: Question) -> RawReply:
        key = key_of(question)
        self._asked(key)
        self.tally[f"ask.{question.step}"] += 1
        weather = self.weather
        if weather == "late":
            await self._hang(key)
            weather = "fine"
        self.tally[f"weather.{weather}"] += 1
        match weather:
            case "down":
                raise ProviderDown("401: the key is not valid")
            case "limited":
                raise RateLimited("429")
            case "limited_until":
                raise RateLimited("429", retry_after_s=300.0)
            case "error":
                raise Transient("status 500")
            case "refusal":
                raise Refused("I cannot help with that")
            case "permanent":
                raise Permanent("400: malformed")
        text = "Sorry, here is {no JSON" if weather == "garbage" else json.dumps(answer(question))
        self._answered(key, weather != "garbage")
        return RawReply(text=text, tokens_in=len(question.user) // 4, tokens_out=len(text) // 4, usd=0.001)

    async def _hang(self, key: QuestionKey) -> None:
        waiting = (asyncio.get_running_loop().create_future(), key)
        self.late.append(waiting)
        try:
            await waiting[0]
        finally:
            self.late.remove(waiting)
        self.tally["late.answered"] += 1

    def estimate_usd(self, tokens_in: int, tokens_out: int) -> float | None:
        return 0.001

    async def close(self) -> None:
        return None


def answer(question: Question) -> dict[str, Any]:
    """The same reply to the same question: every line becomes one fact, and every word stands in the summary."""
    _, words = key_of(question)
    match question.step:
        case "facts":
            return {"facts": [_fact(turn) for turn in _turns(question)]}
        case "conflicts":
            pairs = [int(n) for n in re.findall(r'"pair": (\d+)', question.user)]
            return {"verdicts": [{"pair": n, "verdict": "new"} for n in pairs]}
        case "fold":
            return {"summary": f"So far: {' '.join(words[-60:])}."}
        case _:
            return {"summary": f"{_FILLER}They named {' '.join(words)}.", "learnings": [f"Learned {words[0]}."]}


def _turns(question: Question) -> list[dict[str, Any]]:
    inside = question.user.partition("<transcript>\n")[2].partition("\n</transcript>")[0]
    return [json.loads(line) for line in inside.splitlines()]


def _fact(turn: dict[str, Any]) -> dict[str, Any]:
    text: str = turn["text"]
    word = WORD.findall(text)[0]
    predicate, holds = next(
        (p, h) for start, p, h in (
            ("I live", "lives in", "one"), ("I work", "supervises shifts at", "unclear"), ("I like", "likes", "many"),
        ) if text.startswith(start)
    )  # fmt: skip
    return {
        "entity": turn["speaker"], "predicate": predicate, "object": f"Place {word}",
        "statement": f"{turn['speaker']} {predicate} Place {word}.", "quote": text, "seq": turn["seq"],
        "confidence": 0.9, "valid_from": "", "valid_until": "", "change": "state", "replaces": "", "holds": holds,
        "kind": "entity", "object_type": "place",
    }  # fmt: skip
