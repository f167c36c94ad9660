"""Reviews and proposals as a project of one proposal has them, for tests of the doors alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from everkept.api import review_views as r
from everkept.api import views as v
from everkept.domain.ids import parse_row_id
from everkept.errors import Conflict, NotFound

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
REVIEW = r.Review(
    generation=1, session_id="ses_1", state="reviewed", reason=None, ended_at=AT, finished_at=AT, passed_at=AT,
    id="rev_1", asked_by="scheduler", staged=1, refused=[r.RefusedDraft(what="create x", reason="it says nothing")],
    note=None,
)  # fmt: skip
PROPOSAL = r.Proposal(
    id="prp_1", action="create", kind="rule", slug="use-uv", title="Use uv", section=None, body="Use uv, not pip.\n",
    why="corrected in 3 sessions", confidence=0.9, sessions=1, reviewer="rules", state="staged", reason=None,
    session_id="ses_1",
    base=None, decided_by=None, decided_at=None, created_at=AT, expires_at=AT, version=None, undone_by=None,
    evidence=[r.Evidence(session_id="ses_1", event_id="evt_1_2", quote="No, use uv.")],
    difference="--- /dev/null\n+++ use-uv (proposed)\n@@ -0,0 +1 @@\n+Use uv, not pip.\n",
)  # fmt: skip
OUTCOME = r.Outcome(
    proposal_id="prp_1", slug="use-uv", title="Use uv", approved_at=AT, times_before=9, with_it_before=6,
    sessions_before=20, times_since=1, with_it_since=1, sessions_since=20, shown_in=12, ratio=0.2, ratio_low=0.04,
    ratio_high=0.7, verdict="helps", words="it helps: seen in 6 of 20 sessions before, in 1 of 20 since",
)  # fmt: skip


class FakeReviews:
    def __init__(self) -> None:
        super().__init__()
        self.proposal = PROPOSAL
        self.obstacle: str | None = None

    async def list_reviews(
        self, *, state: str | None = None, session_id: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[r.Review]:
        if session_id is not None:
            parse_row_id("ses", session_id)
        return v.Page(items=[REVIEW] if state in (None, REVIEW.state) else [])

    async def run_reviews(self, *, since: datetime | None = None) -> r.ReviewsStarted:
        return r.ReviewsStarted(opened=2, reopened=0 if since is None else 5, waiting=3, reviewing=2)

    async def claim_review(self, session_id: str) -> r.Review | None:
        return REVIEW if parse_row_id("ses", session_id) == 1 else None

    async def names_in_pages(self) -> list[r.PageNames]:
        return [r.PageNames(slug="use-uv", version=1, names=[r.Name(kind="file", text="uv.lock")])]

    async def note_looks(self, looks: Sequence[r.PageLook]) -> r.StaleFound:
        return r.StaleFound(waiting=sum(bool(look.gone) for look in looks), staged=0, refused=[])

    async def list_proposals(
        self, *, state: str | None = "open", kind: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[r.Proposal]:
        hidden = {"body": None, "evidence": None, "difference": None}
        awaits = state == "open" and self.proposal.state in ("staged", "conflict")
        shown = (awaits or state in (None, self.proposal.state)) and kind in (None, "rule")
        return v.Page(items=[self.proposal.model_copy(update=hidden)] if shown else [])

    async def get_proposal(self, proposal_id: str) -> r.Proposal:
        if parse_row_id("prp", proposal_id) != 1:
            raise NotFound(f"there is no proposal {proposal_id} in this project", id=proposal_id)
        return self.proposal

    async def approve_proposal(self, proposal_id: str, *, by: str = "hand", rebase: bool = False) -> r.Proposal:
        await self.get_proposal(proposal_id)
        if self.obstacle is not None and not rebase:
            raise Conflict(f"{proposal_id} was not approved: {self.obstacle}", id=proposal_id)
        return self._become("approved", by, None)

    async def reject_proposal(self, proposal_id: str, *, by: str = "hand", reason: str | None = None) -> r.Proposal:
        await self.get_proposal(proposal_id)
        return self._become("rejected", by, reason)

    async def roll_back_proposal(self, proposal_id: str, *, by: str = "hand", reason: str | None = None) -> r.Proposal:
        await self.get_proposal(proposal_id)
        return self._become("rolled_back", by, reason)

    def _become(self, state: str, by: str, reason: str | None) -> r.Proposal:
        self.proposal = PROPOSAL.model_copy(
            update={"state": state, "decided_by": by, "decided_at": AT, "reason": reason, "version": 1}
        )
        return self.proposal

    async def proposal_report(self, *, limit: int = 100) -> r.ProposalReport:
        return r.ProposalReport(outcomes=[OUTCOME][:limit], open=1, decided={"approved": 1})

    async def pin_page(self, slug: str, *, pinned: bool = True) -> v.KnowledgePage:
        return v.KnowledgePage(
            id="pag_1", slug=slug, kind="rule", title=slug, version=1, body=None, author="hand", reason=None,
            source=None, session_id=None, superseded=False, pinned=pinned, created_at=AT, updated_at=AT,
        )  # fmt: skip
