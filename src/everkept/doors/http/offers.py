"""Offers: what was given to a session's context, taken up by hand."""

from __future__ import annotations

from fastapi import APIRouter

from everkept.api import workstream_views as w
from everkept.doors.http.problems import RESPONSES
from everkept.doors.http.scope import InProject

router = APIRouter(tags=["agents"], responses=RESPONSES)


@router.post("/v1/offers/{offer:id}/accept", operation_id="accept_offer")
async def accept_offer(offer: str, service: InProject) -> w.Offer:
    """Take up the launch's packet and the handoff in it, both or neither. Doing so twice changes nothing."""
    return await service.accept_offer(offer)
