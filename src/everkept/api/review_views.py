"""What every door answers with about reviews, proposals and what came of them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from everkept.api.views import View
from everkept.domain.review.outcome import Verdict
from everkept.domain.review.values import Action, GenerationState, ProposalState, TargetKind


class Evidence(View):
    """Words of a session that bear a proposal out, verbatim but for white space."""

    session_id: str
    event_id: str
    quote: str


class Proposal(View):
    """An improvement of a page, and how it stands. In lists without its body, evidence and difference."""

    id: str
    action: Action
    kind: TargetKind
    slug: str
    """Of the page that it makes or changes."""
    title: str
    section: str | None
    body: str | None
    why: str
    confidence: float
    """0–1, as its reviewer saw it."""
    sessions: int
    """Whose words bear it out, of those that are quoted: it grows while the same is seen again."""
    reviewer: str
    """`rules`, or the model's name."""
    state: ProposalState
    """Only `staged` and `conflict` await a decision."""
    reason: str | None
    """Why it is in this state."""
    session_id: str | None
    """The session whose review made it."""
    base: int | None
    """The version of the page that it was written on; none: it makes the page."""
    decided_by: str | None
    decided_at: datetime | None
    created_at: datetime
    expires_at: datetime
    version: int | None
    """Of the page, that its approval made."""
    undone_by: int | None
    """The version that rolled it back."""
    evidence: list[Evidence] | None = None
    difference: str | None = None
    """What it changes, or has changed, as a unified diff; empty where it cannot be applied."""
    obstacle: str | None = None
    """Why it could not be approved as things stand."""


class RefusedDraft(View):
    what: str
    reason: str


class Review(View):
    """A finished stretch of a session, and how its review stands."""

    generation: int
    """The project's number of the stretch."""
    session_id: str
    state: GenerationState
    """Only `waiting` and `reviewing` are not done with; `skipped`, `dead` and `imported` can be asked for by hand."""
    reason: str | None
    ended_at: datetime | None
    finished_at: datetime
    passed_at: datetime | None
    id: str | None
    """Of its review; none where there was none."""
    asked_by: Literal["scheduler", "hand"] | None
    staged: int
    """Proposals that it made."""
    refused: list[RefusedDraft]
    """What it would have proposed, and why it did not."""
    note: str | None
    """Why nothing was proposed, where nothing was."""


class ReviewClaim(View):
    claimed: Review | None
    """The review that was started; none where somebody had started it before."""


class ReviewsStarted(View):
    """What a run by hand found to do; reviews themselves are background work."""

    opened: int
    """Reviews that it started now."""
    reopened: int
    """Sessions of old history that wait for their review now."""
    waiting: int
    """Finished sessions that nobody has looked at yet."""
    reviewing: int


class Name(View):
    """What a page names of its checkout."""

    kind: Literal["file", "task"]
    text: str
    """A path, relative to the checkout's folder; of a task how it is run: `make lint`, `npm run build`."""


class PageNames(View):
    """A page that reviews may change, with the files and tasks that it names."""

    slug: str
    version: int
    names: list[Name]


class NamesInPages(View):
    pages: list[PageNames]


class PageLook(View):
    """A page as a checkout was looked at for what it names."""

    slug: str
    version: int
    gone: list[Name]
    """Those of its names that the checkout had once, and has no more on its default branch."""


class StaleFound(View):
    """What came of a look at a checkout."""

    waiting: int
    """Pages that name what is gone; the same is looked for again, a day or more after the first time."""
    staged: int
    """Proposals that it made."""
    refused: list[RefusedDraft]
    """What it would have proposed, and why it did not."""


class Outcome(View):
    """Whether an approved proposal helped: how often what it answers came before and since."""

    proposal_id: str
    slug: str
    title: str
    approved_at: datetime
    times_before: int
    with_it_before: int
    """Sessions in which it came."""
    sessions_before: int
    """Sessions that were looked at."""
    times_since: int
    with_it_since: int
    sessions_since: int
    shown_in: int
    """Sessions since that were shown the page."""
    ratio: float | None
    """Rate since by rate before, as best estimated; none where nothing is known of before."""
    ratio_low: float | None
    ratio_high: float | None
    """Where it lies with a probability of 90 %."""
    verdict: Verdict
    words: str
    """The verdict as a sentence."""


class ProposalReport(View):
    outcomes: list[Outcome]
    open: int
    """Proposals that await a decision."""
    decided: dict[str, int]
    """Decided ones by state."""
