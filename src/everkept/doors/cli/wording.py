"""How numbers, times and texts are written for people."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+")


def clean(text: str) -> str:
    """One line of text that cannot command a terminal, whatever somebody has stored in it."""
    return _CONTROL.sub(" ", text).strip()


_NOT_LINES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+")


def lines(text: str) -> str:
    """Text of several lines that cannot command a terminal; line breaks and tabs stay."""
    return _NOT_LINES.sub(" ", text.replace("\r\n", "\n"))


def clip(text: str, length: int) -> str:
    text = clean(text)
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 fact`, `1,204 facts`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(size_bytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size_bytes < 1000:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} TB"


def span(seconds: float | None) -> str:
    """A length of time in at most two units; a dash where there is none."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} days"


def day(moment: datetime | None, missing: str = "–") -> str:
    return moment.strftime("%Y-%m-%d") if moment else missing


def minute(moment: datetime | None, missing: str = "–") -> str:
    return moment.strftime("%Y-%m-%d %H:%M") if moment else missing


def ago(moment: datetime | None, now: datetime | None = None) -> str:
    """How long ago, or in how long; a dash where it never was."""
    if moment is None:
        return "–"
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    return f"{span(seconds)} ago" if seconds >= 0 else f"in {span(-seconds)}"


def more(cursor: str | None) -> str:
    """How to go on after one page of a list; nothing at its end."""
    return f"; more with --cursor {cursor}" if cursor else ""
