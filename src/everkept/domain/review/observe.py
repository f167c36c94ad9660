"""What one session shows that may come again: corrections, errors, recoveries, procedures. Pure, no model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from everkept.domain.digest import SessionEvent, digest_session, trivial
from everkept.domain.review.corrections import corrections_in
from everkept.domain.review.failures import failures_in
from everkept.domain.review.steps import procedures_in
from everkept.domain.review.values import Observation

OF_A_KIND_MAX: Final = 100
"""Of one session: more are not counted across sessions."""


def observe(stream: int, events: Sequence[SessionEvent]) -> tuple[Observation, ...]:
    """Observe a session. `stream`: whose events they are; those of sub-agents among them are left out.

    A trivial session shows nothing. Each signature stands once an event.
    """
    own = _own(events)
    digest = digest_session(own)
    if trivial(digest) is not None:
        return ()
    found = [
        *corrections_in(stream, own, digest),
        *failures_in(stream, own, digest),
        *procedures_in(stream, own, digest),
    ]
    return tuple(_bounded(found))


def _own(events: Sequence[SessionEvent]) -> list[SessionEvent]:
    """Those of the session itself: an event of a sub-agent has its place in another stream."""
    head = next((entry.event for entry in events if entry.event.parent is None), None)
    if head is None:
        head = events[0].event if events else None
    if head is None:
        return []
    return [entry for entry in events if entry.event.session == head.session and entry.event.parent == head.parent]


def _bounded(found: Iterable[Observation]) -> Iterator[Observation]:
    kinds: Counter[str] = Counter()
    seen: set[tuple[str, int]] = set()
    for one in found:
        identity = (one.signature, one.quote.seq)
        if identity not in seen and kinds[one.kind] < OF_A_KIND_MAX:
            seen.add(identity)
            kinds[one.kind] += 1
            yield one
