"""Questions to a model: a versioned instruction, and what users said as fenced data beside it.

Instructions and data are joined, never formatted into each other, so that no braces, fences or orders in a user's
text can change the question (D05, D06). Every array is required and every enum is part of the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, get_args

from everkept.domain.dates import local_time
from everkept.domain.distilled import Action, KnowledgeKind
from everkept.domain.facts import ENTITY_TYPES, FactKind
from everkept.domain.pages import sections_of
from everkept.domain.replies import Change, Holds, Ruling
from everkept.domain.review.shown import Shown
from everkept.domain.review.values import ACTIONS, TARGET_KINDS
from everkept.domain.session import shortened
from everkept.domain.session_lines import SessionLines
from everkept.domain.transcript import Turn, fence_line, render_transcript
from everkept.ports.models import Question

FACTS, SUMMARY, CONFLICTS, FOLD, PAGES, REVIEW = (
    "facts.1", "summary.1", "conflicts.1", "fold.1", "pages.1", "review.1",
)  # fmt: skip
"""The versions asked with today; a file that was ever used is never edited, only followed by the next number."""
KNOWN_MAX = 8
REPEATED_QUOTES, SECTIONS_SHOWN, PAGE_CHARS = 3, 30, 2_000
STRUCTURED_TIMEOUT_S = 90.0
TEXT_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFact:
    """A live fact shown to the model, so that it reuses names and predicates."""

    entity: str
    predicate: str
    object: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One statement of a pair with its evidence."""

    text: str
    quote: str
    said_us: int
    zone_min: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictPair:
    earlier: Side
    later: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPage:
    """A page that bears on a session, so that what it says is not said again. `id`: `pag_…`."""

    id: str
    kind: str
    title: str
    head: str
    """How it begins; of one that may be updated, more of it."""
    yours: bool
    """It was distilled from this session, and may be updated."""


@cache
def instruction(version: str) -> str:
    """The text of a prompt file of this package, e.g. `facts.1`."""
    return (resources.files("everkept.models.prompts") / f"{version}.md").read_text(encoding="utf-8").strip()


def build_facts_question(
    turns: Sequence[Turn],
    known_facts: Sequence[KnownFact],
    known_entities: Sequence[str],
    *,
    known_names: Mapping[str, str],
    timeout_s: float = STRUCTURED_TIMEOUT_S,
) -> Question:
    """Which durable facts does this window (or slice of one) hold? At most `KNOWN_MAX` known facts are shown."""
    known: list[Mapping[str, object]] = [{"entities": list(known_entities)}] if known_entities else []
    known += [{"entity": f.entity, "predicate": f.predicate, "object": f.object} for f in known_facts[:KNOWN_MAX]]
    data = "\n\n".join([_fenced("known", known), render_transcript(turns, known_names)])
    return _question("facts", FACTS, data, _FACTS_SCHEMA, timeout_s)


def build_summary_question(
    turns: Sequence[Turn], *, known_names: Mapping[str, str], timeout_s: float = TEXT_TIMEOUT_S
) -> Question:
    return _question("summary", SUMMARY, render_transcript(turns, known_names), _SUMMARY_SCHEMA, timeout_s)


def build_conflicts_question(pairs: Sequence[ConflictPair], *, timeout_s: float = STRUCTURED_TIMEOUT_S) -> Question:
    """One batched question for all pairs, numbered from 1 in their order."""
    lines = [
        {"pair": number, "earlier": _side(pair.earlier), "later": _side(pair.later)}
        for number, pair in enumerate(pairs, start=1)
    ]
    return _question("conflicts", CONFLICTS, _fenced("pairs", lines), _CONFLICTS_SCHEMA, timeout_s)


def build_fold_question(
    previous: str | None, summaries: Sequence[str], *, chars_max: int, timeout_s: float = TEXT_TIMEOUT_S
) -> Question:
    lines = [{"running_summary": previous}] if previous else []
    lines += [{"summary": summary} for summary in summaries]
    data = "\n\n".join([_fenced("summaries", lines), f"At most {chars_max} characters."])
    return _question("fold", FOLD, data, _FOLD_SCHEMA, timeout_s)


def build_pages_question(
    shown: SessionLines, pages: Sequence[KnownPage], *, timeout_s: float = STRUCTURED_TIMEOUT_S
) -> Question:
    """Which lasting knowledge does this session hold? `pages`: those that say some of it already."""
    known = [{"id": p.id, "kind": p.kind, "title": p.title, "text": p.head, "yours": p.yours} for p in pages]
    lines: list[Mapping[str, object]] = list(shown.lines)
    if shown.left_out:
        lines.append({"lines_left_out": shown.left_out})
    data = [_fenced("digest", [{"page": shown.digest}]), _fenced("session", lines), _fenced("pages", known)]
    return _question("pages", PAGES, "\n\n".join(data), _PAGES_SCHEMA, timeout_s)


