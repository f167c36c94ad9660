"""The reply journal: every reply is committed raw, under its question's address, before anything is made of it (G8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from everkept.ports.models import RawReply


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """What names a question. The prompt's text is not part of it: known facts move, and a paid reply stays good."""

    project: int
    subject: int
    work: str
    """The piece of work, e.g. `window:12.0`."""
    step: str
    version: str
    model: str
    epoch: int = field(default=0, compare=False)
    """The subject's erasure epoch when the work was read: after an erase nothing is asked, and no reply kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A committed reply to one ask of a question."""

    ask: int
    text: str
    rejected_because: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What was shown, so that a question can be explained and made again; never the prompt's text."""

    shown: Mapping[str, Any] = field(default_factory=dict)


class Journal(Protocol):
    async def kept(self, address: Address) -> Sequence[Kept]:
        """Committed replies, first ask first."""
        ...

    async def allow(self, address: Address) -> None:
        """Raises OverBudget where the project has spent its tokens or money for today."""
        ...

    async def begin(self, address: Address, ask: int, request_hash: bytes, recipe: Recipe) -> str | None:
        """Write down that the question is about to be sent; or the reply to it that was kept since one looked, and then
        it is not to be sent. Raises SubjectMoved where something was erased since."""
        ...

    async def commit(self, address: Address, ask: int, reply: RawReply) -> str:
        """Keep the reply. The first committed wins, and its text is the answer. Raises SubjectMoved after an erase."""
        ...

    async def judge(self, address: Address, ask: int, rejected_because: str | None) -> None:
        """Note why a kept reply cannot be used, or that a newer parser can use it after all."""
        ...
