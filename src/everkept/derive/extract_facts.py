"""Extract the durable facts of one window (or one slice of it), independently of its summary.

Safe to repeat: the reply is journaled, a fact's key is what it states in which slice, and the finishing transaction
requires the subject to be what the job read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from everkept.config import Settings
from everkept.derive.offline.extract import extract_offline
from everkept.derive.resolve import known_objects, near_statements
from everkept.derive.tools import SliceArgs, Tools, WindowTurns, analyse_fact, read_slice
from everkept.domain.facts import Checked, FactDraft, check_drafts
from everkept.domain.jobs import Discard, JobPolicy, Outcome
from everkept.domain.replies import FactsReply, RejectedItem, parse_facts
from everkept.models.prompts.questions import KnownFact, build_facts_question
from everkept.ports.journal import Recipe
from everkept.store.connection import Connection
from everkept.store.facts import (
    FactRow,
    FactsOf,
    KnownEntity,
    NewFact,
    known_entities,
    live_facts,
    subject_revision,
    write_facts,
)
from everkept.store.windows import skip_window
from everkept.work.job import Finished, JobContext, JobKind

ENTITIES_MAX = 40
NEAR_MAX = 60
"""Known facts that new ones are compared with; the first few of them are shown to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    found: WindowTurns
    revision: int
    facts: Sequence[FactRow]
    entities: Sequence[KnownEntity]


async def run(args: SliceArgs, ctx: JobContext) -> Outcome | Finished:
    read = await ctx.read(_read, args, ctx.settings)
    if read is None:
        return Discard("the window was erased, is skipped, or rests while a message of it is erased")
    if read.found.opted_out:
        return await ctx.finish(skip_window, args.window)
    reply = await _extract(args, read, ctx)
    checked = check_drafts(read.found.turns, reply.drafts, _names(read))
    window = read.found.window
    of = FactsOf(
        project=window.project, subject=window.subject, window=window.id, slice=args.slice, revision=read.revision
    )
    near = _near(checked, read, ctx)
    facts = new_facts(read.found, checked.accepted, _known_objects(checked, read, ctx))
    return await ctx.finish(write_facts, of, facts, _rejections(reply, checked), near)


def _names(read: _Read) -> list[str]:
    """Whom a statement may be about though nobody is named in the window: the speakers, and who is known already."""
    known = [name for fact in read.facts for name in (fact.entity, fact.object)]
    return [*read.found.names.values(), *(entity.name for entity in read.entities), *known]


def _known_objects(checked: Checked, read: _Read, ctx: JobContext) -> Mapping[str, str]:
    words = ctx.tools.words
    if words is None:
        return {}
    return known_objects(checked.accepted, read.entities, words, read.found.settings.recall.entity_cosine)


def _near(checked: Checked, read: _Read, ctx: JobContext) -> list[tuple[int, int]]:
    """Pairs for the judge; without a model there is none who could tell."""
    words = ctx.tools.words
    if words is None or ctx.tools.model is None:
        return []
    return near_statements(checked.accepted, read.facts, words, read.found.settings.recall.contradiction_low)


def _read(conn: Connection, args: SliceArgs, base: Settings) -> _Read | None:
    found = read_slice(conn, args, base)
    if found is None:
        return None
    subject = found.window.subject
    return _Read(
        found=found,
        revision=subject_revision(conn, subject),
        facts=live_facts(conn, subject, max(found.settings.recall.facts_max, NEAR_MAX)),
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
    shown = read.facts[: found.settings.recall.facts_max]
    known = [KnownFact(entity=f.entity, predicate=f.predicate, object=f.object) for f in shown]
    question = build_facts_question(
        found.turns,
        known,
        [entity.name for entity in read.entities],
        known_names=found.names,
        timeout_s=found.settings.models.structured_timeout_s,
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
                "facts": [f.id for f in shown],
                "entities": [entity.id for entity in read.entities],
            }
        ),
    )


def new_facts(found: WindowTurns, drafts: Sequence[FactDraft], known_objects: Mapping[str, str]) -> list[NewFact]:
    """Accepted drafts with the time their evidence was said, and their text as the index wants it."""
    said = {t.seq: t for t in found.turns}
    return [
        NewFact(
            draft=d,
            said_at=said[d.seqs[0]].occurred_at_us,
            zone_min=said[d.seqs[0]].zone_min,
            stream=found.window.stream,
            analysed=analyse_fact(d, said[d.seqs[0]].occurred_at_us),
            object_is=known_objects.get(d.object),
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
