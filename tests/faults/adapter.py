"""What the fault bench asks of a memory system: five verbs, and the faults that happen to it.

A case is written against `MemorySystem` alone, so that it can be run against any system that has an adapter. What a
system does not have is said by raising `NotApplicable`: the case is then shown as not applicable, never as failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One thing that was said. `occurred_at` None: now."""

    content: str
    role: str = "user"
    occurred_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    evidence: bool = True
    """False for what nobody said: a compaction summary, recalled context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The answer to `add`: an id for each message (or memory) it made, and whether it had been accepted before."""

    ids: tuple[str, ...]
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One hit of a search. `kind`: `message`, `fact` or `episode`; `when`: the time it is about, or was said."""

    id: str
    text: str
    kind: str
    when: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that is kept.

    `state`: for a message `waiting`, `remembered`, `skipped` or `failed`; for a fact `live` or `retired`; for an
    episode (a stretch of conversation that was worked as one) `pending`, `completed`, `failed`, `dead` or `skipped`.
    `sources`: the ids of the messages it rests on, in order.
    """

    id: str
    text: str
    kind: str
    state: str
    when: datetime | None
    thread: str | None = None
    sources: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something that the system itself says has failed or is stuck, and why."""

    what: str
    cause: str


Troubles: TypeAlias = list[Trouble]


class Rejected(Exception):
    """The system refused a request, and kept nothing of it. The text is what it told its caller."""


class Died(Exception):
    """The system's process ended before it answered."""


class NotApplicable(Exception):
    """The system has no such verb, or no such thing can happen to it."""


FEATURES = {
    "keys": "idempotency keys",
    "messages": "a list of the messages it accepted",
    "episodes": "a list of the stretches of conversation it worked",
    "times": "a time at which a message was said",
    "evidence": "a mark for what nobody said",
    "timers": "work that is done later",
    "end": "an end of a conversation",
    "switch": "a switch that turns memory off",
    "clock": "a clock that can be set",
}


def need(system: MemorySystem, *features: str) -> None:
    """Raises NotApplicable where the system lacks one of `FEATURES`."""
    for feature in features:
        if feature not in system.has:
            raise NotApplicable(f"{system.name} has no {feature}: {FEATURES[feature]}")


class MemorySystem(Protocol):
    """One memory system over one folder. Every verb may be called from several threads at once."""

    name: str
    version: str
    has: frozenset[str]
    """Which of `FEATURES` it has."""

    # ---- the five verbs

    def add(self, thread: str, messages: Sequence[Message], *, subject: str, key: str | None = None) -> Added:
        """Hand over a batch under an idempotency key. Raises Rejected, Died."""
        ...

    def wait_idle(self, timeout_s: float = 30.0) -> bool:
        """Until nothing that is due waits or runs; what is armed for later does not count. False: time ran out."""
        ...

    def search(self, query: str, *, subject: str, limit: int = 10, as_of: datetime | None = None) -> list[Found]:
        """Best first. `as_of`: what was true then. Raises Rejected."""
        ...

    def delete(self, *, subject: str | None = None, thread: str | None = None, id: str | None = None) -> None:
        """Destroy exactly one subject, thread or thing. Raises Rejected."""
        ...

    def list(self, *, subject: str, kind: str | None = None) -> list[Item]:
        """All that is kept of a subject, oldest first; `kind`: `message`, `fact` or `episode`."""
        ...

    # ---- faults, and what must be told of them

    def open(self) -> None:
        """Start the system's process over its folder; after `kill` or `close`, again over the same folder."""
        ...

    def close(self) -> None:
        """Let the process end in good order."""
        ...

    def kill(self) -> None:
        """SIGKILL."""
        ...

    def pass_time(self, seconds: float) -> None:
        """Time passes while the system is up; timers become due, and what is due is worked or being worked."""
        ...

    def trouble(self) -> Troubles:
        """What the system itself says has failed or is stuck."""
        ...

    # ---- what only some systems have

    def end(self, thread: str) -> None:
        """The conversation is over: work it now."""
        ...

    def switch(self, on: bool, *, thread: str | None = None) -> None:
        """Turn memory on or off, for one thread or for all."""
        ...

    def set_clock(self, seconds: float) -> None:
        """Somebody sets the machine's clock forward or back by so much; no time has passed."""
        ...

    def retry(self, trouble: Trouble) -> None:
        """By hand: try again what was given up."""
        ...


def contents(system: MemorySystem, subject: str, kind: str) -> list[str]:
    """The texts of one kind that are kept of a subject, oldest first; of facts, those that are live."""
    return [item.text for item in system.list(subject=subject, kind=kind) if item.state != "retired"]


def copies(system: MemorySystem, subject: str, word: str) -> int:
    """How often the word is kept, in the kind that has it most often: 0 is lost, 2 is a duplicate."""
    kinds = [item.kind for item in system.list(subject=subject) if word in item.text and item.kind != "episode"]
    return max((kinds.count(kind) for kind in kinds), default=0)


def finds(system: MemorySystem, subject: str, word: str) -> bool:
    """Whether a search for the word brings something that holds it."""
    return any(word in found.text for found in system.search(word, subject=subject))


def let_it_work(system: MemorySystem, *, hours: float = 0.6) -> None:
    """Time passes until what was said must have been worked, by default half an hour and a bit."""
    system.pass_time(3600 * hours)
    assert system.wait_idle(60), f"still busy: {system.trouble()}"


class OpensSystems(Protocol):
    """The fixture `another`: one more process over a folder, by default the one of `system`."""

    def __call__(self, home: Path | None = None, *, die_at: str | None = None, **settings: object) -> MemorySystem: ...
