"""Proposals: what reviews of sessions would change in pages, the decision on it, and what came of it."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from everkept.domain.review.values import PROPOSAL_STATES
from everkept.doors.http.web.outcome_charts import mark_of
from everkept.doors.http.web.visit import PAGE_ITEMS, Visit, route
from everkept.errors import InvalidInput

STATES: Final = ("open", *(state for state in PROPOSAL_STATES if state not in ("staged", "conflict")), "all")
"""`open` are those that await a decision, staged or in conflict."""
OUTCOMES_SHOWN: Final = 20
DONE: Final = {"approve": "approved", "reject": "rejected", "undo": "rolled_back"}


async def proposals(visit: Visit) -> Response:
    """The queue, how far reviews have come, and whether what was approved helped."""
    state = visit.asked("state") or "open"
    found = await visit.service.list_proposals(
        state=None if state == "all" else state, limit=PAGE_ITEMS, cursor=visit.asked("cursor")
    )
    status = await visit.service.status(project_only=True)
    report = await visit.service.proposal_report(limit=OUTCOMES_SHOWN)
    return visit.show(
        "proposals.html", proposals=found, state=state, states=STATES, reviews=status.reviews, report=report,
        outcomes=[(outcome, mark_of(outcome)) for outcome in report.outcomes],
    )  # fmt: skip


async def proposal(visit: Visit) -> Response:
    return visit.show("proposal.html", proposal=await visit.service.get_proposal(visit.at("proposal")))


async def decide(visit: Visit) -> Response:
    """`approve` (with `rebase` where the page moved on and somebody has looked), `reject` or `undo` one proposal."""
    name, verb, form = visit.at("proposal"), visit.at("verb"), await visit.form()
    reason = form.get("reason", "").strip() or None
    match verb:
        case "approve":
            await visit.service.approve_proposal(name, rebase="rebase" in form)
        case "reject":
            await visit.service.reject_proposal(name, reason=reason)
        case "undo":
            await visit.service.roll_back_proposal(name, reason=reason)
        case _:
            raise InvalidInput("a proposal is approved, rejected or undone", field="verb")
    return visit.go(f"/proposals/{name}", done=DONE[verb])


async def review_now(visit: Visit) -> Response:
    """Start the review of every finished session that waits for one."""
    await visit.form()
    await visit.service.run_reviews()
    return visit.go("/proposals", done="reviews")


ROUTES = [
    route("/proposals", proposals),
    route("/proposals/review", review_now, "POST"),
    route("/proposals/{proposal:id}", proposal),
    route("/proposals/{proposal:id}/{verb}", decide, "POST"),
]
