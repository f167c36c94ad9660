"""A receiver of webhooks that answers as it is told, and keeps what it was sent."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from everkept.deliver.post import Answer
from everkept.domain.signatures import ID

OK = Answer(status=200, error=None)


def refusal(status: int, retry_after_s: float | None = None) -> Answer:
    return Answer(status=status, error=f"it answered {status}", retry_after_s=retry_after_s)


def silence(error: str = "no answer came within 15 s") -> Answer:
    return Answer(status=None, error=error)


@dataclass
class Sent:
    url: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers[ID]

    @property
    def seq(self) -> int:
        told: dict[str, Any] = json.loads(self.body)
        return int(told["data"]["seq"])


@dataclass
class Receiver:
    """`answers` are given in turn, and the last of them from then on; `meanwhile` runs while a request is open."""

    answers: list[Answer] = field(default_factory=lambda: [OK])
    sent: list[Sent] = field(default_factory=list)
    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self.sent.append(Sent(url, dict(headers), body))
        if self.meanwhile is not None:
            await self.meanwhile()
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    @property
    def seqs(self) -> list[int]:
        return [each.seq for each in self.sent]

    @property
    def named(self) -> list[str]:
        """The ids of what was sent, without the time in each."""
        return [each.id.rpartition("_")[0] for each in self.sent]
