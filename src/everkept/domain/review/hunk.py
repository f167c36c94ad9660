"""The one place in which two texts of a page differ, in lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Lines `start` to `end` of the later text, and what stood in their place before."""

    start: int
    end: int
    old: Sequence[str]


def hunk_of(before: Sequence[str], after: Sequence[str]) -> Hunk:
    """What is between the lines that both have at the head and those that both have at the end."""
    head = _alike(before, after)
    tail = _alike(before[head:][::-1], after[head:][::-1])
    return Hunk(start=head, end=len(after) - tail, old=before[head : len(before) - tail])


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
