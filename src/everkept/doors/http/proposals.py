"""Proposals: improvements of pages that await a decision, or what became of them."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from everkept.api import review_views as r
from everkept.api import views as v
from everkept.domain.review.values import TargetKind
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import InProject, Queried
from everkept.doors.http.words import Asked, Limit, Listed, Words

router = APIRouter(tags=["agents"], responses=RESPONSES)
State = Literal["open", "all", "staged", "approved", "rejected", "superseded", "expired", "conflict", "rolled_back"]
By = Annotated[str, Field(min_length=1, max_length=255, description="Who decides.")]
Reason = Annotated[str | None, Field(max_length=1000)]


class ProposalsAsked(Listed):
    state: State = Field(default="open", description="`open`: those that await a decision.")
    kind: TargetKind | None = Field(default=None, description="Only for pages of this kind.")


class ReportAsked(Asked):
    limit: Limit = 100


class ApproveBody(Words):
    by: By = "hand"
    rebase: bool = Field(
        default=False, description="Somebody has looked at the page as it is now: put the proposal on top of that."
    )


class DecideBody(Words):
    by: By = "hand"
    reason: Reason = None


@router.get("/v1/proposals", operation_id="list_proposals")
async def list_proposals(service: Queried, query: Annotated[ProposalsAsked, Query()]) -> v.Page[r.Proposal]:
    """Newest first, without their bodies and evidence."""
    state = None if query.state == "all" else query.state
    return await service.list_proposals(state=state, kind=query.kind, limit=query.limit, cursor=query.cursor)


@router.get("/v1/proposals/report", operation_id="proposal_report")
async def proposal_report(service: Queried, query: Annotated[ReportAsked, Query()]) -> r.ProposalReport:
    """Of each approved proposal whether it helped, with its uncertainty; how many others stand how."""
    return await service.proposal_report(limit=query.limit)


@router.get("/v1/proposals/{proposal:id}", operation_id="get_proposal")
async def get_proposal(proposal: str, service: InProject) -> r.Proposal:
    """With its evidence, and what it changes, or has changed, as a unified diff."""
    return await service.get_proposal(proposal)


@router.post("/v1/proposals/{proposal:id}/approve", operation_id="approve_proposal")
async def approve_proposal(proposal: str, body: ApproveBody, service: InProject) -> r.Proposal:
    """Write its page. 409 where the page moved on, is pinned or gone: the proposal waits as a `conflict` then, and
    `rebase` puts it on top of what is there now. Approving twice approves once."""
    return await service.approve_proposal(proposal, by=body.by, rebase=body.rebase)


@router.post("/v1/proposals/{proposal:id}/reject", operation_id="reject_proposal")
async def reject_proposal(proposal: str, body: DecideBody, service: InProject) -> r.Proposal:
    """The same is not proposed again, however it is worded."""
    return await service.reject_proposal(proposal, by=body.by, reason=body.reason)


@router.post("/v1/proposals/{proposal:id}/rollback", operation_id="roll_back_proposal")
async def roll_back_proposal(proposal: str, body: DecideBody, service: InProject) -> r.Proposal:
    """Undo what its approval did, as a new version of the page; what was written elsewhere since stays."""
    return await service.roll_back_proposal(proposal, by=body.by, reason=body.reason)
