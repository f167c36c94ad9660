"""Spans: what is done for whom, and how long it takes. Nothing is traced until `trace_with` names a tracer.

A span names things (a route, a job's kind, a model) and counts; no word that anybody has said or stored is in one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Final, Literal, Protocol

SpanKind = Literal["server", "consumer", "client"]
"""A request that is answered, a job that is worked, a provider that is asked."""
Facts = Mapping[str, str | int | float | bool]
"""Named as the semantic conventions of OpenTelemetry name them, else `everkept.…`."""
TRACEPARENT: ContextVar[str | None] = ContextVar("everkept_traceparent", default=None)
"""The span in which this code runs, as W3C's `traceparent`; None where nothing is traced."""


class Span(Protocol):
    def rename(self, name: str) -> None: ...

    def tell(self, facts: Facts) -> None: ...

    def fail(self, error_type: str) -> None:
        """It ended badly: a code or the name of a class, never the text of an error."""
        ...


Tracer = Callable[[str, SpanKind, str | None, Facts], AbstractContextManager[Span]]
"""(name, kind, traceparent of its parent, facts) → the span while it lasts. An error that leaves it fails it."""


class _Nothing:
    def rename(self, name: str) -> None:
        return None

    def tell(self, facts: Facts) -> None:
        return None

    def fail(self, error_type: str) -> None:
        return None


_NOTHING: Final = nullcontext[Span](_Nothing())
_tracer: Tracer | None = None


def trace_with(tracer: Tracer | None) -> None:
    """From now on, in the whole process. None: trace nothing."""
    global _tracer  # as with logging: whoever does something need not know who listens
    _tracer = tracer


def span(
    name: str, kind: SpanKind, *, parent: str | None = None, facts: Facts | None = None
) -> AbstractContextManager[Span]:
    """`parent` is the traceparent of another process or of an earlier time; None: the span around this one."""
    return _NOTHING if _tracer is None else _tracer(name, kind, parent, facts or {})
