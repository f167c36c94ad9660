"""The service that does the work, in this process."""

from __future__ import annotations

from everkept.api.agents import AgentMemory
from everkept.api.diagnosing import Diagnosing
from everkept.api.erasing import Erasing
from everkept.api.operating import Operating
from everkept.api.proposals import Proposals
from everkept.api.recalling import Recalling
from everkept.api.reviews import Reviews
from everkept.api.scoping import Scoping
from everkept.api.settling import Settling
from everkept.api.timeline import Timeline


class LocalService(
    Recalling, AgentMemory, Timeline, Reviews, Proposals, Scoping, Erasing, Settling, Operating, Diagnosing
):
    """`api.service.Service` over a store. One instance per project; cheap to make."""
