"""Extract the durable facts of one window (or one slice of it), independently of its summary.

Safe to repeat: the reply is journaled, a fact's key is what it states in which slice, and the finishing transaction
requires the subject to be what the job read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from everkept.derive.offline.extract import extract_offline
from everkept.derive.resolve import near_statements, resolve_objects
from everkept.derive.tools import SliceArgs, Tools, WindowTurns, analyse_fact, read_slice
from everkept.domain.facts import Checked, FactDraft, check_drafts
from everkept.domain.jobs import Discard, JobPolicy, Outcome
from everkept.domain.replies import FactsReply, RejectedItem, parse_facts
from everkept.models.prompts.questions import KnownFact, build_facts_question
from everkept.ports.journal import Recipe
from everkept.store.connection import Connection
from everkept.store.facts import FactRow, FactsOf, NewFact, known_entities, live_facts, subject_revision, write_facts
from everkept.work.job import Finished, JobContext, JobKind

ENTITIES_MAX = 40
NEAR_MAX = 60
"""Known facts that new ones are compared with; the first few of them are shown to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    found: WindowTurns
    revision: int
    facts: Sequence[FactRow]
    entities: Sequence[tuple[str, str]]
    """(name, type)"""


async def run(args: SliceArgs, ctx: JobContext) -> Outcome | Finished:
    read = await ctx.read(_read, args, ctx.settings.window.tokens_max, ctx.settings.recall.facts_max)
    if read is None:
        return Discard("the window was erased or is skipped")
    reply = await _extract(args, read, ctx)
    checked = check_drafts(read.found.turns, _resolved(reply, read, ctx))
    window = read.found.window
    of = FactsOf(
        project=window.project, subject=window.subject, window=window.id, slice=args.slice, revision=read.revision
    )
    near = _near(checked, read, ctx)
    return await ctx.finish(write_facts, of, new_facts(read.found, checked.accepted), _rejections(reply, checked), near)


def _resolved(reply: FactsReply, read: _Read, ctx: JobContext) -> Sequence[FactDraft]:
    words = ctx.tools.words
    return (
        reply.drafts
        if words is None
        else resolve_objects(reply.drafts, read.entities, words, ctx.settings.recall.entity_cosine)
    )


def _near(checked: Checked, read: _Read, ctx: JobContext) -> list[tuple[int, int]]:
    """Pairs for the judge; without a model there is none who could tell."""
    words = ctx.tools.words
    if words is None or ctx.tools.model is None:
        return []
    return near_statements(checked.accepted, read.facts, words, ctx.settings.recall.contradiction_low)


def _read(conn: Connection, args: SliceArgs, tokens_max: int, facts_max: int) -> _Read | None:
    found = read_slice(conn, args, tokens_max)
    if found is None:
        return None
    subject = found.window.subject
    return _Read(
        found=found,
        revision=subject_revision(conn, subject),
        facts=live_facts(conn, subject, max(facts_max, NEAR_MAX)),
        entities=known_entities(conn, subject, ENTITIES_MAX),
    )


async def _extract(args: SliceArgs, read: _Read, ctx: JobContext) -> FactsReply:
    tools: Tools = ctx.tools
    found = read.found
    if not any(t.evidence for t in found.turns):
        return FactsReply(drafts=(), rejected=())
    if tools.model is None:
        drafts = await asyncio.to_thread(
            partial(extract_offline, found.turns, subject=found.window.subject_name, known_names=found.names)
        )
        return FactsReply(drafts=tuple(drafts), rejected=())
    known = [
        KnownFact(entity=f.entity, predicate=f.predicate, object=f.object)
        for f in read.facts[: ctx.settings.recall.facts_max]
    ]
    question = build_facts_question(
        found.turns,
        known,
        [name for name, _ in read.entities],
        known_names=found.names,
        timeout_s=ctx.settings.models.structured_timeout_s,
    )
    return await tools.model.ask(
        question,
        parse_facts,
        project=found.window.project,
        subject=found.window.subject,
        work=f"window:{args.window}.{args.slice}",
        epoch=found.epoch,
        budget=ctx.lease.budget,
        fresh=args.fresh,
        heard=ctx.heard,
        recipe=Recipe(
            shown={
                "stream": found.window.stream,
                "first": found.turns[0].seq,
                "last": found.turns[-1].seq,
                "facts": [f.id for f in read.facts[: ctx.settings.recall.facts_max]],
            }
        ),
    )


def new_facts(found: WindowTurns, drafts: Sequence[FactDraft]) -> list[NewFact]:
    """Accepted drafts with the time their evidence was said, and their text as the index wants it."""
    said = {t.seq: t for t in found.turns}
    return [
        NewFact(
            draft=d,
            said_at=said[d.seqs[0]].occurred_at_us,
            zone_min=said[d.seqs[0]].zone_min,
            stream=found.window.stream,
            analysed=analyse_fact(d, said[d.seqs[0]].occurred_at_us),
        )
        for d in drafts
    ]


def _rejections(reply: FactsReply, checked: Checked) -> str:
    """What was not taken, each with its reason, as JSON."""
    items: list[RejectedItem] = [
        *reply.rejected,
        *(RejectedItem(f"{r.draft.text[:300]} (“{r.draft.quote[:200]}”)", r.reason) for r in checked.rejected),
    ]
    return json.dumps([{"item": i.item, "reason": i.reason} for i in items], ensure_ascii=False)


KIND = JobKind(
    name="extract_facts", policy=JobPolicy(attempts_max=4, timeout_s=180, estimate_s=0.1),
    read_args=lambda a: SliceArgs(**a), run=run,
)  # fmt: skip
