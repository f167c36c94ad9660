"""Reviews: looks at finished sessions, made by a scheduler or asked for by hand."""

from __future__ import annotations

from typing import Annotated, Literal

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


class NameBody(Words):
    kind: Literal["file", "task"]
    text: str = Field(min_length=1, max_length=255, examples=["scripts/deploy.sh"])


class LookBody(Words):
    slug: str = Field(min_length=1, max_length=255)
    version: int = Field(ge=1, le=2**31 - 1)
    gone: list[NameBody] = Field(max_length=10_000, description="Those of its names that the checkout had once.")


class LooksBody(Words):
    looks: list[LookBody] = Field(max_length=500, description="Pages as a checkout was looked at for their names.")


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


@router.get("/v1/reviews/names", operation_id="names_in_pages")
async def names_in_pages(service: InProject) -> r.NamesInPages:
    """Files and tasks that pages name, for whoever can look at the checkout."""
    return r.NamesInPages(pages=await service.names_in_pages())


@router.post("/v1/reviews/looks", operation_id="note_looks")
async def note_looks(body: LooksBody, service: InProject) -> r.StaleFound:
    """What a checkout on its default branch had once and does not have any more. What is found again a day later is
    proposed to go; where nothing is gone, an earlier look counts no more."""
    return await service.note_looks([r.PageLook(**look.model_dump()) for look in body.looks])
