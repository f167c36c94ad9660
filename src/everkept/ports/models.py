"""What a language model is to Everkept: one question in, one raw text out, with what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of one piece of work. Its address in the journal is (project, work, step, version, model, ask)."""

    step: str
    """`summary`, `facts`, `conflicts`, `fold`, or `ordinary`: what every model can answer."""
    version: str
    """Version of the prompt file, e.g. `facts.1`."""
    system: str
    user: str
    schema: dict[str, Any] | None
    """JSON schema of the reply; None for plain text."""
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RawReply:
    """The model's reply, untouched."""

    text: str
    tokens_in: int
    tokens_out: int
    usd: float | None
    """None where the price is unknown."""


class LanguageModel(Protocol):
    @property
    def name(self) -> str:
        """`vendor:model`, e.g. `openai:gpt-5-mini`; part of the reply's address."""
        ...

    @property
    def pool(self) -> str:
        """Whose permits and circuit it uses: vendor and a hash of the key, never the key."""
        ...

    async def ask(self, question: Question) -> RawReply:
        """Ask once; no retries of any kind. Raises a subclass of ModelError."""
        ...

    def estimate_usd(self, tokens_in: int, tokens_out: int) -> float | None: ...

    async def close(self) -> None:
        """Close what the running event loop has open; asking again opens it again."""
        ...
