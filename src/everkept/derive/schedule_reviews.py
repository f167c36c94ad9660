"""A project has finished sessions: open the review of each that is old enough.

Safe to repeat: what it decides is one transaction, and its cadence is in the database. One job a project, so that none
waits for another.
"""

from __future__ import annotations

from dataclasses import dataclass

from everkept.domain.jobs import JobPolicy, Outcome
from everkept.store.generations import SCHEDULER
from everkept.store.review_schedule import look_for_sessions
from everkept.work.job import Finished, JobContext, JobKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleReviews:
    """The project is its lease's."""


async def run(_args: ScheduleReviews, ctx: JobContext) -> Outcome | Finished:
    return await ctx.finish(look_for_sessions, ctx.lease.project, ctx.settings)


KIND = JobKind(
    name=SCHEDULER,
    policy=JobPolicy(attempts_max=5, timeout_s=30, estimate_s=0.01),
    read_args=lambda _: ScheduleReviews(),
    run=run,
)
