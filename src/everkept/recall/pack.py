"""A block for a prompt: what was recalled, with dates and sources, within a budget of tokens. Pure.

Items are taken in the order of their rank while they fit, and shown in the order of time. What the block says already
is not said again: an item of which nothing is new costs nothing, and a quote that stands there is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Final

from everkept.domain.transcript import estimate_tokens
from everkept.recall.said import Said

NOTHING_FITS: Final = "(nothing of what was recalled fits into {tokens} tokens)"
_HEADINGS: Final = (
    ("page", "Pages"), ("fact", "Known facts"), ("episode", "Earlier conversations"), ("turn", "What was said"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One recalled thing, as it is to be shown."""

    id: str
    kind: str
    text: str
    speaker: str | None = None
    occurred_at: datetime | None = None
    thread: str | None = None
    quote: str | None = None
    unsettled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    text: str
    """Empty where nothing was recalled; a note in brackets where nothing fits, unless even that does not."""
    tokens: int
    kept: frozenset[str]
    """Ids of the items that are in it, or of which every word is."""


def pack(items: Sequence[Item], tokens: int | None = None, *, besides: Sequence[str] = ()) -> Packed:
    """Pack items, given best first, into at most `tokens` (by estimate); no budget means all of them.

    `besides` are texts that the reader of the block has before them anyway.
    """
    kept: list[tuple[Item, str]] = []
    repeated: set[str] = set()
    said = Said(besides)
    used, kinds = 0, set()
    for item in items:
        if said.holds(item.text):
            repeated.add(item.id)
            continue
        line = _line(item, said)
        if tokens is not None:
            heading = 0 if item.kind in kinds else estimate_tokens(_heading(item.kind)) + 1
            cost = estimate_tokens(line) + 1 + heading
            if used + cost > tokens:
                continue
            used += cost
        kinds.add(item.kind)
        kept.append((item, line))
        said.add(f"{item.text}\n{item.quote or ''}")
    text = _block(kept)
    if len(items) > len(repeated) and not kept:
        note = NOTHING_FITS.format(tokens=tokens)
        text = note if tokens is None or estimate_tokens(note) <= tokens else ""
    return Packed(text=text, tokens=estimate_tokens(text), kept=frozenset(repeated | {i.id for i, _ in kept}))


def _block(lines: Sequence[tuple[Item, str]]) -> str:
    parts = []
    for kind, _ in _HEADINGS:
        mine = sorted([(_time(item), line) for item, line in lines if item.kind == kind], key=itemgetter(0))
        if mine:
            parts.append("\n".join([_heading(kind), *[line for _, line in mine]]))
    return "\n".join(parts)


def _heading(kind: str) -> str:
    return dict(_HEADINGS)[kind] + ":"


def _time(item: Item) -> float:
    return item.occurred_at.timestamp() if item.occurred_at is not None else float("-inf")


def _line(item: Item, said: Said) -> str:
    """`- [2026-03-01 09:30] Ann: text (chat-1, evt_1_2)`; further lines of the text are indented."""
    when = "" if item.occurred_at is None else f"[{item.occurred_at:{_WHEN_FORMAT[item.kind == 'turn']}}] "
    who = f"{item.speaker}: " if item.kind in ("turn", "page") and item.speaker else ""
    shown = item.quote and item.quote != item.text and not said.holds(item.quote)
    quote = f' ("{_indented(item.quote or "")}")' if shown else ""
    doubt = " [contradicted elsewhere, not settled]" if item.unsettled else ""
    source = ", ".join(s for s in (item.thread, item.id) if s)
    return f"- {when}{who}{_indented(item.text)}{quote}{doubt} ({source})"


_WHEN_FORMAT: Final = {True: "%Y-%m-%d %H:%M", False: "%Y-%m-%d"}


def _indented(text: str) -> str:
    return "\n  ".join(text.strip().splitlines())
