"""Write the summary and the key learnings of one window (or one slice of it).

Safe to repeat: the reply is journaled under the slice's address, and the summary is one row that is written again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial

from everkept.derive.offline.summarise import summarise_offline
from everkept.derive.tools import SliceArgs, Tools, WindowTurns, read_slice
from everkept.domain.ids import ProjectId, SubjectId
from everkept.domain.jobs import Discard, JobPolicy, Outcome
from everkept.domain.passage import analyse
from everkept.domain.replies import SummaryReply, parse_summary
from everkept.models.prompts.questions import build_summary_question
from everkept.ports.journal import Recipe
from everkept.store.connection import Connection
from everkept.store.jobs import schedule
from everkept.store.search import NewPassage, delete_passages, find_passages_of, index_passages
from everkept.store.streams import wake_embedder
from everkept.store.windows import WindowRow, fold_wish, get_window, note_summarised, skip_window, write_slice_summary
from everkept.work.job import Finished, JobContext, JobKind


async def run(args: SliceArgs, ctx: JobContext) -> Outcome | Finished:
    found = await ctx.read(read_slice, args, ctx.settings)
    if found is None:
        return Discard("the window was erased, is skipped, or rests while a message of it is erased")
    if found.opted_out:
        return await ctx.finish(skip_window, args.window)
    reply = await _summarise(args, found, ctx)
    return await ctx.finish(write_summary, found.window, args.slice, reply.summary, reply.learnings, _said_last(found))


async def _summarise(args: SliceArgs, found: WindowTurns, ctx: JobContext) -> SummaryReply:
    tools: Tools = ctx.tools
    evidence = [t for t in found.turns if t.evidence]
    if not evidence:
        return SummaryReply(summary="", learnings=())
    if tools.model is None:
        found_here = await asyncio.to_thread(partial(summarise_offline, evidence, known_names=found.names))
        return SummaryReply(summary=found_here.text, learnings=found_here.learnings)
    question = build_summary_question(evidence, known_names=found.names, timeout_s=found.settings.models.text_timeout_s)
    return await tools.model.ask(
        question,
        partial(parse_summary, system=question.system),
        project=found.window.project,
        subject=found.window.subject,
        work=f"window:{args.window}.{args.slice}",
        epoch=found.epoch,
        budget=ctx.lease.budget,
        fresh=args.fresh,
        heard=ctx.heard,
        recipe=Recipe(shown={"stream": found.window.stream, "first": evidence[0].seq, "last": evidence[-1].seq}),
    )


def _said_last(found: WindowTurns) -> int:
    return max((t.occurred_at_us for t in found.turns), default=found.window.opened_at)


def write_summary(
    conn: Connection, window: WindowRow, part: int, summary: str, learnings: Sequence[str], said_at: int
) -> None:
    """Store one slice's summary; with the last one the episode becomes searchable and the rolling summary is due."""
    if not write_slice_summary(conn, window, part, summary, learnings):
        return
    whole = get_window(conn, window.id)
    delete_passages(conn, ProjectId(whole.project), find_passages_of(conn, "episode", [whole.id]))
    if whole.summary:
        text = "\n".join([whole.summary, *json.loads(whole.learnings or "[]")])
        index_passages(conn, [NewPassage(
            project=ProjectId(whole.project), subject=SubjectId(whole.subject), kind="episode", ref=whole.id,
            occurred_at_us=said_at, analysed=analyse(text, occurred_at_us=said_at),
        )])  # fmt: skip
        wake_embedder(conn, whole.project)
    schedule(conn, [fold_wish(whole, conn.now())])
    note_summarised(conn, whole)


KIND = JobKind(
    name="summarise_episode", policy=JobPolicy(attempts_max=4, timeout_s=120, estimate_s=0.1),
    read_args=lambda a: SliceArgs(**a), run=run,
)  # fmt: skip
