"""A client: it says, asks, states, ends and erases, repeats what was not answered, and writes down what it was told."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from everkept.errors import EverkeptError
from everkept.prove.record import Record
from everkept.prove.storm.ways import Gone, Lost, Place, Way

T = TypeVar("T")
AGAIN_S = 0.2
PAUSE_S = 0.1
"""The mean time between an answer and the next question."""
GIVE_UP_S = 240.0
"""An answer that takes longer, over all repeats, is a failure of the run."""
SHARED = "shared"
"""A thread that all clients of a project say things in."""
FINAL = frozenset({"remembered", "skipped", "failed", "erased"})
_WORDS = (
    "harbour lantern meadow copper violin orchard thunder basket winter marble river engine candle forest pepper bridge"
    " saddle window garden pocket silver kitchen letter island mirror ladder summer button castle feather"
).split()
_ACTIONS = {
    "say": 30, "say_many": 20, "repeat": 6, "look": 12, "recall": 12, "state": 5, "list": 6, "end": 6, "erase": 2,
    "say_shared": 6,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One append that was acknowledged."""

    thread: str
    subject: str
    texts: tuple[str, ...]
    key: str
    places: tuple[Place, ...]


@dataclass(slots=True)
class Tally:
    """What a client saw."""

    answers: int = 0
    repeats: int = 0
    messages: int = 0
    append_s: list[float] = field(default_factory=list)
    other_s: list[float] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)


