"""A block for a prompt: what was recalled, with dates and sources, within a budget of tokens. Pure.

Items are taken in the order of their rank while they fit, and shown in the order of time. One that is longer than what
is left is cut to it, around what answers the question; what then finds no room is counted, so that it can be told.
What the block says already
is not said again: an item of which nothing is new costs nothing, and a quote that stands there is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from typing import Final

from everkept.domain.transcript import estimate_tokens
from everkept.recall.excerpt import excerpt
from everkept.recall.said import Said

NOTHING_FITS: Final = "(nothing of what was recalled fits into {tokens} tokens)"
CUT_TOKENS_MIN: Final = 24
"""Of a text that is cut; less than that of it tells nothing."""
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
    """Ids of the items that are in it, whole or cut, or of which every word is."""
    cut: Mapping[str, str]
    """{id: what of its text is in it}, of those that did not fit whole."""
    left_out: str | None
    """What found no room, in words; None where everything did."""


def pack(
    items: Sequence[Item], tokens: int | None = None, *, question: str = "", besides: Sequence[str] = ()
) -> Packed:
    """Pack items, given best first, into at most `tokens` (by estimate); no budget means all of them.

    `besides` are texts that the reader of the block has before them anyway.
    """
    kept: list[tuple[Item, str]] = []
    repeated: set[str] = set()
    left_out: list[Item] = []
    cut: dict[str, str] = {}
    said = Said(besides)
    used, kinds = 0, set()
    for whole in items:
        if said.holds(whole.text):
            repeated.add(whole.id)
            continue
        item = whole
        if tokens is not None:
            room = tokens - used - (0 if item.kind in kinds else estimate_tokens(_heading(item.kind)) + 1)
            fitting = _fitted(item, room, question, said)
            if fitting is None:
                left_out.append(item)
                continue
            if fitting.text != item.text:
                cut[item.id] = fitting.text
            item = fitting
            used = tokens - room + _cost(item, said)
        kinds.add(item.kind)
        kept.append((item, _line(item, said)))
        said.add(f"{item.text}\n{item.quote or ''}")
    text = _block(kept)
    if left_out and not kept:
        note = NOTHING_FITS.format(tokens=tokens)
        text = note if tokens is None or estimate_tokens(note) <= tokens else ""
    return Packed(
        text=text, tokens=estimate_tokens(text), kept=frozenset(repeated | {i.id for i, _ in kept}), cut=cut,
        left_out=_not_fitting(left_out),
    )  # fmt: skip


def _cost(item: Item, said: Said) -> int:
    """Tokens of its line, with the break after it."""
    return estimate_tokens(_line(item, said)) + 1


def _fitted(item: Item, room: int, question: str, said: Said) -> Item | None:
    """It as it fits into `room` tokens: whole, else as much of its text as does; None where that would say nothing."""
    if _cost(item, said) <= room:
        return item
    bare = replace(item, text="", quote=None)
    if room - _cost(bare, said) < CUT_TOKENS_MIN:
        return None
    part = excerpt(item.text, question, lambda text: _cost(replace(bare, text=text), said) <= room)
    return replace(bare, text=part) if part else None


def _not_fitting(items: Sequence[Item]) -> str | None:
    if not items:
        return None
    results = "1 result" if len(items) == 1 else f"{len(items)} results"
    return f"{results} of {sum(estimate_tokens(i.text) for i in items):,} tokens did not fit"


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
