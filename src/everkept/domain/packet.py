"""What a launch's agent is told of its workstream: the newest events, and a line that counts the earlier ones. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from everkept.domain.session import shortened
from everkept.domain.transcript import estimate_tokens

EVENT_CHARS_MAX: Final = 400
EVENTS_MAX: Final = 200
"""So many of the newest are looked at."""
_HEAD_TOKENS: Final = 120
"""Room for the lines that say what this is, and what is only counted."""
_LAST_US: Final = 253_402_300_799_000_000
"""The end of the year 9999: an agent may tell any time."""
_DOES: Final = {"prompt": "was asked", "said": "said", "tool": "ran", "plan": "planned", "turn_end": "ended its turn"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketEvent:
    agent: str
    kind: str
    text: str
    occurred_at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketText:
    text: str
    """Empty where nothing is new."""
    shown: int
    counted: int
    """Events that stand as one line."""


def compose_packet(
    name: str, newest: Sequence[PacketEvent], by_agent: Mapping[str, int], *, tokens: int, continued: bool
) -> PacketText:
    """Of the workstream `name`: as many of the `newest` (oldest first) as fit, and the rest of `by_agent` counted.

    `by_agent` counts all events of the range. `continued`: the session was told what came before the range. The
    newest event is always shown, cut if it must be.
    """
    total = sum(by_agent.values())
    if not total:
        return PacketText(text="", shown=0, counted=0)
    lines: list[str] = []
    room = max(0, tokens - _HEAD_TOKENS)
    for event in reversed(newest):
        line = _line(event)
        room -= estimate_tokens(line) + 1
        if lines and room < 0:
            break
        lines.append(line)
    shown = newest[len(newest) - len(lines) :]
    earlier = Counter(dict(by_agent)) - Counter(event.agent for event in shown)
    since = "since this session was told last" if continued else "so far"
    head = [f"{_events(total)} of other sessions {since} ({_shares(by_agent)}), the newest last."]
    if earlier:
        head.append(
            f"The first {sum(earlier.values()):,} are only counted here ({_shares(earlier)});"
            f" the events of the workstream {name!r} tell them all."
        )
    return PacketText(
        text="\n".join([*head, *reversed(lines)]), shown=len(shown), counted=sum(earlier.values())
    )  # fmt: skip


def _line(event: PacketEvent) -> str:
    told_s = min(max(event.occurred_at_us, 0), _LAST_US) // 1_000_000
    at = datetime.fromtimestamp(told_s, UTC).strftime("%Y-%m-%d %H:%M")
    text = " ".join(shortened(event.text, EVENT_CHARS_MAX).split())
    return f"- {at} {event.agent} {_DOES.get(event.kind, event.kind)}: {text}"


def _events(count: int) -> str:
    return f"{count:,} event{'s' if count != 1 else ''}"


def _shares(by_agent: Mapping[str, int]) -> str:
    return ", ".join(f"{agent} {count:,}" for agent, count in sorted(by_agent.items()) if count)
