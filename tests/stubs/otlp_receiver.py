"""A collector of spans for tests: takes OTLP over HTTP and keeps what it was sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One span. Ids are hexadecimal; `parent` is empty at the root of a trace; `failed` is its status."""

    service: str
    name: str
    kind: int
    trace: str
    id: str
    parent: str
    facts: dict[str, Any]
    events: int
    failed: bool


class OtlpReceiver:
    """`endpoint` is for OTEL_EXPORTER_OTLP_ENDPOINT; `bodies` is what came over the wire."""

    def __init__(self) -> None:
        self.spans: list[Received] = []
        self.bodies: list[bytes] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    @classmethod
    @contextmanager
    def listening(cls) -> Iterator[OtlpReceiver]:
        receiver = cls()
        thread = threading.Thread(target=receiver._http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield receiver
        finally:
            receiver._http.shutdown()
            thread.join()
            receiver._http.server_close()

    def take(self, body: bytes) -> None:
        self.bodies.append(body)
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = _facts(of_resource.resource.attributes)["service.name"]
            for of_scope in of_resource.scope_spans:
                self.spans.extend(_received(service, span) for span in of_scope.spans)


def _received(service: str, span: Any) -> Received:
    return Received(
        service=service, name=span.name, kind=span.kind, trace=span.trace_id.hex(), id=span.span_id.hex(),
        parent=span.parent_span_id.hex(), facts=_facts(span.attributes), events=len(span.events),
        failed=span.status.code == span.status.STATUS_CODE_ERROR,
    )  # fmt: skip


def _facts(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


def _handler(receiver: OtlpReceiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            receiver.take(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is printed: `spans` is the log."""

    return Handler
