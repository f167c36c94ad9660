"""A long text as a few of its lines, the place of what was looked for among them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from everkept.domain.text import query_terms, terms
from everkept.doors.cli.wording import count

LINES_MAX: Final = 6
CHARS_MAX: Final = 480
BEFORE_CHARS: Final = 40
"""What is shown of a line before the word that was found in it, where the line is too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """The shown part of a text; `left_out` says how much more there is, and is empty where that is all."""

    text: str
    left_out: str


def fold(text: str, query: str) -> Folded:
    """At most `LINES_MAX` lines and `CHARS_MAX` characters, from around the line that has most words of the query."""
    lines = [line for line in text.splitlines() if line.strip()]
    whole = "\n".join(lines)
    if len(lines) <= LINES_MAX and len(whole) <= CHARS_MAX:
        return Folded(text=whole, left_out="")
    wanted = set(query_terms(query))
    best = max(range(len(lines)), key=lambda at: len(wanted & set(terms(lines[at]))), default=0)
    first = max(0, min(best - 1, len(lines) - LINES_MAX))
    shown = _within(lines[first : first + LINES_MAX], best - first, wanted)
    part, skipped = "\n".join(shown), len(lines) - len(shown)
    left_out = count(skipped, "more line") if skipped else count(len(whole) - len(part), "more character")
    return Folded(text=part, left_out=left_out)


def _within(lines: list[str], best: int, wanted: set[str]) -> list[str]:
    """The best line, and as many around it as fit, the ones after it first."""
    kept = {best: _around_match(lines[best], wanted)}
    left = CHARS_MAX - len(kept[best])
    for at in (*range(best + 1, len(lines)), *range(best - 1, -1, -1)):
        if len(lines[at]) >= left:
            break
        kept[at] = lines[at]
        left -= len(lines[at]) + 1
    return [kept[at] for at in sorted(kept)]


def _around_match(line: str, wanted: set[str]) -> str:
    if len(line) <= CHARS_MAX:
        return line
    words = line.split(" ")
    at = next((place for place, word in enumerate(words) if wanted & set(terms(word))), 0)
    start = max(0, len(" ".join(words[:at])) - BEFORE_CHARS)
    room = CHARS_MAX - (2 if start else 1)
    cut = line[start : start + room]
    return ("…" if start else "") + cut + ("…" if start + room < len(line) else "")
