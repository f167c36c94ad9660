"""Drafts of facts, and what must hold before one is believed: it is quoted from the window, dated and bounded."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from everkept.domain.dates import parse_date
from everkept.domain.grounds import is_named, other_language, says_a_time, words_of
from everkept.domain.predicates import normalise_name, normalise_predicate, normalise_text
from everkept.domain.transcript import Turn

FactKind = Literal["literal", "entity"]
EntityType = Literal["person", "place", "organisation", "animal", "event", "product", "work", "other"]
ENTITY_TYPES: tuple[EntityType, ...] = (
    "person", "place", "organisation", "animal", "event", "product", "work", "other",
)  # fmt: skip
CHARS_MAX = {"entity": 200, "predicate": 120, "object": 500, "text": 800, "quote": 1_000, "replaces": 500}
QUOTE_CHARS_MIN = 2
DRAFTS_MAX = 60
FACTS_PER_TURN_MAX = 2
"""More than `DRAFTS_MAX` of one window, and more than so many a turn, is a model that lost its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactDraft:
    """One statement that somebody (a model, a rule) wants to be remembered."""

    entity: str
    predicate: str
    object: str
    text: str
    """The statement as a sentence, in the language it was said in (D08)."""
    quote: str
    """Verbatim words of the window that it rests on."""
    confidence: float
    valid_from_us: int | None = None
    valid_until_us: int | None = None
    valid_from_said: str | None = None
    """A date still to be resolved against the time of the quoted turn; None once it is."""
    valid_until_said: str | None = None
    kind: FactKind = "literal"
    object_type: EntityType = "other"
    single_valued: bool | None = None
    """Whether a later statement with another object replaces this one; None where it cannot be told."""
    closes: bool = False
    """Says that the state (entity, predicate, object) ended, and when (`valid_until`, else when it was said)."""
    correction: bool = False
    """Says that an earlier statement was wrong from the start."""
    replaces: str = ""
    """The object that a correction takes back, where it was named."""
    seqs: tuple[int, ...] = ()
    """The events of the quote."""


@dataclass(frozen=True, slots=True)
class Rejected:
    draft: FactDraft
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a window's drafts came to; `accepted` is in the order in which things were said."""

    accepted: tuple[FactDraft, ...]
    rejected: tuple[Rejected, ...]


def check_drafts(turns: Sequence[Turn], drafts: Iterable[FactDraft], names: Iterable[str] = ()) -> Checked:
    """Accept what is quoted from an evidence turn of the window, well-formed, and not said twice.

    Dates said relatively are resolved against the turn that was quoted. An accepted draft carries that turn's seq.
    `names` are those that may be meant without being said: the speakers' and those of what is known already.
    """
    texts = _evidence_texts(turns)
    said = words_of([*names, *(turn.content for turn, _ in texts), *(turn.name or "" for turn, _ in texts)])
    most = max(DRAFTS_MAX, FACTS_PER_TURN_MAX * len(texts))
    accepted: list[tuple[int, int, FactDraft]] = []
    rejected: list[Rejected] = []
    seen: set[tuple[object, ...]] = set()
    for draft in drafts:
        place = _find_quote(texts, draft)
        reason = _malformed(draft) or ("the quote is not in the window" if place is None else _unnamed(draft, said))
        if reason is None and place is not None:
            timeless = not says_a_time(_around(texts, place[2]))
            draft, reason = _dated(_in_its_language(draft, place[0]), place[0], timeless=timeless)
        if reason is None and _identity(draft) in seen:
            reason = "repeats another item"
        if reason is None and len(accepted) >= most:
            reason = f"more than {most} items"
        if reason is not None or place is None:
            rejected.append(Rejected(draft, reason or ""))
            continue
        seen.add(_identity(draft))
        accepted.append((place[2], place[1], replace(draft, seqs=(place[0].seq,))))
    accepted.sort(key=lambda item: item[:2])
    return Checked(accepted=tuple(draft for _, _, draft in accepted), rejected=tuple(rejected))


def _evidence_texts(turns: Sequence[Turn]) -> list[tuple[Turn, str]]:
    """Evidence by event, slices of one event joined again, each with its text normalised."""
    whole: dict[tuple[int, int], Turn] = {}
    for turn in turns:
        if turn.evidence:
            key = (turn.stream, turn.seq)
            whole[key] = replace(turn, content=whole[key].content + turn.content) if key in whole else turn
    return [(turn, normalise_text(turn.content)) for turn in whole.values()]


