"""A model's proposals, read strictly and checked in code: none is staged that the session does not bear out.

Each stands by itself: a bad one takes no sibling with it (I07). What is refused is told by its place and the reason
alone, without its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from everkept.domain.digest.clip import inert_lines, one_line
from everkept.domain.distilled import ANYBODY, VOICES, Voice
from everkept.domain.literals import Said, missing_literal
from everkept.domain.pages import Section, sections_of, slug_of
from everkept.domain.predicates import normalise_text
from everkept.domain.replies import InvalidReply, find_object, restates
from everkept.domain.reply_fields import choice_of, fields_of, number_of, text_of, texts_of
from everkept.domain.review.failures import error_of
from everkept.domain.review.known import Known
from everkept.domain.review.quotes import short
from everkept.domain.review.shown import Shown
from everkept.domain.review.signatures import text_shape
from everkept.domain.review.values import (
    ACTIONS,
    BODY_CHARS_MAX,
    EVIDENCE_MAX,
    TARGET_KINDS,
    Action,
    Draft,
    KnownPage,
    Observation,
    Quote,
    Refusal,
    Reviewed,
    Seen,
    TargetKind,
)
from everkept.domain.review.wish import wish_of

PROPOSALS_MAX: Final = 3
"""Of one session."""
READ_MAX: Final = 20
CHARS_MAX: Final = {"title": 120, "section": 80, "body": BODY_CHARS_MAX, "why": 600}
QUOTE_CHARS_MIN: Final = 6
CONFIDENCE_MAX: Final = 0.95
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One item of a reply. `place`: which it is, from 1."""

    place: int
    action: Action
    page: str
    kind: TargetKind
    title: str
    section: str
    body: str
    why: str
    confidence: float
    answers: str
    """Id of what it answers of what was seen in several sessions; or empty."""
    quotes: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"proposal {self.place} ({self.action})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalsReply:
    proposals: tuple[Proposal, ...]
    refused: tuple[Refusal, ...]


# ---- reading


def parse_proposals(text: str, *, system: str = "") -> ProposalsReply:
    """Raises InvalidReply for no JSON, another shape, or where not one item can be read or is more than its
    instructions said again (D03, D04)."""
    items = find_object(text, ("proposals",))["proposals"]
    if not isinstance(items, list):
        raise InvalidReply("proposals has the wrong type")
    read: list[Proposal] = []
    refused: list[Refusal] = []
    for place, item in enumerate(items, 1):
        try:
            read.append(_proposal(place, item, system))
        except InvalidReply as error:
            refused.append(Refusal(what=f"proposal {place}", reason=error.reason))
    if items and not read:
        raise InvalidReply(f"no proposal can be used: {refused[0].reason}")
    return ProposalsReply(proposals=tuple(read), refused=tuple(refused))


def _proposal(place: int, item: object, system: str) -> Proposal:
    if place > READ_MAX:
        raise InvalidReply(f"more than {READ_MAX} proposals")
    fields = fields_of(item)
    found = Proposal(
        place=place, action=choice_of(fields, "action", ACTIONS), page=text_of(fields, "page"),
        kind=choice_of(fields, "kind", TARGET_KINDS), title=one_line(text_of(fields, "title"), 400),
        section=" ".join(text_of(fields, "section").split()).strip("# "), body=text_of(fields, "body"),
        why=" ".join(text_of(fields, "why").split()), confidence=number_of(fields, "confidence"),
        answers=text_of(fields, "answers"), quotes=texts_of(fields, "quotes"),
    )  # fmt: skip
    if restates(found.body, system):
        raise InvalidReply("it restates its instructions")
    return found


# ---- checking


