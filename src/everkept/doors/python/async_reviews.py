"""`memory.reviews` and `memory.proposals`. Their synchronous twins are generated from this file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from everkept.api import review_views as r
from everkept.api.review_service import ReviewService
from everkept.doors.python.items import AsyncItems

PAGE = 100
"""Items fetched at once by a list that is iterated over."""


class AsyncReviews:
    """Looks at finished sessions: by a scheduler, or by hand through the same claim."""

    def __init__(self, service: ReviewService) -> None:
        self._service = service

    def list(self, *, state: str | None = None, session_id: str | None = None) -> AsyncItems[r.Review]:
        """Finished stretches of sessions with how their reviews stand, the last finished first."""
        return AsyncItems(
            lambda cursor: self._service.list_reviews(state=state, session_id=session_id, limit=PAGE, cursor=cursor)
        )

    async def run(self, *, since: datetime | None = None) -> r.ReviewsStarted:
        """Start the review of what waits; `since`: also of imported history that ended then or later."""
        return await self._service.run_reviews(since=since)

    async def claim(self, session_id: str) -> r.Review | None:
        """Start the review of one session; None where somebody has started it, or it was made. Raises NotFound."""
        return await self._service.claim_review(session_id)

    async def names_in_pages(self) -> Sequence[r.PageNames]:
        """Files and tasks that pages name, for whoever can look at the checkout."""
        return await self._service.names_in_pages()

    async def note_looks(self, looks: Sequence[r.PageLook]) -> r.StaleFound:
        """What a checkout on its default branch had once and does not have any more; found again a day later, it is
        proposed to go."""
        return await self._service.note_looks(looks)


class AsyncProposals:
    """Improvements of pages that reviews propose: decided, undone, measured."""

    def __init__(self, service: ReviewService) -> None:
        self._service = service

    def list(self, *, state: str | None = "open", kind: str | None = None) -> AsyncItems[r.Proposal]:
        """Newest first, without their bodies; `open` are those that await a decision, None are all."""
        return AsyncItems(
            lambda cursor: self._service.list_proposals(state=state, kind=kind, limit=PAGE, cursor=cursor)
        )

    async def get(self, proposal_id: str) -> r.Proposal:
        """One, with its evidence, and what it changes or has changed. Raises NotFound."""
        return await self._service.get_proposal(proposal_id)

    async def approve(self, proposal_id: str, *, by: str = "hand", rebase: bool = False) -> r.Proposal:
        """Write its page. Raises Conflict where the page moved on (`rebase`: somebody looked), is pinned or gone."""
        return await self._service.approve_proposal(proposal_id, by=by, rebase=rebase)

    async def reject(self, proposal_id: str, *, by: str = "hand", reason: str | None = None) -> r.Proposal:
        """The same is not proposed again, however it is worded. Raises Conflict."""
        return await self._service.reject_proposal(proposal_id, by=by, reason=reason)

    async def roll_back(self, proposal_id: str, *, by: str = "hand", reason: str | None = None) -> r.Proposal:
        """Undo what its approval did as a new version of the page; later changes stay. Raises Conflict."""
        return await self._service.roll_back_proposal(proposal_id, by=by, reason=reason)

    async def report(self, *, limit: int = 100) -> r.ProposalReport:
        """Of each approved proposal whether it helped, the newest first."""
        return await self._service.proposal_report(limit=limit)
