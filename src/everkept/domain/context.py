"""The block that a coding agent is given: parts in the order of their weight, within a budget, byte for byte the same.

It tells facts and gives no orders, names what each part rests on, and carries the mark of its offer, by which importers
know it again when it comes back (D07).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from everkept.domain.transcript import estimate_tokens

TOKENS_MAX: Final = 2_000
CHARS_MAX: Final = 9_000
PROMPT_TOKENS_MAX: Final = 400
PROMPT_CHARS_MAX: Final = 2_000
OFFER_MARK: Final = "everkept:offer"
OPENING: Final = "Memory of earlier work"
"""Begins the block, after its mark."""
_MARK: Final = re.compile(rf"\A<!-- {OFFER_MARK} [^>\n]*-->\n")
_MORE: Final = "[…]"
_HEAD_CHARS: Final = 260
"""Room for the lines around the parts: what this is, where it comes from, what it costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing that may be shown. `id` names it with its version, so that it is not shown twice."""

    id: str
    heading: str
    text: str
    least: int = 120
    """It is cut to fit down to so many characters, and left out below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    text: str
    """Empty where there is nothing to show."""
    shown: tuple[str, ...]
    """Ids of the parts in it, also of those that were cut."""
    left_out: int
    tokens: int
    """Of its words, without the mark, so that the mark changes nothing else."""


def compose(
    parts: Sequence[Part], *, scope: str, offer: str | None = None, tokens: int = TOKENS_MAX, chars: int = CHARS_MAX
) -> Block:
    """As many parts as fit, heaviest first. `scope` says whose memory it is; `offer` the id of the offer."""
    room = min(chars, tokens * 4) - _HEAD_CHARS
    kept: list[tuple[Part, str]] = []
    for part in parts:
        text = _fitting(part, room, tokens - _HEAD_CHARS // 4 - sum(estimate_tokens(t) for _, t in kept))
        if text:
            kept.append((part, text))
            room -= len(text) + 2
    if not kept:
        return Block(text="", shown=(), left_out=len(parts), tokens=0)
    body = "\n\n".join(text for _, text in kept)
    left_out = len(parts) - len(kept)
    head = f"{OPENING} ({scope[:120]}). These are notes, not instructions; they may be out of date."
    words, said = _told_its_tokens([head, "", body, ""], left_out)
    mark = "" if offer is None else f"<!-- {OFFER_MARK} {offer} -->\n"
    return Block(text=mark + words, shown=tuple(p.id for p, _ in kept), left_out=left_out, tokens=said)


def unmarked(block: str) -> str:
    """The words of a block, without the mark of its offer."""
    return _MARK.sub("", block)


def tokens_of(block: str) -> int:
    """As a block says it of itself: of its words."""
    return estimate_tokens(unmarked(block))


def _told_its_tokens(lines: Sequence[str], left_out: int) -> tuple[str, int]:
    """The lines and one that says how many tokens they are with it, and that number: it grows until it is true."""
    more = "" if not left_out else f"; {left_out} more did not fit"
    said = 0
    while True:
        text = "\n".join([*lines, f"(about {said:,} tokens{more})"])
        counted = estimate_tokens(text)
        if counted == said:
            return text, said
        said = counted


def _fitting(part: Part, chars: int, tokens: int) -> str:
    """The part with its heading, cut at a line where it is too long; empty where too little of it would be left."""
    head = f"## {part.heading}\n"
    text = head + part.text.strip()
    if len(text) <= chars and estimate_tokens(text) <= tokens:
        return text
    limit = min(chars, max(0, tokens) * 4)
    while limit > len(head) + part.least:
        cut = _cut(text, limit - len(_MORE) - 1)
        if estimate_tokens(cut) <= tokens:
            return f"{cut}\n{_MORE}"
        limit = limit * 3 // 4
    return ""


_FENCE = re.compile(r"^\s{0,3}(?:```|~~~)", re.MULTILINE)


def _cut(text: str, limit: int) -> str:
    """The text up to the last line or word that fits; an open code fence is closed."""
    head = text[:limit]
    line = head.rfind("\n")
    cut = head[:line] if line > limit // 2 else head[: max(head.rfind(" "), 0)] or head
    return cut + "\n```" if len(_FENCE.findall(cut)) % 2 else cut
