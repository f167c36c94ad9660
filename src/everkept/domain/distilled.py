"""What a model distils from a session, and what must hold before it stands in a page: every statement is quoted from
the session, by somebody who may say it, and names no path, command, version, number or identifier that is not there.

What is dropped is told by its place and the reason alone, without its words: they stay in the kept reply, so that an
erase has one place less to look at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from everkept.domain.digest.clip import clip, one_line
from everkept.domain.literals import Said, missing_literal
from everkept.domain.predicates import normalise_text
from everkept.domain.replies import InvalidReply, RejectedItem, find_object, restates
from everkept.domain.reply_fields import choice_of, fields_of, text_of

Action = Literal["create", "update"]
KnowledgeKind = Literal["decision", "gotcha", "procedure", "concept", "rule", "note"]
Voice = Literal["user", "agent", "tool"]
"""Whose words an event holds: a person's, the agent's, or those of a command, a file, a page that was read."""

PAGES_MAX: Final = 5
STATEMENTS_MAX: Final = 20
CHARS_MAX: Final = {"title": 120, "section": 80, "statement": 600, "quote": 1_000}
QUOTE_CHARS_MIN: Final = 6
ANYBODY: Final[frozenset[Voice]] = frozenset(get_args(Voice))
VOICES: Final[dict[KnowledgeKind, frozenset[Voice]]] = {
    "rule": frozenset({"user"}),
    "decision": frozenset({"user", "agent"}),
}
"""Who may say it, of kinds that bind later sessions: no file or web page that an agent reads makes a rule."""
_LIST_MARK = re.compile(r"^(?:[-*•]|\d{1,2}[.)])\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One sentence of a page. `seq`: the event of its quote; 0 while that was not looked for."""

    text: str
    quote: str
    section: str = ""
    """The heading it stands under; empty: the page's own head."""
    replaces: str = ""
    """The words of an earlier statement of the page that no longer holds."""
    seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDraft:
    """A page that a model wants written. `place`: which item of the reply it is, from 1."""

    place: int
    action: Action
    page: str
    """`pag_…` of the page to be updated; empty for a new one."""
    kind: KnowledgeKind
    title: str
    statements: tuple[Statement, ...]
    supersedes: str = ""
    """`pag_…` of a page that this one takes the place of."""

    @property
    def name(self) -> str:
        return f"page {self.place} ({self.kind})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesReply:
    drafts: tuple[PageDraft, ...]
    rejected: tuple[RejectedItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One event of a session that is evidence, in its words."""

    seq: int
    voice: Voice
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPages:
    accepted: tuple[PageDraft, ...]
    rejected: tuple[RejectedItem, ...]


# ---- reading a reply


def parse_pages(text: str, *, system: str = "") -> PagesReply:
    """Raises InvalidReply for no JSON, another shape, repetition, or a reply that restates its instructions (D03, D04).

    A page or statement that cannot be read is left out with the reason; the others stay.
    """
    items = find_object(text, ("pages",))["pages"]
    if not isinstance(items, list):
        raise InvalidReply("pages has the wrong type")
    drafts: list[PageDraft] = []
    rejected: list[RejectedItem] = []
    for place, item in enumerate(items, 1):
        try:
            drafts.append(_draft(place, item, rejected))
        except InvalidReply as error:
            rejected.append(RejectedItem(f"page {place}", error.reason))
    if items and not drafts:
        raise InvalidReply(f"no page can be used: {rejected[0].reason}")
    _require_sense([s.text for d in drafts for s in d.statements], system)
    return PagesReply(drafts=tuple(drafts), rejected=tuple(rejected))


def _require_sense(texts: Sequence[str], system: str) -> None:
    if len(texts) >= 8 and len({normalise_text(t) for t in texts}) * 2 < len(texts):
        raise InvalidReply("the reply repeats itself")
    if any(restates(text, system) for text in texts):
        raise InvalidReply("the reply restates its instructions")


def _draft(place: int, item: object, rejected: list[RejectedItem]) -> PageDraft:
    fields = fields_of(item)
    statements = fields.get("statements")
    if not isinstance(statements, list):
        raise InvalidReply("statements is missing or no list")
    draft = PageDraft(
        place=place, action=choice_of(fields, "action", get_args(Action)), page=text_of(fields, "page"),
        kind=choice_of(fields, "kind", get_args(KnowledgeKind)), title=one_line(text_of(fields, "title"), 400),
        statements=(), supersedes=text_of(fields, "supersedes"),
    )  # fmt: skip
    read: list[Statement] = []
    for number, one in enumerate(statements, 1):
        try:
            read.append(_statement(one))
        except InvalidReply as error:
            rejected.append(RejectedItem(f"{draft.name}, statement {number}", error.reason))
    return replace(draft, statements=tuple(read))


def _statement(item: object) -> Statement:
    fields = fields_of(item)
    said = " ".join(text_of(fields, "text").split())
    return Statement(
        text=_LIST_MARK.sub("", said), quote=text_of(fields, "quote"),
        section=" ".join(text_of(fields, "section").split()).strip("# "), replaces=text_of(fields, "replaces"),
    )  # fmt: skip


# ---- checking it against the session


@dataclass(frozen=True, slots=True)
class _Evidence:
    """A session's words made comparable, once for all statements."""

    texts: tuple[tuple[int, Voice, str], ...]
    said: Said

    def find(self, quote: str, voices: frozenset[Voice]) -> int | None:
        """The first event of these voices that holds the quote."""
        return next((seq for seq, voice, text in self.texts if voice in voices and quote in text), None)


def check_pages(sources: Iterable[Source], drafts: Iterable[PageDraft], literals: Iterable[str] = ()) -> CheckedPages:
    """Accept the statements that the session bears out, and the pages that have one.

    `sources`: the evidence of the session. `literals`: what else occurred in it by name, such as the files that its
    calls changed. A title that names what is not there gives way to the page's first statement.
    """
    texts = tuple((s.seq, s.voice, normalise_text(s.text)) for s in sources)
    evidence = _Evidence(texts, Said([*(text for _, _, text in texts), *map(normalise_text, literals)]))
    accepted: list[PageDraft] = []
    rejected: list[RejectedItem] = []
    for draft in drafts:
        if len(accepted) == PAGES_MAX:
            rejected.append(RejectedItem(draft.name, f"more than {PAGES_MAX} pages"))
            continue
        kept = _kept(evidence, draft, rejected)
        if kept:
            accepted.append(replace(draft, title=_title(evidence, draft, kept), statements=tuple(kept)))
        else:
            rejected.append(RejectedItem(draft.name, "no statement of it holds"))
    return CheckedPages(accepted=tuple(accepted), rejected=tuple(rejected))


def _kept(evidence: _Evidence, draft: PageDraft, rejected: list[RejectedItem]) -> list[Statement]:
    kept: dict[str, Statement] = {}
    for number, statement in enumerate(draft.statements, 1):
        identity = normalise_text(statement.text)
        seq, reason = _grounds(evidence, draft.kind, statement)
        if reason is None and identity in kept:
            reason = "it repeats another statement of its page"
        if reason is None and len(kept) == STATEMENTS_MAX:
            reason = f"more than {STATEMENTS_MAX} statements"
        if reason is not None:
            rejected.append(RejectedItem(f"{draft.name}, statement {number}", reason))
            continue
        kept[identity] = replace(statement, seq=seq)
    return list(kept.values())


def _grounds(evidence: _Evidence, kind: KnowledgeKind, statement: Statement) -> tuple[int, str | None]:
    """(event that bears it out, None), or (0, why it does not stand)."""
    reason = _malformed(statement)
    if reason is not None:
        return 0, reason
    quote = normalise_text(statement.quote).strip(" \"'")
    if len(quote) < QUOTE_CHARS_MIN or not re.search(r"\w", quote):
        return 0, f"its quote is shorter than {QUOTE_CHARS_MIN} characters"
    seq = evidence.find(quote, VOICES.get(kind, ANYBODY))
    if seq is None:
        elsewhere = evidence.find(quote, ANYBODY) is not None
        return (
            0,
            f"its quote is not the words of who makes a {kind}" if elsewhere else "its quote is not in the session",
        )
    sort = missing_literal(f"{statement.section}\n{statement.text}", evidence.said)
    return (0, f"{sort} in it does not occur in the session") if sort else (seq, None)


def _malformed(statement: Statement) -> str | None:
    for name, value in (("statement", statement.text), ("quote", statement.quote), ("section", statement.section)):
        if name != "section" and not value:
            return f"its {name} is empty"
        if len(value) > CHARS_MAX[name]:
            return f"its {name} is longer than {CHARS_MAX[name]} characters"
    return None


def _title(evidence: _Evidence, draft: PageDraft, kept: Sequence[Statement]) -> str:
    borne_out = bool(draft.title) and missing_literal(draft.title, evidence.said) is None
    return clip(draft.title if borne_out else kept[0].text, CHARS_MAX["title"])
