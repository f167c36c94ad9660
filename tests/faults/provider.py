"""The model provider of the bench: it understands a handful of sentences, and has weather.

A provider that answers by what it is asked lets a case say what must be remembered. It takes from each message at most
one statement (`read_statement`) and quotes it; everything else it hears gives nothing. Each system's adapter brings a
`mind` that words the statements as that system's prompts want them.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tests.stubs.llm_server import Asked, Fail, LlmServer, Reply, Say

DIMENSIONS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What one message says. `single`: only one object holds at a time; `change`: `state`, `ended` or `correction`."""

    predicate: str
    object: str
    text: str
    quote: str
    single: bool
    change: str = "state"
    kind: str = "literal"


_SENTENCES = (
    (re.compile(r"I live in (?P<object>[^.,;!?]+)"), "lives in", True, "state", "entity", "The speaker lives in {}."),
    (re.compile(r"I like (?P<object>[^.,;!?]+)"), "likes", False, "state", "literal", "The speaker likes {}."),
    (re.compile(r"My (?P<topic>[a-z ]+) is (?P<object>[^.,;!?]+)"), "has {topic}", True, "state", "literal",
     "The {topic} of the speaker is {}."),
)  # fmt: skip


def read_statement(text: str) -> Statement | None:
    """`I live in …`, `I like …`, `My … is …`: the first that the text holds."""
    for pattern, predicate, single, change, kind, words in _SENTENCES:
        if found := pattern.search(text):
            topic = found.groupdict().get("topic", "")
            thing = found["object"].strip()
            return Statement(
                predicate=predicate.format(topic=topic), object=thing, text=words.format(thing, topic=topic),
                quote=found[0], single=single, change=change, kind=kind,
            )  # fmt: skip
    return None


_SINGLE = (re.compile(r"The speaker (lives in) "), re.compile(r"The ([a-z ]+) of the speaker is "))


def read_back(statement: str) -> str | None:
    """What a statement that was made here is about, where only one object holds at a time."""
    return next((found[1] for pattern in _SINGLE if (found := pattern.match(statement))), None)


Mind = Callable[[Asked], Reply]


class Provider(LlmServer):
    """`weather(…)` gives these replies first; `outage(…)` gives one for everything until `clear()`."""

    def __init__(self, mind: Mind) -> None:
        super().__init__(())
        self._mind = mind
        self._first: dict[str | None, deque[Reply]] = {}
        self._always: dict[str | None, Reply] = {}
        self._weather = threading.Lock()

    def weather(self, *replies: Reply, step: str | None = None) -> None:
        """The next replies (to one step, where it is named), before it is fair again."""
        with self._weather:
            self._first.setdefault(step, deque()).extend(replies)

    def outage(self, reply: Reply | None = None, *, step: str | None = None) -> None:
        """Until `clear()`; 503 where no reply is given."""
        with self._weather:
            self._always[step] = reply or Fail(status=503)

    def clear(self) -> None:
        """Fair weather; what hangs is let go."""
        with self._weather:
            self._first.clear()
            self._always.clear()
        self.release()

    def take(self, asked: Asked) -> Reply:
        with self._lock:
            self.asked.append(asked)
            self._called.set()
        with self._weather:
            for step in (asked.step, None):
                if self._first.get(step) and _may_be(self._first[step][0], asked):
                    return self._first[step].popleft()
                if step in self._always and _may_be(self._always[step], asked):
                    return self._always[step]
        return self._mind(asked)


def _may_be(reply: Reply, asked: Asked) -> bool:
    """A text of the model is no answer to a request for vectors."""
    return not (isinstance(reply, Say) and asked.path.endswith("/embeddings"))


def embedded(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A vector in which texts that share words are near: each word adds to four of the numbers."""
    numbers = [0.0] * dimensions
    for word in re.findall(r"\w+", text.lower()) or ["empty"]:
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        for at in range(4):
            numbers[int.from_bytes(digest[2 * at : 2 * at + 2], "little") % dimensions] += 1.0
    length = sum(n * n for n in numbers) ** 0.5
    return [n / length for n in numbers]


def say(value: object) -> Say:
    """A reply of the model in JSON."""
    return Say(value=value)
