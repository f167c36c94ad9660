"""Reviews and proposals, waited for. Made by scripts/generate_sync.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from everkept.api import review_views as r
from everkept.doors.python.async_reviews import AsyncProposals, AsyncReviews
from everkept.doors.python.facade import Facade
from everkept.doors.python.items import Items


class Reviews(Facade[AsyncReviews]):
    """Looks at finished sessions: by a scheduler, or by hand through the same claim."""

    def list(self, *, state: str | None = None, session_id: str | None = None) -> Items[r.Review]:
        """Finished stretches of sessions with how their reviews stand, the last finished first."""
        return Items(self._loop, self._inner.list(state=state, session_id=session_id))

    def run(self, *, since: datetime | None = None) -> r.ReviewsStarted:
        """Start the review of what waits; `since`: also of imported history that ended then or later."""
        return self._loop.wait(self._inner.run(since=since))

    def claim(self, session_id: str) -> r.Review | None:
        """Start the review of one session; None where somebody has started it, or it was made. Raises NotFound."""
        return self._loop.wait(self._inner.claim(session_id))

    def names_in_pages(self) -> Sequence[r.PageNames]:
        """Files and tasks that pages name, for whoever can look at the checkout."""
        return self._loop.wait(self._inner.names_in_pages())

    def note_looks(self, looks: Sequence[r.PageLook]) -> r.StaleFound:
        """What a checkout on its default branch had once and does not have any more; found again a day later, it is
        proposed to go."""
        return self._loop.wait(self._inner.note_looks(looks))


class Proposals(Facade[AsyncProposals]):
    """Improvements of pages that reviews propose: decided, undone, measured."""

    def list(self, *, state: str | None = "open", kind: str | None = None) -> Items[r.Proposal]:
        """Newest first, without their bodies; `open` are those that await a decision, None are all."""
        return Items(self._loop, self._inner.list(state=state, kind=kind))

    def get(self, proposal_id: str) -> r.Proposal:
        """One, with its evidence, and what it changes or has changed. Raises NotFound."""
        return self._loop.wait(self._inner.get(proposal_id))

    def approve(self, proposal_id: str, *, by: str = "hand", rebase: bool = False) -> r.Proposal:
        """Write its page. Raises Conflict where the page moved on (`rebase`: somebody looked), is pinned or gone."""
        return self._loop.wait(self._inner.approve(proposal_id, by=by, rebase=rebase))

    def reject(self, proposal_id: str, *, by: str = "hand", reason: str | None = None) -> r.Proposal:
        """The same is not proposed again, however it is worded. Raises Conflict."""
        return self._loop.wait(self._inner.reject(proposal_id, by=by, reason=reason))

    def roll_back(self, proposal_id: str, *, by: str = "hand", reason: str | None = None) -> r.Proposal:
        """Undo what its approval did as a new version of the page; later changes stay. Raises Conflict."""
        return self._loop.wait(self._inner.roll_back(proposal_id, by=by, reason=reason))

    def report(self, *, limit: int = 100) -> r.ProposalReport:
        """Of each approved proposal whether it helped, the newest first."""
        return self._loop.wait(self._inner.report(limit=limit))
