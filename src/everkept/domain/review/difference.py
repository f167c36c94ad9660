"""What differs between two texts of a page, line by line, for people and for `patch`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from everkept.domain.review.hunk import hunk_of

CONTEXT_LINES = 3
OPEN_END = "\\ No newline at end of file\n"


def difference(before: str, after: str, *, before_name: str, after_name: str) -> str:
    """A unified diff; empty where both are the same. Only the lines between the first and the last that differ are
    compared with each other, so that a long page takes no time."""
    if before == after:
        return ""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    hunk = hunk_of(old, new)
    start = max(0, hunk.start - CONTEXT_LINES)
    old_end = min(len(old), hunk.start + len(hunk.old) + CONTEXT_LINES)
    new_end = min(len(new), hunk.end + CONTEXT_LINES)
    parts = _parts(old[start:old_end], new[start:new_end], start)
    return "".join([f"--- {before_name}\n", f"+++ {after_name}\n", *parts])


def _parts(old: Sequence[str], new: Sequence[str], offset: int) -> Iterator[str]:
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT_LINES):
        first, last = group[0], group[-1]
        ranges = _range(offset + first[1], last[2] - first[1]), _range(offset + first[3], last[4] - first[3])
        yield f"@@ -{ranges[0]} +{ranges[1]} @@\n"
        for kind, old_start, old_end, new_start, new_end in group:
            if kind == "equal":
                yield from _lines(" ", old[old_start:old_end])
                continue
            yield from _lines("-", old[old_start:old_end])
            yield from _lines("+", new[new_start:new_end])


def _range(start: int, length: int) -> str:
    """As `patch` counts: from 1, a length of one is left out, and nothing stands after the line before it."""
    return str(start + 1) if length == 1 else f"{start + 1 if length else start},{length}"


def _lines(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n{OPEN_END}"
