"""Reviews and proposals, asked of a server. Deciding twice is deciding once, so decisions are sent again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from everkept.api import review_views as r
from everkept.api import views as v
from everkept.doors.python.asking import Asking, given, path_of, time_text

ALL = "all"


class RemoteReviews(Asking):
    # ---- reviews

    async def list_reviews(
        self, *, state: str | None = None, session_id: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[r.Review]:
        query = {"state": state, "session": session_id, "limit": limit, "cursor": cursor}
        return self._read(v.Page[r.Review], await self._wire.ask("GET", "/v1/reviews", query=query))

    async def run_reviews(self, *, since: datetime | None = None) -> r.ReviewsStarted:
        body = given(since=time_text(since))
        return self._read(r.ReviewsStarted, await self._wire.ask("POST", "/v1/reviews/run", body=body, safe=True))

    async def claim_review(self, session_id: str) -> r.Review | None:
        """Sent once: a second one would find the session claimed, and could not say by whom."""
        raw = await self._wire.ask("POST", "/v1/reviews/claim", body={"session": session_id})
        return self._read(r.ReviewClaim, raw).claimed

    async def names_in_pages(self) -> list[r.PageNames]:
        return self._read(r.NamesInPages, await self._wire.ask("GET", "/v1/reviews/names")).pages

    async def note_looks(self, looks: Sequence[r.PageLook]) -> r.StaleFound:
        body = {"looks": [look.model_dump(mode="json") for look in looks]}
        return self._read(r.StaleFound, await self._wire.ask("POST", "/v1/reviews/looks", body=body, safe=True))

    # ---- proposals

    async def list_proposals(
        self, *, state: str | None = "open", kind: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[r.Proposal]:
        query = {"state": ALL if state is None else state, "kind": kind, "limit": limit, "cursor": cursor}
        return self._read(v.Page[r.Proposal], await self._wire.ask("GET", "/v1/proposals", query=query))

    async def get_proposal(self, proposal_id: str) -> r.Proposal:
        return self._read(r.Proposal, await self._wire.ask("GET", path_of("proposals", proposal_id)))

    async def approve_proposal(self, proposal_id: str, *, by: str = "hand", rebase: bool = False) -> r.Proposal:
        return await self._decide(proposal_id, "approve", {"by": by, "rebase": rebase})

    async def reject_proposal(self, proposal_id: str, *, by: str = "hand", reason: str | None = None) -> r.Proposal:
        return await self._decide(proposal_id, "reject", given(by=by, reason=reason))

    async def roll_back_proposal(self, proposal_id: str, *, by: str = "hand", reason: str | None = None) -> r.Proposal:
        return await self._decide(proposal_id, "rollback", given(by=by, reason=reason))

    async def _decide(self, proposal_id: str, verb: str, body: dict[str, Any]) -> r.Proposal:
        raw = await self._wire.ask("POST", path_of("proposals", proposal_id, verb), body=body, safe=True)
        return self._read(r.Proposal, raw)

    async def proposal_report(self, *, limit: int = 100) -> r.ProposalReport:
        raw = await self._wire.ask("GET", "/v1/proposals/report", query={"limit": limit})
        return self._read(r.ProposalReport, raw)

    async def pin_page(self, slug: str, *, pinned: bool = True) -> v.KnowledgePage:
        raw = await self._wire.ask("PUT", path_of("pages", slug, "pin"), body={"pinned": pinned}, safe=True)
        return self._read(v.KnowledgePage, raw)
