"""A question to a provider as a span, in the words of OpenTelemetry's conventions for generative AI.

It tells which model was asked for what, and what it counted; never a word of the question or of the answer.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final, Literal

from everkept.ports.models import Question, RawReply
from everkept.ports.tracing import Facts, Span, span

_PROVIDERS: Final = {"google": "gcp.gemini"}
"""Vendors whom the conventions call otherwise than we do."""


def asking(operation: Literal["chat", "embeddings"], name: str, facts: Facts) -> AbstractContextManager[Span]:
    """The span of one call of the model `vendor:model`."""
    vendor, _, model = name.partition(":")
    known = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": _PROVIDERS.get(vendor, vendor),
        "gen_ai.request.model": model,
    }
    return span(f"{operation} {model}", "client", facts={**known, **facts})


def about_question(question: Question, ask: int) -> Facts:
    """`ask` counts the replies that were paid for, from 1."""
    return {
        "gen_ai.output.type": "text" if question.schema is None else "json",
        "everkept.step": question.step,
        "everkept.prompt_version": question.version,
        "everkept.ask": ask,
    }


def about_reply(reply: RawReply) -> Facts:
    tokens = {"gen_ai.usage.input_tokens": reply.tokens_in, "gen_ai.usage.output_tokens": reply.tokens_out}
    return tokens if reply.usd is None else {**tokens, "everkept.usd": reply.usd}
