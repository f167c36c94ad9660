"""A session was digested: distil what will matter again into knowledge pages, with a model.

Safe to repeat: the reply is journaled under the digest's content, and the pages are written on the versions that were
read. A session that goes on is asked about again only if its digest says something new.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from everkept.domain.digest import digest_session
from everkept.domain.distilled import PageDraft, PagesReply, check_pages, parse_pages
from everkept.domain.ids import row_id
from everkept.domain.jobs import Discard, JobPolicy, Outcome
from everkept.domain.knowledge import with_statements
from everkept.domain.pages import PageText, slug_of
from everkept.domain.session_lines import names_in, session_lines, sources_of
from everkept.domain.text import stem, words
from everkept.models.prompts.questions import KnownPage, build_pages_question
from everkept.ports.journal import Recipe
from everkept.ports.models import Question
from everkept.store.digests import session_work
from everkept.store.distilled import (
    AUTHOR,
    DistilInput,
    Neighbour,
    NewDistilled,
    distil_input,
    is_outdated,
    rejected_json,
    write_distilled,
)
from everkept.store.pages import NewPage, PageRow
from everkept.work.job import Finished, JobContext, JobKind

SHOWN_MAX = 12
"""Pages of others that the model is shown."""
OTHER_CHARS, OWN_CHARS = 300, 3_000
SLUG_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilSession:
    stream: int
    history: bool = False
    """It was over long before it was digested, as an imported one."""


async def run(args: DistilSession, ctx: JobContext) -> Outcome | Finished:
    if ctx.tools.model is None:
        return Discard("there is no model any more")
    if args.history and await ctx.read(is_outdated, ctx.lease.project, args.stream):
        return Discard("it is history, and many sessions came after it")
    found = await ctx.read(distil_input, ctx.lease.project, args.stream, ctx.settings)
    if found is None:
        return Discard("the session was erased, is trivial, or waits for its digest to be made again")
    near = await asyncio.to_thread(pages_near, found)
    reply = await _ask(found, near, ctx)
    return await ctx.finish(write_distilled, await asyncio.to_thread(make_pages, found, near, reply))


async def _ask(found: DistilInput, near: Sequence[Neighbour], ctx: JobContext) -> PagesReply:
    question = await asyncio.to_thread(make_question, found, near)
    reply: PagesReply = await ctx.tools.model.ask(
        question,
        partial(parse_pages, system=question.system),
        project=ctx.lease.project,
        subject=found.subject,
        work=session_work(found.session.stream, found.hash),
        epoch=found.epoch,
        budget=ctx.lease.budget,
        heard=ctx.heard,
        recipe=_recipe(found, near),
    )
    return reply


def _recipe(found: DistilInput, near: Sequence[Neighbour]) -> Recipe:
    pages = [*(page.id for page in found.own), *(page.id for page in near)]
    return Recipe(shown={"stream": found.session.stream, "first": 1, "through": found.session.last_seq, "pages": pages})


def make_question(found: DistilInput, near: Sequence[Neighbour]) -> Question:
    """What the model is asked. Pure."""
    own = [_known(page, OWN_CHARS, page.body, yours=True) for page in found.own]
    others = [_known(page, OTHER_CHARS, page.head, yours=False) for page in near]
    return build_pages_question(
        session_lines(found.events, digest_session(found.events)), [*own, *others],
        timeout_s=found.settings.models.structured_timeout_s,
    )  # fmt: skip


def _known(page: PageRow | Neighbour, chars: int, text: str, *, yours: bool) -> KnownPage:
    return KnownPage(id=row_id("pag", page.id), kind=page.kind, title=page.title, head=text[:chars], yours=yours)


def pages_near(found: DistilInput) -> list[Neighbour]:
    """The pages of others that share the most words with what was asked and said; words of many pages count less."""
    said = {stem(word) for e in found.events if e.event.kind in ("prompt", "said") for word in words(e.event.text)}
    mine = {page.id: {stem(word) for word in words(f"{page.title}\n{page.head}")} for page in found.others}
    spread = Counter(word for have in mine.values() for word in have)
    shared = {id_: sum(1 / spread[word] for word in have & said) for id_, have in mine.items()}
    near = sorted(found.others, key=lambda page: (-shared[page.id], -page.id))
    return [page for page in near if shared[page.id] > 0][:SHOWN_MAX]


# ---- what is written


def make_pages(found: DistilInput, near: Sequence[Neighbour], reply: PagesReply) -> NewDistilled:
    """The pages that a reply comes to, with what of it was dropped. Pure."""
    checked = check_pages(sources_of(found.events), reply.drafts, names_in(found.events))
    own = {row_id("pag", page.id): page for page in found.own}
    slugs = {row_id("pag", page.id): page.slug for page in near if page.distilled}
    pages: dict[str, NewPage] = {}
    for draft in checked.accepted:
        page = _page(found, draft, own, slugs, pages)
        pages[page.slug] = page
    rejected = [(item.item, item.reason) for item in (*reply.rejected, *checked.rejected)]
    return NewDistilled(
        project=found.session.project, subject=found.subject, epoch=found.epoch, stream=found.session.stream,
        window=found.window, pages=list(pages.values()), rejected=rejected_json(rejected),
    )  # fmt: skip


def _page(
    found: DistilInput, draft: PageDraft, own: Mapping[str, PageRow], slugs: Mapping[str, str],
    made: Mapping[str, NewPage],
) -> NewPage:  # fmt: skip
    """A page of this session is updated, also where the model did not see that it is the same; else it is a new one.

    A page kept by hand is never superseded: only a person decides that.
    """
    stream = found.session.stream
    slug = slug_of(draft.title)[:SLUG_CHARS].strip("-")
    there = own.get(draft.page) or next((p for p in own.values() if p.slug in (slug, f"{slug}-{stream}")), None)
    if there is not None:
        slug = there.slug
    before = made.get(slug)
    body = before.text.body if before is not None else there.body if there is not None else ""
    return NewPage(
        project=found.session.project, kind=draft.kind if there is None else there.kind, slug=slug,
        text=PageText(
            title=draft.title if there is None else there.title,
            body=with_statements(body, draft.statements, stream=stream),
        ),
        author=AUTHOR, reason=f"distilled from {row_id('ses', stream)}", stream=stream,
        base=None if there is None else there.version, supersedes=slugs.get(draft.supersedes),
    )  # fmt: skip


KIND = JobKind(
    name="distil_session",
    policy=JobPolicy(attempts_max=4, timeout_s=180, estimate_s=0.1),
    read_args=lambda a: DistilSession(**a),
    run=run,
)
