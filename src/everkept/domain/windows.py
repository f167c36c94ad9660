"""Which events make a window, and when it opens: decided from the stream alone, whoever woke the decision (G5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What a stream holds that no window covers, and what is asked of it. Times in microseconds since 1970."""

    covered_seq: int
    last_seq: int
    tokens: int
    first_recorded_at: int
    last_recorded_at: int
    end_through: int
    pulled_due_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRules:
    enabled: bool
    idle_s: float | None
    wait_max_s: float
    events_max: int
    tokens_max: int


@dataclass(frozen=True, slots=True)
class Open:
    """Open windows now. `partial` allows a last one that is not full."""

    because: str
    partial: bool
    skipped_because: str | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    until_us: int


@dataclass(frozen=True, slots=True)
class Nothing:
    """Nothing is pending, or nothing but a message or an explicit end will open it."""


Decision = Open | Wait | Nothing


def decide(pending: Pending, rules: WindowRules, now_us: int) -> Decision:
    if pending.covered_seq >= pending.last_seq:
        return Nothing()
    if not rules.enabled:
        return Open("memory off", partial=True, skipped_because="memory.enabled is false")
    if pending.end_through > pending.covered_seq:
        return Open("end", partial=True)
    full = pending.last_seq - pending.covered_seq >= rules.events_max or pending.tokens >= rules.tokens_max
    due = due_at_us(pending, rules)
    if due is not None and now_us >= due:
        return Open("idle", partial=True)
    if full:
        return Open("full", partial=False)
    return Nothing() if due is None else Wait(due)


def due_at_us(pending: Pending, rules: WindowRules) -> int | None:
    """Idle time after the last message, at most the longest wait after the first; sooner where a sibling pulled it."""
    if rules.idle_s is None:
        return None
    idle = int(rules.idle_s * 1e6)
    due = min(pending.last_recorded_at + idle, pending.first_recorded_at + idle + int(rules.wait_max_s * 1e6))
    return due if pending.pulled_due_at is None else min(due, pending.pulled_due_at)


def cut(first_seq: int, tokens: Sequence[int], rules: WindowRules, *, partial: bool) -> list[tuple[int, int]]:
    """Tile events `first_seq, first_seq + 1, …` (their token counts given) into [start, end] windows in both limits.

    An event over the token limit is a window of its own. The last window is left out unless it is full or `partial`.
    """
    windows: list[tuple[int, int]] = []
    start, used = first_seq, 0
    for seq, count in enumerate(tokens, first_seq):
        if seq > start and used + count > rules.tokens_max:
            windows.append((start, seq - 1))
            start, used = seq, 0
        used += count
        if seq - start + 1 >= rules.events_max or used >= rules.tokens_max:
            windows.append((start, seq))
            start, used = seq + 1, 0
    last = first_seq + len(tokens) - 1
    if partial and start <= last:
        windows.append((start, last))
    return windows


def slices_of(tokens: int, tokens_max: int) -> int:
    """In how many pieces a window is worked: one, unless it is a single event over the limit.

    Pieces end at a sentence where they can, so they are not all full; a piece too many is empty, and done at once.
    """
    return 1 if tokens <= tokens_max else -(-tokens * 4 // (tokens_max * 3)) + 1
