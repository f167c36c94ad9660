"""What is at the other end of a webhook: it checks all that reaches it, and answers, fails or hangs as it is told."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.crash.model.deliveries.outbox import Outbox, Wants
from tests.crash.model.oracle import must

from everkept.deliver.post import Answer
from everkept.domain.signatures import ID, secret_of, verify_webhook
from everkept.ports.clock import Clock

SECRET = secret_of(bytes(range(32)))
MOODS = ("well", "well", "down", "error", "busy", "rejects", "rejects", "hangs", "deaf", "dies")
BUSY_S = 120.0
REJECTIONS_MAX = 5
_ANSWERS = {
    "well": Answer(status=200, error=None),
    "error": Answer(status=500, error="it answered 500"),
    "busy": Answer(status=429, error="it answered 429", retry_after_s=BUSY_S),
    "rejects": Answer(status=422, error="it answered 422"),
}


@dataclass(slots=True)
class Hook:
    """One webhook, and its receiver."""

    id: int
    name: str
    project: int
    wants: Wants
    parks: bool
    mood: str = "well"
    cursor: int = 0
    bodies: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Name of a change → (kind, time) that it was told with."""
    taken: set[str] = field(default_factory=set)
    """It has said yes to these."""
    passed: set[str] = field(default_factory=set)
    """Dropped or passed by a hand, or before the webhook came to be."""
    parked: set[str] = field(default_factory=set)
    rejected: Counter[str] = field(default_factory=Counter)

    @property
    def known(self) -> set[str]:
        return self.taken | self.passed | self.parked

    def pass_by(self, outbox: Outbox, through: int, *, but_of: frozenset[int] = frozenset()) -> None:
        self.passed |= {
            what.name for _, what in outbox.between(self.project, 0, through, self.wants) if what.home not in but_of
        }

    def skips_nothing(self, outbox: Outbox) -> None:
        known = self.known
        for seq, what in outbox.between(self.project, 0, self.cursor, self.wants):
            must(
                what.name in known,
                "G11", f"webhook {self.name} of project {self.project} is at {self.cursor}, and its receiver never took"
                f" change {seq}, {what.name}",
            )  # fmt: skip


class Receivers:
    """`Post` of all webhooks: each has an address of its own. `die`: our own process ends while they answer."""

    def __init__(self, outbox: Outbox, clock: Clock, tally: Counter[str], die: Callable[[], None]) -> None:
        self.hooks: dict[str, Hook] = {}
        """Address → what is there."""
        self.hanging: list[asyncio.Future[str]] = []
        self._outbox = outbox
        self._clock = clock
        self._tally = tally
        self._die = die

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        hook = self.hooks[url]
        name = self._arrived(hook, headers, body)
        mood = hook.mood
        self._tally[f"post.{mood}"] += 1
        if mood == "down":
            return Answer(status=None, error="it cannot be reached: connection refused")
        if mood == "hangs":
            mood = await self._hang()
        if mood == "well":
            hook.taken.add(name)
        if mood == "rejects":
            hook.rejected[name] += 1
        if mood in ("deaf", "dies"):  # it has it, and we never hear of that
            if mood == "dies":
                self._die()
                raise asyncio.CancelledError
            return Answer(status=None, error="no answer came within 15 s")
        return _ANSWERS[mood]

    async def _hang(self) -> str:
        waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.hanging.append(waiting)
        try:
            return await waiting
        finally:
            self.hanging.remove(waiting)

    def _arrived(self, hook: Hook, headers: Mapping[str, str], body: bytes) -> str:
        """Signed, under one id for ever, and nothing before it is missing. The change's name."""
        told = verify_webhook(SECRET, headers, body, now=self._clock.now_us() / 1e6)
        assert body == json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
        name = str(told["data"]["id"]).removeprefix("chg_")
        must(name in self._outbox.place, "G11", f"{hook.name} was sent {name}, which never happened")
        must(headers[ID] == f"dlv_{hook.id}_{name}", "G11", f"{name} came to {hook.name} as {headers[ID]}")
        said = (told["type"], told["data"]["at"])
        must(hook.bodies.setdefault(name, said) == said, "G11", f"{name} was told as {hook.bodies[name]}, now {said}")
        project, seq = self._outbox.place[name]
        must(project == hook.project, "G11", f"{hook.name} of project {hook.project} was sent {name} of {project}")
        before_it = [w.name for _, w in self._outbox.between(project, 0, seq - 1, hook.wants)]
        known = hook.known
        missing = [n for n in before_it if n not in known and hook.rejected[n] < REJECTIONS_MAX]
        must(
            not missing or name in known,
            "G11", f"{hook.name} was sent {name} before {missing}",
        )  # fmt: skip
        self._tally["post.again"] += name in hook.taken
        return name