def check_proposals(
    reply: ProposalsReply, shown: Shown, *, own: Sequence[Observation], pages: Sequence[KnownPage],
    rejected: frozenset[str], already: Sequence[Draft] = (),
) -> Reviewed:  # fmt: skip
    """`pages`: all of the project; `rejected`: fingerprints that a person turned down; `already`: what is proposed
    after this session by rule, which comes first."""
    check = _Check(shown, Known(pages))
    drafts = list(already)
    refused = list(reply.refused)
    for proposal in reply.proposals:
        try:
            draft = check.draft(proposal)
            _require_room(draft, drafts, len(drafts) - len(already), rejected)
        except _Refused as refusal:
            refused.append(Refusal(what=proposal.name, reason=str(refusal)))
        else:
            drafts.append(draft)
    note = "" if drafts else "nothing was proposed that the session bears out" if refused else "nothing was proposed"
    return Reviewed(observations=tuple(own), drafts=tuple(drafts), refused=tuple(refused), note=note)


class _Refused(Exception):
    """Why a proposal is not drafted."""


def _require_room(draft: Draft, drafts: Sequence[Draft], count: int, rejected: frozenset[str]) -> None:
    if draft.fingerprint in rejected:
        raise _Refused("the same was rejected before")
    if any(draft.slug == other.slug for other in drafts):
        raise _Refused("another proposal changes this page")
    if any(draft.signature == other.signature for other in drafts):
        raise _Refused("another proposal answers the same")
    if count >= PROPOSALS_MAX:
        raise _Refused(f"more than {PROPOSALS_MAX} proposals")


class _Check:
    """What proposals are held against: what the model was shown, and the whole store."""

    def __init__(self, shown: Shown, known: Known) -> None:
        self._shown = shown
        self._known = known
        self._pages = {page.slug: page for page in shown.pages}
        self._spoken = list(_spoken(shown))
        counted = [f"{seen.shape}\n{seen.detail}" for seen in shown.repeated.values()]
        texts = [*(text for _, _, text in self._spoken), *shown.names, *counted]
        self._texts = [normalise_text(text) for text in texts]

    def draft(self, proposal: Proposal) -> Draft:
        """Raises _Refused."""
        _require_sizes(proposal)
        page = self._target(proposal)
        section = _section_of(proposal, page)
        evidence = tuple(self._evidence(proposal))
        self._require_literals(proposal, page)
        self._require_news(proposal, page)
        draft = Draft(
            action=proposal.action, kind=proposal.kind, slug=slug_of(proposal.title), title=proposal.title,
            body="\n".join(inert_lines(proposal.body)), why=proposal.why,
            section=proposal.section if proposal.action == "add_section" else "",
            confidence=min(proposal.confidence, CONFIDENCE_MAX), evidence=evidence,
            signature=self._signature(proposal, evidence[0]),
        )  # fmt: skip
        if page is not None:
            kind = next(kind for kind in TARGET_KINDS if kind == page.kind)
            draft = replace(draft, kind=kind, slug=page.slug, title=page.title, base=page.version)
        if section is not None:
            draft = replace(draft, section=section.anchor, section_hash=section.text_hash)
        return draft

    def _target(self, proposal: Proposal) -> KnownPage | None:
        """None for a new page."""
        if proposal.action == "create":
            if not proposal.title:
                raise _Refused("it has no title")
            if self._known.find(slug_of(proposal.title)) is not None:
                raise _Refused("there is a page of this name, which was to be changed")
            return None
        page = self._pages.get(proposal.page)
        if page is None:
            raise _Refused("it changes a page that was not shown")
        if page.pinned:
            raise _Refused("the page is pinned")
        return page

    def _evidence(self, proposal: Proposal) -> Iterator[Quote]:
        """Each quote in the words of its event; one that nobody said refuses the proposal, as does none."""
        if not proposal.quotes:
            raise _Refused("it has no quote")
        voices: set[Voice] = set()
        for said in proposal.quotes[:EVIDENCE_MAX]:
            quote, voice = self._find(said, VOICES["rule"] if proposal.kind == "rule" else ANYBODY)
            voices.add(voice)
            yield quote
        if proposal.kind == "rule" and not voices & VOICES["rule"]:
            raise _Refused("a rule rests on the user's own words")

    def _find(self, said: str, first: frozenset[Voice]) -> tuple[Quote, Voice]:
        """The event that holds the words; one of these voices before others."""
        words = _WORD.findall(said)
        if len(said.strip()) < QUOTE_CHARS_MIN or not words:
            raise _Refused(f"a quote of it is shorter than {QUOTE_CHARS_MIN} characters")
        pattern = re.compile(r"\W+".join(re.escape(word) for word in words[:60]), re.IGNORECASE)
        for quote, voice, text in sorted(self._spoken, key=lambda spoken: spoken[1] not in first):
            if found := pattern.search(text):
                return replace(quote, text=short(found[0])), voice
        raise _Refused("a quote of it is not in the session")

    def _require_literals(self, proposal: Proposal, page: KnownPage | None) -> None:
        own = [] if page is None else [normalise_text(f"{page.title}\n{page.body}")]
        said = Said([*self._texts, *own])
        sort = missing_literal(f"{proposal.title}\n{proposal.section}\n{proposal.body}", said)
        if sort is not None:
            raise _Refused(f"{sort} in it does not occur in the session")

    def _require_news(self, proposal: Proposal, page: KnownPage | None) -> None:
        if proposal.action not in ("create", "append", "add_section"):
            return
        if proposal.kind == "rule" and (wish := wish_of(proposal.body)).tells and self._known.says(wish) is not None:
            raise _Refused("a page says it already")
        if self._known.saying(f"{proposal.title if page is None else ''}\n{proposal.body}") is not None:
            raise _Refused("a page says it already")

    def _signature(self, proposal: Proposal, quote: Quote) -> str:
        """Of what it answers; where that was not counted, of its first quote, so that it is counted from now on.

        Of a way out it is the error's: whether that is met less often is what matters.
        """
        answered: Seen | None = self._shown.repeated.get(proposal.answers)
        if answered is not None and answered.kind == "recovery":
            return Observation(kind="error", shape=error_of(answered.shape), quote=quote).signature
        if answered is not None:
            return answered.signature
        wish = wish_of(quote.text)
        if proposal.kind == "rule" and wish.tells:
            return Observation(kind="correction", shape=wish.shape, quote=quote).signature
        return Observation(kind="error", shape=text_shape(quote.text), quote=quote).signature


