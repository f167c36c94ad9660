"""A finished session is reviewed: what it shows is observed and counted, and what follows from it is proposed.

Safe to repeat: what is observed comes from the events alone, a model's reply is journaled under the generation, and all
that a review makes is one commit, which happens only while the review is open. Where the model fails, what the rules
found is committed before the job does, and is neither counted nor staged again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from everkept.config import Settings
from everkept.domain.jobs import Discard, JobPolicy, Lease, Outcome, Snooze
from everkept.domain.review.observe import observe
from everkept.domain.review.propose import propose
from everkept.domain.review.reply import ProposalsReply, check_proposals, parse_proposals
from everkept.domain.review.shown import Shown, shown_of
from everkept.domain.review.values import Observation, Reviewed, Seen
from everkept.errors import ModelError
from everkept.models.prompts.questions import build_review_question
from everkept.ports.journal import Recipe
from everkept.ports.models import Question
from everkept.store.connection import Connection
from everkept.store.generations import REVIEW, review_work
from everkept.store.review_input import ReviewInput, review_input, seen_with
from everkept.store.reviews import complete_review, keep_by_rule
from everkept.work.job import Finished, JobContext, JobKind

REST_US = 30_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSession:
    generation: int


async def run(args: ReviewSession, ctx: JobContext) -> Outcome | Finished:
    found = await ctx.read(review_input, ctx.lease.project, args.generation, ctx.settings)
    if found is None:
        return Discard("the review is not open any more, or its session was erased")
    if found.resting:
        return Snooze(found.read_at + REST_US, "a part of the session is being erased")
    if found.skip is not None:
        return await _pass_by(found, (), found.skip, ctx)
    own = await asyncio.to_thread(observe, found.review.stream, found.events)
    least = found.settings.review.scheduler.observations_min
    if len(own) < least and found.review.asked_by != "hand":
        return await _pass_by(found, own, f"{len(own)} things were observed in it, and {least} are asked for", ctx)
    return await _review(found, own, ctx)


async def _pass_by(found: ReviewInput, own: tuple[Observation, ...], why: str, ctx: JobContext) -> Finished:
    """It passes without a proposal; what was observed in it is counted."""
    return await ctx.finish(partial(
        complete_review, review=found.review, reviewed=Reviewed(observations=own, drafts=(), note=why),
        epoch=found.epoch, settings=ctx.settings, state="skipped",
    ))  # fmt: skip


async def _review(found: ReviewInput, own: Sequence[Observation], ctx: JobContext) -> Finished:
    """By rule first; a model adds to that, and is not asked to say it again."""
    seen = await ctx.read(seen_with, ctx.lease.project, found.review.stream, own)
    complete = partial(complete_review, review=found.review, epoch=found.epoch, settings=ctx.settings)
    if ctx.tools.model is None:
        by_rule = await asyncio.to_thread(propose, own, seen, found.pages, found.rejected)
        return await ctx.finish(partial(complete, reviewed=by_rule))
    by_rule, shown, question = await asyncio.to_thread(_prepared, found, own, seen)
    try:
        reply = await _ask(found, question, _recipe(found, shown, seen), ctx)
    except ModelError:  # the failure is the job's, as ever; what needs no model does not wait for it, or die with it
        await ctx.store.write(_keep_by_rule, ctx.lease, found, by_rule, ctx.settings)
        raise
    reviewed = await asyncio.to_thread(_checked, found, own, shown, by_rule, reply)
    return await ctx.finish(
        partial(complete, reviewed=reviewed, reviewer=ctx.tools.model.model.name, by_rule=len(by_rule.drafts))
    )


def _prepared(
    found: ReviewInput, own: Sequence[Observation], seen: Mapping[str, Seen]
) -> tuple[Reviewed, Shown, Question]:
    """What the rules propose, what a model is shown, and its question. Pure, and one trip to a thread."""
    by_rule = propose(own, seen, found.pages, found.rejected)
    shown = shown_of(found.review.stream, found.events, own, seen, found.pages)
    return by_rule, shown, build_review_question(shown, timeout_s=found.settings.models.structured_timeout_s)


def _keep_by_rule(conn: Connection, lease: Lease, found: ReviewInput, by_rule: Reviewed, settings: Settings) -> None:
    keep_by_rule(conn, lease, found.review, by_rule, epoch=found.epoch, settings=settings)


def _checked(
    found: ReviewInput, own: Sequence[Observation], shown: Shown, by_rule: Reviewed, reply: ProposalsReply
) -> Reviewed:
    """All that is proposed, the rules' own first, with what was refused of either. Pure."""
    checked = check_proposals(reply, shown, own=own, pages=found.pages, rejected=found.rejected, already=by_rule.drafts)
    return Reviewed(
        observations=checked.observations, drafts=checked.drafts, refused=(*by_rule.refused, *checked.refused),
        note=checked.note,
    )  # fmt: skip


async def _ask(found: ReviewInput, question: Question, recipe: Recipe, ctx: JobContext) -> ProposalsReply:
    reply: ProposalsReply = await ctx.tools.model.ask(
        question,
        partial(parse_proposals, system=question.system),
        project=ctx.lease.project,
        subject=found.subject,
        work=review_work(found.review.id),
        epoch=found.epoch,
        budget=ctx.lease.budget,
        heard=ctx.heard,
        recipe=recipe,
    )
    return reply


def _recipe(found: ReviewInput, shown: Shown, seen: Mapping[str, Seen]) -> Recipe:
    """What was in view: this session, the pages, and the sessions whose words bear out what was counted."""
    streams = sorted({quote.stream for one in seen.values() for quote in one.quotes} - {found.review.stream})
    return Recipe(shown={
        "stream": found.review.stream, "first": 1, "through": found.session.last_seq,
        "pages": [page.id for page in shown.pages], "streams": streams,
    })  # fmt: skip


KIND = JobKind(
    name=REVIEW,
    policy=JobPolicy(attempts_max=4, timeout_s=180, estimate_s=0.1),
    read_args=lambda a: ReviewSession(**a),
    run=run,
)
