"""Rule on the open contradictions of one subject, all in one question with the evidence of both sides.

Safe to repeat: a ruling is written only where the pair is still open, and requires the subject the judge saw.
A failed judge is tried again, and so is one that is silent about a pair: it stays open, the later statement is
recalled, both are marked unsettled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from everkept.derive.tools import Tools, pieces_hash
from everkept.domain.jobs import Done, JobPolicy, Outcome, Snooze
from everkept.domain.replies import parse_verdicts
from everkept.domain.timeline import Pair, Verdict, judge_offline
from everkept.models.prompts.questions import ConflictPair, Side, build_conflicts_question
from everkept.ports.journal import Recipe
from everkept.store.connection import Connection
from everkept.store.facts import FactRow, facts_by_id, open_conflicts, subject_revision, timeline_facts, write_verdicts
from everkept.store.journal import subject_epoch
from everkept.work.job import Finished, JobContext, JobKind

PAIRS_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeConflicts:
    subject: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    pairs: Sequence[Pair]
    facts: dict[int, FactRow]
    revision: int
    epoch: int


async def run(args: JudgeConflicts, ctx: JobContext) -> Outcome | Finished:
    read = await ctx.read(_read, ctx.lease.project, args.subject)
    if not read.pairs:
        return Done()
    rulings = await _judge(args, read, ctx)
    return await ctx.finish(_write, ctx.lease.project, args.subject, read.revision, rulings)


def _read(conn: Connection, project: int, subject: int) -> _Read:
    pairs = open_conflicts(conn, subject, PAIRS_MAX)
    ids = sorted({fact for pair in pairs for fact in pair})
    return _Read(pairs=pairs, facts=facts_by_id(conn, project, ids), revision=subject_revision(conn, subject),
                 epoch=subject_epoch(conn, subject))  # fmt: skip


async def _judge(args: JudgeConflicts, read: _Read, ctx: JobContext) -> list[tuple[Pair, Verdict, str]]:
    tools: Tools = ctx.tools
    if tools.model is None:
        facts = await ctx.read(timeline_facts, sorted(read.facts))
        return [
            (p, judge_offline(facts[p[0]], facts[p[1]]), "by rule: one object at a time, or several")
            for p in read.pairs
        ]
    sides = [ConflictPair(earlier=_side(read.facts[a]), later=_side(read.facts[b])) for a, b in read.pairs]
    reply = await tools.model.ask(
        build_conflicts_question(sides, timeout_s=ctx.settings.models.structured_timeout_s),
        partial(parse_verdicts, pairs=len(sides)), project=ctx.lease.project, subject=args.subject,
        work=f"conflicts:{args.subject}:{pieces_hash(*read.pairs)}", epoch=read.epoch,
        budget=ctx.lease.budget, heard=ctx.heard,
        recipe=Recipe(shown={"facts": sorted(read.facts)}),
    )  # fmt: skip
    # What the judge left out stays open, and is the next question.
    return [(pair, reply.rulings[n], "judged by the model")
            for n, pair in enumerate(read.pairs, start=1) if n in reply.rulings]  # fmt: skip


def _side(fact: FactRow) -> Side:
    return Side(text=fact.text, quote=fact.quote or "", said_us=fact.said_at)


def _write(
    conn: Connection,
    project: int,
    subject: int,
    revision: int,
    rulings: Sequence[tuple[Pair, Verdict, str]],
) -> Outcome:
    write_verdicts(conn, project, subject, revision, rulings)
    # Left out, beyond the first few, or uncovered by a ruling.
    return Snooze(conn.now()) if open_conflicts(conn, subject, 1) else Done()


KIND = JobKind(
    name="judge_conflicts", policy=JobPolicy(attempts_max=4, timeout_s=180, estimate_s=0.1),
    read_args=lambda a: JudgeConflicts(**a), run=run,
)  # fmt: skip
