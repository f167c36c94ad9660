"""Approve a proposal of a kind that its project approves by itself. Safe to repeat: approved twice it is approved once.

The settings are read again when it runs: what was switched to `ask` meanwhile waits for a person.
"""

from __future__ import annotations

from dataclasses import dataclass

from everkept.config import Settings
from everkept.domain.jobs import Discard, Done, JobPolicy, Outcome
from everkept.errors import NotFound
from everkept.store.connection import Connection
from everkept.store.decisions import AUTOMATIC, approve_proposal
from everkept.store.effective import effective_of_project
from everkept.store.proposal_checks import mode_of
from everkept.store.proposals import APPLY, get_proposal
from everkept.work.job import Finished, JobContext, JobKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyProposal:
    project: int
    proposal: int


async def run(args: ApplyProposal, ctx: JobContext) -> Outcome | Finished:
    return await ctx.finish(apply, args, ctx.settings)


def apply(conn: Connection, args: ApplyProposal, settings: Settings) -> Outcome:
    try:
        row = get_proposal(conn, args.project, args.proposal)
    except NotFound:
        return Discard("the proposal was erased first")
    if not row.awaits:
        return Done()
    if mode_of(effective_of_project(conn, settings, args.project), row.kind) != "auto":
        return Discard("a person is asked by now")
    approve_proposal(conn, args.project, args.proposal, by=AUTOMATIC)
    return Done()


KIND = JobKind(
    name=APPLY,
    policy=JobPolicy(attempts_max=5, timeout_s=60),
    read_args=lambda a: ApplyProposal(**a),
    run=run,
)