class Pulse:
    """How long nobody was answered, at the longest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_s = time.monotonic()
        self.longest_s = 0.0

    def begin(self) -> None:
        """Time counts from now on."""
        self._last_s = time.monotonic()

    def answered(self) -> None:
        with self._lock:
            now_s = time.monotonic()
            self.longest_s = max(self.longest_s, now_s - self._last_s)
            self._last_s = now_s


class Client:
    """Works until `stop` is set; what it began it brings to an end."""

    def __init__(
        self, number: int, way: Way, project: str, record: Record, pulse: Pulse, chance: random.Random
    ) -> None:
        self.number = number
        self.project = project
        self.tally = Tally()
        self._failure: Exception | None = None
        self.kept: list[Told] = []
        """Acknowledged and not erased."""
        self.way = way
        self._record = record
        self._pulse = pulse
        self._random = chance
        self._made = 0
        self._generation = 0
        self._final: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run, name=f"client-{number}", daemon=True)
        self._stop = threading.Event()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def join(self) -> None:
        self._thread.join()

    def wrong(self) -> list[str]:
        """What it saw that must not be."""
        ended = [] if self._failure is None else [f"client {self.number} could not go on: {self._failure!r}"]
        return [*self.tally.violations, *ended]

    def close(self) -> None:
        self.way.close()

    def threads(self) -> set[str]:
        return {told.thread for told in self.kept}

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                action = self._random.choices(tuple(_ACTIONS), tuple(_ACTIONS.values()))[0]
                getattr(self, f"_{action}")()
                self._stop.wait(self._random.expovariate(1 / PAUSE_S))
        except Exception as error:  # noqa: BLE001  (a client that cannot go on is what the storm looks for)
            self._failure = error

    # ---- asking until there is an answer

    def _until_answered(self, ask: Callable[[], T], *, append: bool = False) -> T:
        """Raises Gone, and RuntimeError where no answer comes."""
        end = time.monotonic() + GIVE_UP_S
        while time.monotonic() < end:
            asked_at = time.monotonic()
            try:
                answer = ask()
            except Lost:
                self.tally.repeats += 1
                time.sleep(AGAIN_S * self._random.uniform(0.5, 1.5))
                continue
            except Gone:
                self._answered(asked_at, append=append)
                raise
            except EverkeptError as error:
                self._answered(asked_at, append=append)
                raise RuntimeError(f"client {self.number} was refused: {error}") from error
            self._answered(asked_at, append=append)
            return answer
        raise RuntimeError(f"client {self.number} had no answer in {GIVE_UP_S:.0f} s")

    def _answered(self, asked_at: float, *, append: bool) -> None:
        self._pulse.answered()
        self.tally.answers += 1
        (self.tally.append_s if append else self.tally.other_s).append(time.monotonic() - asked_at)

    def _wrong(self, what: str) -> None:
        self.tally.violations.append(f"client {self.number} ({self.project}): {what}")

    # ---- saying

    def _word(self) -> str:
        """A word that nobody else says."""
        self._made += 1
        return f"zq{self.number}x{self._made}x{self._random.randrange(36**4):x}"

    def _text(self) -> str:
        return f"{self._word()} {' '.join(self._random.choices(_WORDS, k=self._random.randint(3, 30)))}."

    def _subject(self) -> str:
        return f"client{self.number}-{self._generation}"

    def _say(self) -> None:
        self._append(self._own_thread(), self._subject(), [self._text()])

    def _say_many(self) -> None:
        self._append(self._own_thread(), self._subject(), [self._text() for _ in range(self._random.randint(2, 12))])

    def _say_shared(self) -> None:
        self._append(SHARED, "everybody", [self._text()])

    def _own_thread(self) -> str:
        return f"c{self.number}-{self._generation}-{self._random.randrange(3)}"

    def _append(self, thread: str, subject: str, texts: list[str]) -> None:
        key = self._word()
        messages = [{"key": f"{key}:{index}", "content": text} for index, text in enumerate(texts)]
        asked = self._record.asked("append", project=self.project, thread=thread, subject=subject, messages=messages)
        places = self._until_answered(lambda: self.way.append(thread, subject, texts, key), append=True)
        self._record.told(asked, seqs=[seq for _, seq in places])
        self.tally.messages += len(texts)
        self.kept.append(Told(thread=thread, subject=subject, texts=tuple(texts), key=key, places=tuple(places)))

    def _repeat(self) -> None:
        """What was acknowledged is sent again, as after an answer that was lost: the same places are told."""
        if not self.kept:
            return
        told = self._random.choice(self.kept)
        again = self._until_answered(lambda: self.way.append(told.thread, told.subject, told.texts, told.key))
        if tuple(again) != told.places:
            self._wrong(f"a repeat of {told.key} was told {again}, not {told.places}")

    # ---- asking

    def _look(self) -> None:
        if not self.kept:
            return
        told = self._random.choice(self.kept)
        event, _ = self._random.choice(told.places)
        try:
            state = self._until_answered(lambda: self.way.receipt(event))
        except Gone:
            self._wrong(f"there is no receipt of {event}, which was acknowledged")
            return
        before = self._final.get(event)
        if before is not None and state != before:
            self._wrong(f"the receipt of {event} was {before}, which is final, and is {state}")
        if state in FINAL:
            self._final[event] = state
        if state == "erased":
            self._wrong(f"{event} is erased, and nobody asked for it")

    def _recall(self) -> None:
        """What was acknowledged is found, from that moment on (G4)."""
        if not self.kept:
            return
        told = self.kept[-1] if self._random.random() < 0.5 else self._random.choice(self.kept)
        text = self._random.choice(told.texts)
        if not self.finds(told, text):
            self._wrong(f"{text[:40]!r} in {told.thread} is not found")

    def finds(self, told: Told, text: str) -> bool:
        return text in self._until_answered(lambda: self.way.recall(text.split()[0], told.subject))

    def _state(self) -> None:
        subject, text, key = self._subject(), f"The {self._word()} is {self._random.choice(_WORDS)}.", self._word()
        asked = self._record.asked("remember", project=self.project, subject=subject, text=text, key=key)
        fact = self._until_answered(lambda: self.way.remember(text, subject, key))
        self._record.told(asked, fact=fact)

    def _list(self) -> None:
        own = [told for told in self.kept if told.thread != SHARED]
        if not own:
            return
        told = self._random.choice(own)
        there = self._until_answered(lambda: self.way.messages(told.thread))
        first = [text for other in own if other.thread == told.thread for text in other.texts][:100]
        if there[: len(first)] != first:
            self._wrong(f"{told.thread} does not list what was acknowledged, in its order")

    # ---- ending and erasing

    def _end(self) -> None:
        own = [told.thread for told in self.kept if told.thread != SHARED]
        if own:
            self.end(self._random.choice(own))

    def end(self, thread: str) -> None:
        asked = self._record.asked("end", project=self.project, thread=thread)
        self._until_answered(lambda: self.way.end(thread))
        self._record.told(asked)

    def _erase(self) -> None:
        """A thread, or all of a subject; their names are not used again."""
        if not self.kept:
            return
        self._generation += 1
        told = self._random.choice([told for told in self.kept if told.thread != SHARED] or self.kept)
        if told.thread == SHARED:
            return
        kind, name = self._random.choice((("thread", told.thread), ("subject", told.subject)))
        asked = self._record.asked("erase", project=self.project, kind=kind, name=name, seq=None)
        try:
            self._until_answered(lambda: self.way.erase(kind, name))
        except Gone:  # an earlier try was lost on its way back, and had been done
            if not self.tally.repeats:
                self._wrong(f"there is no {kind} {name} to erase")
        self._record.told(asked)
        gone = [each for each in self.kept if name in (each.thread, each.subject)]
        self.kept = [each for each in self.kept if each not in gone]
        text = self._random.choice(gone).texts[0]
        if self.finds(gone[0], text):
            self._wrong(f"{text[:40]!r} is erased and still found")
