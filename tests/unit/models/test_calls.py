from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from everkept.errors import RateLimited
from everkept.models.calls import about_question, about_reply, asking
from everkept.models.embedders import OpenAIEmbedder
from everkept.otel import tracer_of
from everkept.ports.models import Question, RawReply
from everkept.ports.tracing import TRACEPARENT, span, trace_with


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace_with(tracer_of(provider))
    yield exporter
    trace_with(None)


def the_only(exporter: InMemorySpanExporter) -> ReadableSpan:
    (found,) = exporter.get_finished_spans()
    return found


def embedder(answer: httpx2.Response) -> OpenAIEmbedder:
    transport = httpx2.MockTransport(lambda _request: answer)
    return OpenAIEmbedder(model="text-embedding-3-small", dim=2, api_key="sk", transport=transport)


def test_a_question_is_told_by_the_conventions_and_never_by_its_words(exporter: InMemorySpanExporter) -> None:
    question = Question(step="facts", version="facts.1", system="private", user="private", schema={}, timeout_s=1.0)
    with asking("chat", "google:gemini-3.5-flash-lite", about_question(question, 2)) as call:
        call.tell(about_reply(RawReply(text="private", tokens_in=7, tokens_out=3, usd=0.5)))
    found = the_only(exporter)
    assert found.name == "chat gemini-3.5-flash-lite"
    assert dict(found.attributes or {}) == {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "gemini-3.5-flash-lite", "gen_ai.output.type": "json",
        "gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 3,
        "everkept.step": "facts", "everkept.prompt_version": "facts.1", "everkept.ask": 2, "everkept.usd": 0.5,
    }  # fmt: skip


def test_what_a_server_embeds_is_told(exporter: InMemorySpanExporter) -> None:
    reply = {"data": [{"index": place, "embedding": [0.6, 0.8]} for place in (0, 1)]}
    asyncio.run(embedder(httpx2.Response(200, json=reply)).embed_passages(["private", "private"]))
    found = the_only(exporter)
    facts: dict[str, Any] = dict(found.attributes or {})
    assert (found.name, facts["gen_ai.provider.name"]) == ("embeddings text-embedding-3-small", "openai")
    assert (facts["gen_ai.embeddings.dimension.count"], facts["everkept.texts"]) == (2, 2)
    assert "private" not in found.to_json()


def test_a_call_that_fails_is_told_by_the_code_of_its_error(exporter: InMemorySpanExporter) -> None:
    with pytest.raises(RateLimited):
        asyncio.run(embedder(httpx2.Response(429, text="private")).embed_passages(["private"]))
    found = the_only(exporter)
    assert (found.status.is_ok, found.status.description) == (False, None)
    assert (found.attributes or {})["error.type"] == "rate_limited"
    assert "private" not in found.to_json()


def test_a_span_is_known_as_a_traceparent_while_it_lasts(exporter: InMemorySpanExporter) -> None:
    trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    with span("outer", "server", parent=f"00-{trace}-{parent}-01"), span("inner", "client"):
        inside = TRACEPARENT.get()
    inner, outer = exporter.get_finished_spans()
    assert outer.parent is not None
    assert inner.context is not None
    assert f"{outer.parent.span_id:016x}" == parent
    assert inside == f"00-{trace}-{inner.context.span_id:016x}-01"
    assert inner.parent == outer.context
    assert TRACEPARENT.get() is None


@pytest.mark.parametrize("sent", ["", "garbage", "00-" + "0" * 32 + "-00f067aa0ba902b7-01", "00-x\x00", "ff-1-2-3"])
def test_a_traceparent_that_is_none_begins_a_trace(sent: str, exporter: InMemorySpanExporter) -> None:
    with span("request", "server", parent=sent):
        pass
    assert the_only(exporter).parent is None
