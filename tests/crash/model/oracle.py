"""What must be true, from what clients were told: plain data and the design's words, nothing of Everkept's own code.

The oracle never reads the database. It is told what was asked and what was answered, and predicts from that.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

ASKS_MAX = 2
CRASHES_MAX = 5
Place = tuple[int, int]
"""(stream, seq)."""
Told = tuple[Place, int]
"""A first receipt: the place, and when it was recorded (microseconds since 1970)."""


class Violation(AssertionError):
    """A guarantee does not hold; the message begins with its number."""


def must(holds: bool, guarantee: str, what: str) -> None:
    if not holds:
        raise Violation(f"{guarantee}: {what}")


@dataclass(slots=True, eq=False)
class Message:
    """One message that a client sent. `word` occurs in it and in no other."""

    project: str
    thread: str
    subject: str
    word: str
    text: str
    evidence: bool
    occurred_us: int
    said_while_off: bool = False
    maybe_captured: bool = False
    """Said while memory was off, and asked for afterwards."""
    place: Place | None = None
    recorded_us: int = 0
    erased: bool = False


@dataclass(slots=True, eq=False)
class Batch:
    """What one client sends at once, again and again until it has an answer."""

    project: str
    thread: str
    subject: str
    key: str | None
    tokens: int | None
    messages: list[Message]

    @property
    def first_told(self) -> list[Place | None]:
        return [m.place for m in self.messages]


@dataclass(slots=True)
class HeldLease:
    """What a worker was promised: it may write until then, unless somebody takes the job away."""

    job: int
    fence: int
    until_us: int
    owner: str
    kind: str
    key: str
    project: int
    taken: bool = False
    """By an expiry, a hand or another worker: whatever it brings is refused."""
    erased_beside: bool = False
    """Something was erased in its project: it may be refused for that."""

    def holds(self, now_us: int) -> bool:
        return not self.taken and self.until_us > now_us


class Oracle:
    def __init__(self) -> None:
        self.logs: dict[int, list[Message]] = {}
        """Stream → its messages; seq is the place plus one."""
        self.owner: dict[int, tuple[str, str]] = {}
        """Stream → (project, subject)."""
        self.batches: list[Batch] = []
        self.by_key: dict[tuple[str, str], Message] = {}
        self.messages: dict[str, Message] = {}
        self.erased_streams: set[int] = set()
        self.leases: dict[int, HeldLease] = {}
        self.fences: dict[int, int] = {}
        self.unreported: Counter[int] = Counter()
        """Job → claims whose worker has not said what came of them (G7)."""
        self.seen_us: dict[str, int] = {}
        self.stay_away_until_us = 0
        """When the provider may be asked again, as it has said itself (Retry-After)."""
        self.kept: dict[tuple[str, tuple[str, ...]], str] = {}
        """(step, words in view) → "good" or "bad": a reply that was paid for and is committed (G8)."""
        self.bad_asks: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.hand_retries = 0
        self.told: dict[str, set[str]] = {"summary": set(), "facts": set()}
        """Words that committed good replies to these steps had in view."""
        self.forgotten: set[str] = set()

    # ---- messages (G1, G2)

    def accepted(self, batch: Batch, told: list[Told]) -> None:
        """The first time that this batch was answered."""
        must(len(told) == len(batch.messages), "G1", f"{len(batch.messages)} messages, {len(told)} receipts")
        for index, (message, (place, recorded_us)) in enumerate(zip(batch.messages, told, strict=True)):
            stream, seq = place
            log = self.logs.setdefault(stream, [])
            self.owner[stream] = (batch.project, batch.subject)
            must(
                seq == len(log) + 1, "G1", f"{message.word} got seq {seq} after {len(log)} messages of stream {stream}"
            )
            message.place, message.recorded_us = place, recorded_us
            log.append(message)
            self.messages[message.word] = message
            if batch.key is not None:
                self.by_key[batch.project, f"{batch.key}/{index}"] = message
        self.batches.append(batch)

    def replayed(self, batch: Batch, told: list[Told]) -> None:
        first = [(m.place, None if m.erased else m.recorded_us) for m in batch.messages]
        again = [(place, None if m.erased else at) for m, (place, at) in zip(batch.messages, told, strict=True)]
        must(first == again, "G2", f"a replay of {batch.key} was answered {again}, first {first}")

    def erase(self, messages: list[Message]) -> None:
        for message in messages:
            message.erased = True

    def of_subject(self, project: str, subject: str) -> list[Message]:
        return [m for m in self.messages.values() if (m.project, m.subject) == (project, subject)]

    # ---- leases (G6, G7)

    def claimed(self, lease: HeldLease, *, crashes: int, alone: bool, beside: int, now_us: int) -> None:
        """`beside`: how many jobs the worker runs already."""
        job = lease.job
        before = self.leases.get(job)
        must(
            before is None or not before.holds(now_us),
            "G6", f"{lease.kind} {lease.key} was given to {lease.owner} while {before and before.owner} holds it",
        )  # fmt: skip
        must(lease.fence > self.fences.get(job, 0), "G6", f"fence {lease.fence} of job {job} does not grow")
        must(
            crashes == self.unreported[job] + 1,
            "G7", f"claim of {lease.kind} {lease.key} booked {crashes} crashes, {self.unreported[job] + 1} are right",
        )  # fmt: skip
        must(self.unreported[job] < CRASHES_MAX, "G7", f"{lease.kind} {lease.key} may crash for ever")
        if self.unreported[job]:
            must(alone and not beside, "G7", f"{lease.kind} {lease.key}, whose worker died, does not run alone")
        self.unreported[job] += 1
        self.fences[job] = lease.fence
        self.leases[job] = lease

    def reported(self, job: int, *, clean: bool) -> None:
        """A worker said what came of its claim; `clean`: it came to its own end."""
        self.unreported[job] = 0 if clean else max(0, self.unreported[job] - 1)
        self.leases.pop(job, None)

    def told_to_stay_away(self, seconds: float | None, now_us: int) -> None:
        if seconds is not None:
            self.stay_away_until_us = max(self.stay_away_until_us, now_us + int(seconds * 1e6))

    def clock_set_back(self) -> None:
        """What was a time is none any more; how long is still to be waited is not predicted."""
        self.stay_away_until_us = 0

    # ---- replies (G8)

    def asked(self, key: tuple[str, tuple[str, ...]]) -> None:
        must(self.kept.get(key) != "good", "G8", f"{key[0]} over {key[1]} was asked though its reply is committed")
        allowed = ASKS_MAX * (1 + self.hand_retries)
        must(self.bad_asks[key] < allowed, "G8", f"{key[0]} over {key[1]} is asked more than {allowed} times")

    def keeps(self, key: tuple[str, tuple[str, ...]], *, good: bool) -> None:
        """A reply was committed."""
        self.kept[key] = "good" if good else "bad"
        if good:
            self.told.setdefault(key[0], set()).update(key[1])
        else:
            self.bad_asks[key] += 1

    def ask_afresh(self, words: set[str]) -> None:
        """Questions that had one of these in view may be paid for again: asked on purpose, or erased."""
        for key in [k for k in self.kept if words.intersection(k[1])]:
            del self.kept[key]
        for key in [k for k in self.bad_asks if words.intersection(k[1])]:
            del self.bad_asks[key]
