"""What can be erased: exactly one event, stream, subject or project (G10)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTarget:
    """One message. The rest of its window is derived again from what remains."""

    stream: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTarget:
    """One thread with all its messages."""

    stream: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectTarget:
    """All that is kept about one subject, in all its threads."""

    subject: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectTarget:
    """The whole project that the call is scoped to."""


Target = EventTarget | StreamTarget | SubjectTarget | ProjectTarget


ERASED_MARK = "\x1ferased "
"""Begins what stands in the place of an erased name; names given at a door hold no control character."""


def erased_name(row: int) -> str:
    return f"{ERASED_MARK}{row}"
