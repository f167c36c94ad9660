"""Fold the summaries of a stream's episodes into its rolling summary, never inside a request.

Safe to repeat: the fold is written only over the state it was made from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from everkept.derive.offline.summarise import fold
from everkept.derive.tools import Tools
from everkept.domain.jobs import Done, JobPolicy, Outcome
from everkept.domain.replies import parse_fold
from everkept.models.prompts.questions import build_fold_question
from everkept.ports.journal import Recipe
from everkept.store.connection import Connection
from everkept.store.journal import subject_epoch
from everkept.store.streams import get_stream
from everkept.store.windows import fold_input, write_fold
from everkept.work.job import Finished, JobContext, JobKind

CHARS_MAX = 1_600


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldSummary:
    stream: int


async def run(args: FoldSummary, ctx: JobContext) -> Outcome | Finished:
    previous, was, following, epoch = await ctx.read(_read, args.stream)
    if not following:
        return Done()
    through = following[-1][0]
    texts = [text for _, text in following if text]
    summary = await _fold(args, ctx, previous, texts, was, through, epoch) if texts else previous or ""
    return await ctx.finish(write_fold, args.stream, was, through, summary)


def _read(conn: Connection, stream: int) -> tuple[str | None, int, list[tuple[int, str]], int]:
    return *fold_input(conn, stream), subject_epoch(conn, get_stream(conn, stream).subject)


async def _fold(
    args: FoldSummary, ctx: JobContext, previous: str | None, texts: list[str], was: int, through: int, epoch: int
) -> str:
    tools: Tools = ctx.tools
    short = len(previous or "") + sum(map(len, texts)) <= CHARS_MAX // 2
    if tools.model is None or short:  # what fits whole needs no model
        return fold(previous, texts, CHARS_MAX)
    question = build_fold_question(previous, texts, chars_max=CHARS_MAX, timeout_s=ctx.settings.models.text_timeout_s)
    stream = await ctx.read(get_stream, args.stream)
    return await tools.model.ask(
        question, partial(parse_fold, system=question.system), project=stream.project, subject=stream.subject,
        work=f"fold:{args.stream}:{was}-{through}", epoch=epoch, budget=ctx.lease.budget, heard=ctx.heard,
        recipe=Recipe(shown={"stream": args.stream, "after": was, "through": through}),
    )  # fmt: skip


KIND = JobKind(
    name="fold_summary", policy=JobPolicy(attempts_max=4, timeout_s=120, estimate_s=0.05),
    read_args=lambda a: FoldSummary(**a), run=run,
)  # fmt: skip
