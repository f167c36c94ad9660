"""What a person marks as private: `<private>…</private>` goes, with its marks."""

from __future__ import annotations

import re
from typing import Final

_MARK: Final = re.compile(r"(?:<|&lt;)\s*(/?)\s*private\b[^<>]{0,1000}?(?:>|&gt;)", re.IGNORECASE)


def strip_private(text: str) -> str:
    """The text without its private parts. A part that is not closed goes to the end; parts may lie in one another."""
    while (kept := _without_private(text)) != text:
        text = kept  # what was apart may have become a mark
    return text


def _without_private(text: str) -> str:
    kept, start, depth = [], 0, 0
    for mark in _MARK.finditer(text):
        closes = bool(mark[1])
        if depth == 0 and not closes:
            kept.append(text[start : mark.start()])
        depth = max(0, depth - 1) if closes else depth + 1
        if depth == 0 and closes:
            start = mark.end() if len(kept) else start
    return "".join(kept) + (text[start:] if depth == 0 else "")