def _spoken(shown: Shown) -> Iterator[tuple[Quote, Voice, str]]:
    """(where it stands, whose words, the words on one line), of the session and of what was seen in others."""
    for source in shown.sources:
        yield Quote(stream=shown.stream, seq=source.seq, text=""), source.voice, " ".join(source.text.split())
    for seen in shown.repeated.values():
        for quote in seen.quotes:
            yield quote, "user" if seen.kind == "correction" else "tool", quote.text


def _require_sizes(proposal: Proposal) -> None:
    sizes: Mapping[str, str] = {
        "title": proposal.title, "section": proposal.section, "body": proposal.body, "why": proposal.why,
    }  # fmt: skip
    for name, text in sizes.items():
        if len(text) > CHARS_MAX[name]:
            raise _Refused(f"its {name} is longer than {CHARS_MAX[name]} characters")
    if not proposal.body and proposal.action != "retire":
        raise _Refused("it says nothing")
    if not 0 <= proposal.confidence <= 1:
        raise _Refused("its confidence is not between 0 and 1")
    if not proposal.why:
        raise _Refused("it does not say why")


def _section_of(proposal: Proposal, page: KnownPage | None) -> Section | None:
    """The section that is replaced; None where none is."""
    if page is None or proposal.action not in ("add_section", "replace_section"):
        return None
    anchor = slug_of(proposal.section) if proposal.section else ""
    found = next((one for one in sections_of(page.title, page.body) if one.anchor == anchor), None)
    if proposal.action == "add_section" and (not anchor or found is not None):
        raise _Refused("the page has this section already" if found is not None else "it names no section")
    if proposal.action == "replace_section" and found is None:
        raise _Refused("the page has no such section")
    return found
