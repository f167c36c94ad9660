"""The words of reviews: what was observed in a session, what is proposed from it, and how a proposal stands."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, Literal, get_args

ObservationKind = Literal["correction", "error", "recovery", "procedure"]
"""The user put the agent right; an error was met; a failed command and what then worked; steps gone through."""

TargetKind = Literal["rule", "procedure", "skill", "gotcha"]
"""Kinds of pages that a proposal makes or patches."""
TARGET_KINDS: Final[tuple[TargetKind, ...]] = get_args(TargetKind)

Action = Literal["create", "append", "add_section", "replace_section", "retire"]
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)

ProposalState = Literal["staged", "approved", "rejected", "superseded", "expired", "conflict", "rolled_back"]
"""`conflict`: the page moved on under it; a person looks at it again. Only `staged` and `conflict` await anybody."""
PROPOSAL_STATES: Final[tuple[ProposalState, ...]] = get_args(ProposalState)

GenerationState = Literal["waiting", "reviewing", "reviewed", "skipped", "dead", "imported", "superseded", "erased"]
GENERATION_STATES: Final[tuple[GenerationState, ...]] = get_args(GenerationState)
"""Of one digested stretch of a session. All but the first two are passed: the watermark goes on over them."""
PASSED: Final[frozenset[GenerationState]] = frozenset(
    ("reviewed", "skipped", "dead", "imported", "superseded", "erased")
)

ApprovalMode = Literal["auto", "ask", "off"]

BODY_CHARS_MAX: Final = 4_000
"""Of what one proposal adds."""
READ_CHARS: Final = 16_000
"""Of a page: what is longer is read as far as this."""
PAGE_CHARS_MAX: Final = READ_CHARS + BODY_CHARS_MAX
"""Of a page that a proposal changes: what nobody has read whole is not changed, and an approval holds the writer's lock
while the page is cut and indexed (20 ms for so many)."""
EVIDENCE_MAX: Final = 12
QUOTE_CHARS_MAX: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Words of one event that bear something out, verbatim but for white space."""

    stream: int
    seq: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One thing that a session shows and that may come again in others."""

    kind: ObservationKind
    shape: str
    """Normalised: paths, numbers, ids and times are placeholders. Equal shapes of one kind are the same thing."""
    quote: Quote
    at_us: int | None = None
    detail: str = ""
    """Of a recovery: what then worked; of a procedure: its steps, one a line; of a correction: what was put right."""

    @property
    def signature(self) -> str:
        """16 bytes in hex: what is counted across sessions."""
        return hashlib.blake2b(f"{self.kind}\0{self.shape}".encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a reviewer proposes, before it is checked against the store."""

    action: Action
    kind: TargetKind
    slug: str
    """Of the page that it makes or changes."""
    title: str
    body: str
    """What is added, or stands in the section's place; empty for `retire`."""
    section: str = ""
    """Anchor of the section that is replaced, or heading of the one that is added."""
    section_hash: str = ""
    """`text_hash` of the section that is replaced, as the reviewer saw it."""
    base: int | None = None
    """Version of the page as the reviewer saw it; None for `create`."""
    why: str
    confidence: float
    """0–1."""
    signature: str
    """Of the observation that it answers: what its outcome is measured by."""
    evidence: tuple[Quote, ...]
    alike: tuple[str, ...] = ()
    """Signatures that mean the same in other words: a proposal that answers one of them answers this."""

    @property
    def fingerprint(self) -> str:
        """What makes it the same proposal again, however it is worded (16 bytes in hex)."""
        return hashlib.blake2b(f"{self.slug}\0{self.section}\0{self.signature}".encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A draft that was not staged, and why; its siblings stand."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How often one signature was observed, over all sessions of the project."""

    kind: ObservationKind
    signature: str
    shape: str
    sessions: int
    times: int
    quotes: tuple[Quote, ...]
    """Of different sessions where there are several, the newest first, at most `EVIDENCE_MAX`."""
    detail: str = ""
    """Of the newest observation that has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPage:
    """A page as a reviewer sees it."""

    id: int
    kind: str
    slug: str
    title: str
    version: int
    body: str
    pinned: bool
    author: str
    updated_at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """What a reviewer made of one session."""

    observations: tuple[Observation, ...]
    drafts: tuple[Draft, ...]
    refused: tuple[Refusal, ...] = ()
    note: str = ""
    """Why nothing was proposed, where nothing was."""