def build_review_question(shown: Shown, *, timeout_s: float = STRUCTURED_TIMEOUT_S) -> Question:
    """Which improvements of the project's pages does this session bear out?"""
    lines: list[Mapping[str, object]] = list(shown.lines.lines)
    if shown.lines.left_out:
        lines.append({"lines_left_out": shown.lines.left_out})
    repeated = [
        {"id": id_, "kind": seen.kind, "sessions": seen.sessions, "worked": seen.detail,
         "said": [quote.text for quote in seen.quotes[:REPEATED_QUOTES]]}
        for id_, seen in shown.repeated.items()
    ]  # fmt: skip
    pages = [
        {"page": page.slug, "kind": page.kind, "title": page.title, "pinned": page.pinned,
         "sections": [section.anchor for section in sections_of(page.title, page.body)][:SECTIONS_SHOWN],
         "text": shortened(page.body, PAGE_CHARS)}
        for page in shown.pages
    ]  # fmt: skip
    data = [
        _fenced("digest", [{"page": shown.lines.digest}]), _fenced("session", lines), _fenced("repeated", repeated),
        _fenced("pages", pages),
    ]  # fmt: skip
    return _question("review", REVIEW, "\n\n".join(data), _REVIEW_SCHEMA, timeout_s)


def _question(step: str, version: str, data: str, schema: dict[str, Any], timeout_s: float) -> Question:
    return Question(
        step=step, version=version, system=instruction(version), user=data, schema=schema, timeout_s=timeout_s
    )


def _fenced(tag: str, lines: Iterable[Mapping[str, object]]) -> str:
    return "\n".join([f"<{tag}>", *(fence_line(line) for line in lines), f"</{tag}>"])


def _side(side: Side) -> dict[str, object]:
    said = local_time(side.said_us, side.zone_min)
    return {"statement": side.text, "quote": side.quote, "said": said.strftime("%Y-%m-%d %H:%M")}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _text(about: str) -> dict[str, Any]:
    return {"type": "string", "description": about}


def _one_of(values: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


_DATE = "YYYY-MM-DD, YYYY-MM or YYYY; empty if nothing was said"
_FACTS_SCHEMA = _object(
    facts={
        "type": "array",
        "items": _object(
            entity=_text("whom or what it is about"), predicate=_text("present tense, carries its topic"),
            object=_text("the value alone"), statement=_text("one sentence, in the language it was said in"),
            quote=_text("exact words of one line"), seq={"type": "integer", "description": "that line's seq"},
            confidence={"type": "number", "description": "0 to 1"}, valid_from=_text(_DATE), valid_until=_text(_DATE),
            change=_one_of(get_args(Change)), replaces=_text("the object taken back, or empty"),
            holds=_one_of(get_args(Holds)), kind=_one_of(get_args(FactKind)), object_type=_one_of(ENTITY_TYPES),
        ),
    }
)  # fmt: skip
_SUMMARY_SCHEMA = _object(summary=_text("2 to 6 sentences"), learnings={"type": "array", "items": {"type": "string"}})
_VERDICT = _object(pair={"type": "integer"}, verdict=_one_of(get_args(Ruling)))
_CONFLICTS_SCHEMA = _object(verdicts={"type": "array", "items": _VERDICT})
_FOLD_SCHEMA = _object(summary=_text("the new running summary"))
_STATEMENT = _object(
    text=_text("one sentence"), quote=_text("exact words of one line of the session"),
    section=_text("its heading, or empty"), replaces=_text("words of the statement it replaces, or empty"),
)  # fmt: skip
_PAGES_SCHEMA = _object(
    pages={
        "type": "array",
        "items": _object(
            action=_one_of(get_args(Action)), page=_text("id of the page to update, or empty"),
            kind=_one_of(get_args(KnowledgeKind)), title=_text("what it is about"),
            statements={"type": "array", "items": _STATEMENT}, supersedes=_text("id of a page, or empty"),
        ),
    }
)  # fmt: skip
_REVIEW_SCHEMA = _object(
    proposals={
        "type": "array",
        "items": _object(
            action=_one_of(ACTIONS), page=_text("slug of the page that is changed, or empty"),
            kind=_one_of(TARGET_KINDS), title=_text("what it is about"), section=_text("heading or anchor, or empty"),
            body=_text("the text that is added or stands in the section's place"), why=_text("one sentence"),
            confidence={"type": "number", "description": "0 to 1"}, answers=_text("id of a line of repeated, or empty"),
            quotes={"type": "array", "items": _text("exact words of one line")},
        ),
    }
)  # fmt: skip