def _find_quote(texts: list[tuple[Turn, str]], draft: FactDraft) -> tuple[Turn, int, int] | None:
    """The turn that holds the quote (the one named, else the first), where in it, and its place in the window."""
    quote = normalise_text(draft.quote).strip(" \"'")
    if len(quote) < QUOTE_CHARS_MIN or not re.search(r"\w", quote):
        return None
    found = [(turn, text.find(quote), place) for place, (turn, text) in enumerate(texts) if quote in text]
    named = [hit for hit in found if hit[0].seq in draft.seqs]
    return next(iter(named or found), None)


def _malformed(draft: FactDraft) -> str | None:
    for name in ("entity", "predicate", "object", "text", "quote"):
        value: str = getattr(draft, name)
        if not value.strip():
            return f"{name} is empty"
    for name, limit in CHARS_MAX.items():
        if len(getattr(draft, name)) > limit:
            return f"{name} is longer than {limit} characters"
    if not math.isfinite(draft.confidence) or not 0 <= draft.confidence <= 1:
        return f"confidence {draft.confidence} is not between 0 and 1"
    if normalise_name(draft.entity) == normalise_name(draft.object):
        return "entity and object are the same"
    if not normalise_name(draft.object) or not normalise_predicate(draft.predicate):
        return "object or predicate has no words"
    return None if draft.object_type in ENTITY_TYPES else f"object type {draft.object_type!r} is not known"


def _unnamed(draft: FactDraft, said: frozenset[str]) -> str | None:
    """Who is meant must have been named: a model makes up people too."""
    persons = [draft.entity, *([draft.object] if draft.object_type == "person" else [])]
    return next((f"nobody called {name!r} is in the window" for name in persons if not is_named(name, said)), None)


def _around(texts: list[tuple[Turn, str]], place: int) -> str:
    """A turn with two either side: where the time of what it says would have been said."""
    return "\n".join(turn.content for turn, _ in texts[max(0, place - 2) : place + 3])


def _in_its_language(draft: FactDraft, turn: Turn) -> FactDraft:
    """In the words that were said, where the model translated them."""
    if len(draft.quote) <= CHARS_MAX["text"] and other_language(draft.text, turn.content):
        return replace(draft, text=draft.quote)
    return draft


def _dated(draft: FactDraft, turn: Turn, *, timeless: bool) -> tuple[FactDraft, str | None]:
    """The draft with its dates resolved, or the reason why that cannot be.

    `timeless`: nobody spoke of a time there, so that a date still to be resolved is the model's own, and left out.
    """
    start, end = draft.valid_from_us, draft.valid_until_us
    if draft.valid_from_said and start is None:
        start = parse_date(draft.valid_from_said, turn.occurred_at_us, turn.zone_min)
        if start is None:
            return draft, f"valid_from {draft.valid_from_said[:40]!r} is not a date"
    if draft.valid_until_said and end is None:
        end = parse_date(draft.valid_until_said, turn.occurred_at_us, turn.zone_min, end=not draft.closes)
        if end is None:
            return draft, f"valid_until {draft.valid_until_said[:40]!r} is not a date"
    if start is not None and end is not None and start > end:
        return draft, "valid_from lies after valid_until"
    if timeless:
        start, end = draft.valid_from_us, draft.valid_until_us
    dated = replace(draft, valid_from_us=start, valid_until_us=end, valid_from_said=None, valid_until_said=None)
    return dated, None


def _identity(draft: FactDraft) -> tuple[object, ...]:
    return (
        normalise_name(draft.entity), normalise_predicate(draft.predicate), normalise_name(draft.object),
        draft.closes, draft.valid_from_us, draft.valid_until_us,
    )  # fmt: skip


def check_bounds(draft: FactDraft) -> tuple[str, str] | None:
    """(field, what is wrong with it) of a statement made by hand, which needs no quote; None where all is well."""
    for name in ("entity", "predicate", "object", "text"):
        value: str = getattr(draft, name)
        if not value.strip():
            return name, f"{name} is empty"
        if len(value) > CHARS_MAX[name]:
            return name, f"{name} has {len(value)} characters; the limit is {CHARS_MAX[name]}"
        if "\x00" in value or any("\ud800" <= c <= "\udfff" for c in value):
            return name, f"{name} holds a NUL character or a lone surrogate"
    if not math.isfinite(draft.confidence) or not 0 <= draft.confidence <= 1:
        return "confidence", f"confidence is {draft.confidence}; 0 to 1 are allowed"
    start, end = draft.valid_from_us, draft.valid_until_us
    if start is not None and end is not None and start > end:
        return "valid_until", "valid_until lies before valid_from"
    return None
