"""Reviews: looks at finished sessions, made by a scheduler or asked for by hand."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from everkept.api import review_views as r
from everkept.api import views as v
from everkept.domain.review.values import GenerationState
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import InProject, Queried
from everkept.doors.http.words import Listed, Moment, Words

router = APIRouter(tags=["agents"], responses=RESPONSES)


class ReviewsAsked(Listed):
    state: GenerationState | None = None
    session: str | None = Field(default=None, max_length=255, description="Only of this session (`ses_…`).")


class RunBody(Words):
    since: Moment = Field(
        default=None, description="Also old history that was imported and never looked at, if it ended then or later."
    )


class ClaimBody(Words):
    session: str = Field(min_length=1, max_length=255, examples=["ses_12"])


@router.get("/v1/reviews", operation_id="list_reviews")
async def list_reviews(service: Queried, query: Annotated[ReviewsAsked, Query()]) -> v.Page[r.Review]:
    """Finished stretches of sessions with how their reviews stand, the last finished first."""
    return await service.list_reviews(
        state=query.state, session_id=query.session, limit=query.limit, cursor=query.cursor
    )


@router.post("/v1/reviews/run", operation_id="run_reviews")
async def run_reviews(body: RunBody, service: InProject) -> r.ReviewsStarted:
    """Start the review of what waits, however fresh and short. The reviews themselves are background work."""
    return await service.run_reviews(since=body.since)


@router.post("/v1/reviews/claim", operation_id="claim_review")
async def claim_review(body: ClaimBody, service: InProject) -> r.ReviewClaim:
    """Start the review of one session, also of one that went by unreviewed. `claimed` is null where its newest stretch
    is under review already, or was reviewed."""
    return r.ReviewClaim(claimed=await service.claim_review(body.session))
