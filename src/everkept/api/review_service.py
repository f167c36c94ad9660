"""The use cases of reviews and proposals, as a part of `api.service.Service`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from everkept.api import review_views as r
from everkept.api import views as v


class ReviewService(Protocol):
    async def list_reviews(
        self, *, state: str | None = None, session_id: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[r.Review]:
        """Finished stretches of sessions with how their reviews stand, the last finished first."""
        ...

    async def run_reviews(self, *, since: datetime | None = None) -> r.ReviewsStarted:
        """Start the review of what waits, however fresh and short; `since`: first reopen old history that ended then
        or later, which was imported and not looked at. The reviews themselves are background work."""
        ...

    async def claim_review(self, session_id: str) -> r.Review | None:
        """Start the review of one session, also of one that went by unreviewed. None where its newest stretch is under
        review, or was reviewed. Raises NotFound."""
        ...

    async def names_in_pages(self) -> list[r.PageNames]:
        """Files and tasks that pages name, for whoever can look at the checkout."""
        ...

    async def note_looks(self, looks: Sequence[r.PageLook]) -> r.StaleFound:
        """What a checkout on its default branch does not have any more. What is found again a day later is proposed
        to go; where nothing is gone, an earlier look counts no more."""
        ...

    async def list_proposals(
        self, *, state: str | None = "open", kind: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[r.Proposal]:
        """Newest first, without their bodies; `open` are those that await a decision, None are all."""
        ...

    async def get_proposal(self, proposal_id: str) -> r.Proposal:
        """With its evidence, and what it changes or has changed. Raises NotFound."""
        ...

    async def approve_proposal(self, proposal_id: str, *, by: str = "hand", rebase: bool = False) -> r.Proposal:
        """Write its page and note who decided, in one commit; approved twice, it is approved once.

        `rebase`: somebody has looked at the page as it is now. Raises Conflict where the page does not allow it: the
        proposal then waits in the state `conflict`, with the reason.
        """
        ...

    async def reject_proposal(self, proposal_id: str, *, by: str = "hand", reason: str | None = None) -> r.Proposal:
        """It is not proposed again, however it is worded. Raises Conflict where it was decided otherwise."""
        ...

    async def roll_back_proposal(self, proposal_id: str, *, by: str = "hand", reason: str | None = None) -> r.Proposal:
        """Undo what its approval did as a new version of the page; later changes stay. Raises Conflict."""
        ...

    async def proposal_report(self, *, limit: int = 100) -> r.ProposalReport:
        """Of each approved proposal whether it helped, the newest first, and how the others stand."""
        ...

    async def pin_page(self, slug: str, *, pinned: bool = True) -> v.KnowledgePage:
        """Keep a page from proposals, or let them at it again."""
        ...
