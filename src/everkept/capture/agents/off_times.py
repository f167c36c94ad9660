"""What was said under `EVERKEPT_OFF=1`: hooks note when a session went off and on again, and what transcripts tell of
the time between is kept out, whenever they are read on this machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from everkept.domain.session import AgentEvent
from everkept.hook.hook_script import off_file

BEFORE_US: Final = 2_000_000
"""A hook runs after what it tells of was stamped in the transcript, at most so long."""
_SWITCH = re.compile(r"(\d{1,25}) (off|on)")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffTimes:
    """When a session was off: from each `begin` until its `end`, microseconds since 1970; None: it still is."""

    spans: tuple[tuple[int, int | None], ...] = ()

    def covers(self, at_us: int | None) -> bool:
        """Whether it was off then. Of what has no time nobody can tell, so that it counts as off."""
        if at_us is None:
            return bool(self.spans)
        return any(begin <= at_us and (end is None or at_us < end) for begin, end in self.spans)

    def began_before(self, at_us: int | None) -> bool:
        return any(at_us is None or begin <= at_us for begin, _ in self.spans)


def off_times(home: Path, agent: str, session: str) -> OffTimes:
    """What the hooks of this home noted. Raises OSError where the note is there and cannot be read."""
    try:
        lines = Path(off_file(str(home), agent, session)).read_text(encoding="ascii", errors="replace").splitlines()
    except FileNotFoundError:
        return OffTimes()
    spans: list[tuple[int, int | None]] = []
    for match in filter(None, map(_SWITCH.fullmatch, lines)):
        at_us = int(match[1]) // 1_000
        is_off = bool(spans) and spans[-1][1] is None
        if match[2] == "off" and not is_off:
            spans.append((at_us - BEFORE_US, None))
        elif match[2] == "on" and is_off:
            spans[-1] = (spans[-1][0], at_us)
    return OffTimes(spans=tuple(spans))


def without_off(events: Iterable[AgentEvent], home: Path) -> tuple[list[AgentEvent], set[str]]:
    """(events of the times when their session, or the one that started it, was not off; sessions that ever were).

    An event without a time happened when the one before it did. A summary of what went before repeats it, and a title
    tells of it. Raises OSError.
    """
    known: dict[tuple[str, str], OffTimes] = {}
    kept: list[AgentEvent] = []
    touched: set[str] = set()
    at_us: int | None = None
    for event in events:
        at_us = at_us if event.occurred_at_us is None else event.occurred_at_us
        times = []
        for session in filter(None, (event.session, event.parent)):
            key = (event.agent, session)
            if key not in known:
                known[key] = off_times(home, *key)
            times.append(known[key])
        if any(each.spans for each in times):
            touched.add(event.session)
        if not any(each.covers(at_us) for each in times):
            kept.append(_untold(event) if any(each.began_before(at_us) for each in times) else event)
    return kept, touched


def _untold(event: AgentEvent) -> AgentEvent:
    """Without what tells of earlier events."""
    extra = {name: value for name, value in event.extra.items() if name != "title"}
    return replace(event, text="" if event.kind == "compaction" else event.text, extra=extra)
