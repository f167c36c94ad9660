"""The service that does the work, in this process."""

from __future__ import annotations

from everkept.api.agents import AgentMemory
from everkept.api.by_hand import ByHand
from everkept.api.deliveries import Deliveries
from everkept.api.diagnosing import Diagnosing
from everkept.api.erasing import Erasing
from everkept.api.merging import MergingProjects
from everkept.api.pausing import Pausing
from everkept.api.proposals import Proposals
from everkept.api.recalling import Recalling
from everkept.api.review_looks import ReviewLooks
from everkept.api.reviews import Reviews
from everkept.api.scoping import Scoping
from everkept.api.settling import Settling
from everkept.api.tenants import Tenants
from everkept.api.timeline import Timeline
from everkept.api.webhooks import Webhooks
from everkept.api.workstream_launches import Launches
from everkept.api.workstreams import Workstreams


class LocalService(
    Recalling,
    ByHand,
    AgentMemory,
    Timeline,
    Reviews,
    ReviewLooks,
    Proposals,
    Scoping,
    Erasing,
    Settling,
    Tenants,
    MergingProjects,
    Pausing,
    Deliveries,
    Webhooks,
    Workstreams,
    Launches,
    Diagnosing,
):
    """`api.service.Service` over a store. One instance per project; cheap to make."""
