"""What differs between two texts of a page, line by line, for people and for `patch`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

from everkept.domain.review.hunk import Hunk, hunk_of

CONTEXT_LINES = 3
Step: TypeAlias = tuple[str, int, int, int, int]
"""`equal`, `replace`, `delete` or `insert`; where in the old lines, and where in the new."""
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
    parts = _parts(old[start:old_end], new[start:new_end], start, hunk.start - start, hunk)
    return "".join([f"--- {before_name}\n", f"+++ {after_name}\n", *parts])


def _parts(old: Sequence[str], new: Sequence[str], offset: int, before: int, hunk: Hunk) -> Iterator[str]:
    """`before`: lines of context above the hunk. Context is never matched with the hunk's own lines: `patch` takes a
    part without lines below it for the end of the file."""
    for group in _grouped(old, new, before, hunk):
        first, last = group[0], group[-1]
        ranges = _range(offset + first[1], last[2] - first[1]), _range(offset + first[3], last[4] - first[3])
        yield f"@@ -{ranges[0]} +{ranges[1]} @@\n"
        for kind, old_start, old_end, new_start, new_end in group:
            if kind == "equal":
                yield from _lines(" ", old[old_start:old_end])
                continue
            yield from _lines("-", old[old_start:old_end])
            yield from _lines("+", new[new_start:new_end])


def _grouped(old: Sequence[str], new: Sequence[str], before: int, hunk: Hunk) -> Iterator[Sequence[Step]]:
    added = new[before : before + hunk.end - hunk.start]
    inner = SequenceMatcher(None, hunk.old, added, autojunk=False).get_opcodes()
    steps: list[Step] = [("equal", 0, before, 0, before)] if before else []
    steps += [(kind, a + before, b + before, c + before, d + before) for kind, a, b, c, d in inner]
    ends = before + len(hunk.old), before + len(added)
    if ends[0] < len(old):
        steps.append(("equal", ends[0], len(old), ends[1], len(new)))
    group: list[Step] = []
    for step in steps:
        kind, a, b, c, d = step
        if kind == "equal" and b - a > 2 * CONTEXT_LINES and group:
            yield [*group, (kind, a, a + CONTEXT_LINES, c, c + CONTEXT_LINES)]
            group = [(kind, b - CONTEXT_LINES, b, d - CONTEXT_LINES, d)]
        else:
            group.append(step)
    yield group


def _range(start: int, length: int) -> str:
    """As `patch` counts: from 1, a length of one is left out, and nothing stands after the line before it."""
    return str(start + 1) if length == 1 else f"{start + 1 if length else start},{length}"


def _lines(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n{OPEN_END}"
