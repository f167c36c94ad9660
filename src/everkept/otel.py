"""Spans for OpenTelemetry, sent as OTLP over HTTP. The standard variables `OTEL_*` switch it on and say where to.

Its libraries (the extra `otel`) are imported where it is on. Spans are sent from a thread of theirs, in batches; a
collector that does not answer holds up nothing, and what it misses is lost.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import structlog

from everkept.errors import EverkeptError
from everkept.ports.tracing import TRACEPARENT, Facts, SpanKind, Tracer, trace_with

if TYPE_CHECKING:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

_log = structlog.get_logger("everkept.traces")
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL = "http/protobuf"
_LAST_S: Final = 2.0
"""How long the end of a process waits for a collector. The library's own end waits for its retries: up to 30 s."""
_told = False
_provider: TracerProvider | None = None


def trace_as_told(env: Mapping[str, str]) -> None:
    """Start tracing where the environment asks for it, once in a process.

    The variables are often there for all programs of a machine. What of them cannot be followed is said in the log, and
    keeps nobody from working.
    """
    global _told, _provider
    if _told or not _is_wanted(env):
        return
    _told = True
    protocol = next((env[name] for name in _PROTOCOLS if env.get(name)), _PROTOCOL)
    if protocol != _PROTOCOL:
        _log.warning("nothing is traced: spans are sent as http/protobuf only", protocol=protocol)
        return
    try:
        _provider = _otlp_provider()
    except ModuleNotFoundError as error:
        _log.warning("nothing is traced: pip install 'everkept[otel]'", missing=error.name)
        return
    trace_with(tracer_of(_provider))


def send_traced() -> None:
    """Send what waits for its batch, before the process ends; blocks for at most `_LAST_S`."""
    if _provider is not None:
        sending = threading.Thread(target=_provider.force_flush, name="everkept-traces", daemon=True)
        sending.start()
        sending.join(_LAST_S)


def _is_wanted(env: Mapping[str, str]) -> bool:
    """By OpenTelemetry's own rules, but that without an endpoint nothing is sent to the default one."""
    if env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporters = {name.strip() for name in env.get("OTEL_TRACES_EXPORTER", "").split(",")} - {""}
    return "otlp" in exporters or (not exporters and any(env.get(name) for name in _ENDPOINTS))


def _otlp_provider() -> TracerProvider:
    """Raises ModuleNotFoundError where the extra is not installed.

    The provider is ours alone: made the process's, it would also send what other libraries trace, of which nobody
    knows whether it holds people's words.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from everkept import __version__

    ours = {"service.name": "everkept", "service.version": __version__}
    resource = Resource.create(ours | dict(OTELResourceDetector().detect().attributes))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def tracer_of(provider: TracerProvider) -> Tracer:
    """Spans of this provider. Each is the current one of its task, by which its logs and its writes know it."""
    from opentelemetry.trace import SpanKind as Kind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    from everkept import __version__

    kinds = {"server": Kind.SERVER, "consumer": Kind.CONSUMER, "client": Kind.CLIENT}
    tracer = provider.get_tracer("everkept", __version__)
    wire = TraceContextTextMapPropagator()

    @contextmanager
    def spans(name: str, kind: SpanKind, parent: str | None, facts: Facts) -> Iterator[_OtelSpan]:
        around = None if parent is None else wire.extract({"traceparent": parent})
        with tracer.start_as_current_span(
            name, around, kinds[kind], dict(facts), record_exception=False, set_status_on_exception=False
        ) as found:
            carrier: dict[str, str] = {}
            wire.inject(carrier)
            token = TRACEPARENT.set(carrier.get("traceparent"))
            span = _OtelSpan(found)
            try:
                with structlog.contextvars.bound_contextvars(trace_id=f"{found.get_span_context().trace_id:032x}"):
                    yield span
            except BaseException as error:
                span.fail(error.code if isinstance(error, EverkeptError) else type(error).__name__)
                raise
            finally:
                TRACEPARENT.reset(token)

    return spans


class _OtelSpan:
    """`everkept.ports.tracing.Span`."""

    def __init__(self, span: trace.Span) -> None:
        self._span: Any = span

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def tell(self, facts: Facts) -> None:
        self._span.set_attributes(dict(facts))

    def fail(self, error_type: str) -> None:
        from opentelemetry.trace import Status, StatusCode

        self._span.set_attribute("error.type", error_type)
        self._span.set_status(Status(StatusCode.ERROR))
