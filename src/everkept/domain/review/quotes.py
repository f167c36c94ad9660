"""Quotes: words of an event as they stand in it, verbatim but for white space, short enough to be evidence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from everkept.domain.digest import SessionEvent
from everkept.domain.digest.clip import ELLIPSIS, clean, clip
from everkept.domain.review.values import QUOTE_CHARS_MAX, Quote
from everkept.domain.session import content_of

_WORDS_MIN: Final = 12
"""Characters of a beginning that still shows what is meant."""


def quote_of(stream: int, entry: SessionEvent, said: Iterable[str]) -> Quote | None:
    """The first of `said` that stands in the event, or as much of its beginning as does; None where none does."""
    held = " ".join(clean(content_of(entry.event)).split())
    for text in said:
        if found := _held(text, held):
            return Quote(stream=stream, seq=entry.seq, text=found)
    return None


def short(text: str) -> str:
    """On one line, at most `QUOTE_CHARS_MAX`, cut between words and without a mark, so that it stays verbatim."""
    line = " ".join(text.split())
    return line if len(line) <= QUOTE_CHARS_MAX else clip(line, QUOTE_CHARS_MAX).removesuffix(ELLIPSIS).rstrip()


def _held(text: str, held: str) -> str:
    line = short(text.removesuffix(ELLIPSIS))
    if line and line in held:
        return line
    # A line that a digest put together of two, or cleaned: as many of its first words as stand in the event.
    words = line.split()
    for end in range(len(words) - 1, 0, -1):
        beginning = " ".join(words[:end])
        if len(beginning) < _WORDS_MIN:
            return ""
        if beginning in held:
            return beginning
    return ""
