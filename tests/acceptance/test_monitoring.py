"""What a running server shows of itself: traces over requests, jobs and models, a log, and what alerts ask for."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.stubs.llm_server import Fail, LlmServer, Reply, Say
from tests.stubs.otlp_receiver import OtlpReceiver, Received
from tests.stubs.real_server import WAIT_S, serving

SERVER, CLIENT, CONSUMER = 2, 3, 5
"""Kinds of a span, as OTLP counts them."""
SAID = "I live in Lisbon, and my cat is called Vasco."
REPLIES: dict[str, list[Reply]] = {
    "summary": [Say(value={"summary": "Ana lives in Lisbon.", "learnings": []})],
    "facts": [Fail(status=400, message="I refuse to talk about Vasco")],
}  # fmt: skip
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
REQUEST = "req-of-the-caller"
ALERTS = Path(__file__).parents[2] / "monitoring" / "alerts.yml"
CALLER = {"traceparent": f"00-{TRACE}-{PARENT}-01", "x-request-id": REQUEST}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a server has sent and logged, from its start to its end."""

    spans: list[Received]
    sent: bytes
    log: list[dict[str, Any]]
    metrics: str

    def named(self, name: str) -> Received:
        """The one span of this name in the caller's trace."""
        (found,) = [span for span in self.spans if span.name == name and span.trace == TRACE]
        return found


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """One thing was said to a traced server, and all that followed of it is worked."""
    told = io.StringIO()
    with OtlpReceiver.listening() as receiver, LlmServer(REPLIES) as llm, contextlib.redirect_stderr(told):
        environment = {
            "OPENAI_API_KEY": "sk-none", "OPENAI_BASE_URL": llm.url, "EVERKEPT_MODEL": "openai:gpt-5-mini",
            "EVERKEPT_WORK__TICK_S": "0.1", "EVERKEPT_LOG__LEVEL": "debug",
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
        }  # fmt: skip
        with serving(tmp_path_factory.mktemp("home"), **environment) as (_, url):
            metrics = converse(url)
    first, *lines = told.getvalue().splitlines()
    assert first.startswith("Everkept listens")
    log = [json.loads(line) for line in lines]
    return Seen(spans=receiver.spans, sent=b"".join(receiver.bodies), log=log, metrics=metrics)


def converse(url: str) -> str:
    """What the server measures after it."""
    with httpx2.Client(base_url=url, timeout=WAIT_S, trust_env=False) as client:
        body = {"content": SAID, "subject": "ana"}
        client.post("/v1/threads/secret-name/messages", json=body, headers=CALLER).raise_for_status()
        client.post("/v1/threads/secret-name/end").raise_for_status()
        assert client.post("/v1/settle", json={"timeout_s": 60}).json()["settled"]
        assert client.get("/v1/threads/nobody").status_code == 404
        return client.get("/metrics").text


def test_one_trace_leads_from_a_request_over_its_jobs_to_the_models_call(seen: Seen) -> None:
    assert {span.service for span in seen.spans} == {"everkept"}
    request = seen.named("POST /v1/threads/{thread}/messages")
    assert (request.kind, request.parent) == (SERVER, PARENT)
    assert (request.facts["http.response.status_code"], request.facts["everkept.request_id"]) == (201, REQUEST)
    opening = seen.named("job open_window")
    assert (opening.kind, opening.parent) == (CONSUMER, request.id)
    summary = seen.named("job summarise_episode")
    assert (summary.kind, summary.parent) == (CONSUMER, opening.id)
    assert {"everkept.job", "everkept.kind", "everkept.project"} <= set(summary.facts)
    (call,) = [span for span in seen.spans if span.facts.get("everkept.step") == "summary"]
    assert (call.name, call.kind, call.trace, call.parent) == ("chat gpt-5-mini", CLIENT, TRACE, summary.id)
    expected = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5-mini",
        "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20, "gen_ai.output.type": "json",
    }  # fmt: skip
    assert call.facts.items() >= expected.items()


def test_a_failure_is_told_by_its_code_alone(seen: Seen) -> None:
    failed = seen.named("job extract_facts")
    assert (failed.failed, failed.facts["error.type"]) == (True, "permanent")
    assert [span for span in seen.spans if span.events] == []  # where stack traces would stand


def test_no_word_that_was_said_and_no_name_is_in_a_span(seen: Seen) -> None:
    for word in ("Lisbon", "Vasco", "secret-name", "nobody"):
        assert word.encode() not in seen.sent, word
    assert "ana" not in {value for span in seen.spans for value in span.facts.values()}


def test_every_line_of_the_log_says_whose_it_is(seen: Seen) -> None:
    answered = [line for line in seen.log if line["event"] == "request answered"]
    (first,) = [line for line in answered if line["request_id"] == REQUEST]
    assert (first["route"], first["status"]) == ("/v1/threads/{thread}/messages", 201)
    assert len({line["request_id"] for line in answered}) == len(answered)
    (failed,) = [line for line in seen.log if line["event"] == "job failed"]
    assert (failed["kind"], failed["project"], failed["error_class"]) == ("extract_facts", "prj_1", "permanent")
    assert failed["job"].startswith("job_")
    assert {first["trace_id"], failed["trace_id"]} == {TRACE}
    assert [line for line in seen.log if not {"request_id", "job"} & set(line)] == []


def test_each_alert_asks_for_something_that_the_server_measures(seen: Seen) -> None:
    families = list(text_string_to_metric_families(seen.metrics))
    samples = [(sample.name, sample.labels) for family in families for sample in family.samples]
    empty = {family.name for family in families if not family.samples}  # measured, and there is none: no webhook yet
    asked = re.findall(r"(everkept_\w+)(?:{(\w+)=\"(\w+)\"})?", "\n".join(re.findall("expr: .*", ALERTS.read_text())))
    assert len(asked) >= 8
    for name, label, value in asked:
        found = any(n == name and (not label or labels.get(label) == value) for n, labels in samples)
        assert found or name.removesuffix("_total") in empty, name


def test_a_collector_that_is_not_there_keeps_no_process_from_its_end() -> None:
    code = (
        "import os; from everkept.otel import send_traced, trace_as_told; from everkept.ports.tracing import span\n"
        "trace_as_told(os.environ)\n"
        "with span('a job', 'consumer'): pass\n"
        "send_traced()"
    )
    told = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    done = subprocess.run([sys.executable, "-c", code], env=told, capture_output=True, text=True, check=True)
    assert "retrying" in done.stderr
    assert "Failed to export" not in done.stderr  # it did not wait for the last retry


def test_a_library_that_is_missing_keeps_nobody_from_working() -> None:
    code = (
        "import sys; sys.modules['opentelemetry.exporter'] = None\n"
        "from everkept.otel import send_traced, trace_as_told; from everkept.ports.tracing import span\n"
        "trace_as_told({'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://127.0.0.1:9'})\n"
        "with span('a job', 'consumer') as found: found.tell({'everkept.kind': 'a kind'})\n"
        "send_traced()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'everkept[otel]'" in done.stdout


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
        {"OTEL_SERVICE_NAME": "mine"},
    ],
)
def test_nothing_of_it_is_loaded_where_it_is_not_asked_for(told: dict[str, str]) -> None:
    code = (
        "import os, sys; from everkept.otel import trace_as_told; trace_as_told(os.environ);"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], env=told, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert ("http/protobuf only" in done.stdout) == ("OTEL_EXPORTER_OTLP_PROTOCOL" in told)
