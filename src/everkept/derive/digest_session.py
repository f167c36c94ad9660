"""A stretch of a session has ended: digest the session as far as it is known.

Safe to repeat: the digest is made of the events alone, and one whose content is as before changes nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from everkept.domain.digest import content_hash, digest_session, merge_open_ends, to_handoff, to_page, trivial
from everkept.domain.digest.values import Digest, OpenEnd
from everkept.domain.jobs import Done, JobPolicy, Outcome
from everkept.domain.pages import PageText, slug_of
from everkept.store.digests import DigestInput, NewDigest, digest_input, write_digest
from everkept.store.handoffs import NewHandoff
from everkept.store.pages import NewPage
from everkept.store.sessions import SessionRow
from everkept.store.windows import skip_window
from everkept.work.job import Finished, JobContext, JobKind

FOLDED = "a sub-agent: it is told of in the digest of the session that started it"
PHANTOM = "nothing was asked in it, and nothing was done"
TITLE_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestSession:
    window: int


async def run(args: DigestSession, ctx: JobContext) -> Outcome | Finished:
    found = await ctx.read(digest_input, args.window, ctx.settings)
    if found is None:
        return Done()
    if found.opted_out:
        return await ctx.finish(skip_window, args.window)
    new = await asyncio.to_thread(make_digest, found)
    return await ctx.finish(write_digest, replace(new, distil=ctx.tools.model is not None))


def make_digest(found: DigestInput) -> NewDigest:
    """All that is committed of a session, from its events. Pure."""
    session = found.session
    because = FOLDED if found.folded else PHANTOM if session.phantom else None
    if because is not None:
        return NewDigest(
            window=found.window.id, through=found.window.end_seq, epoch=found.epoch, hash="", trivial_because=because,
            page=None, handoff=None,
        )  # fmt: skip
    digest = digest_session(found.events)
    because = trivial(digest)
    return NewDigest(
        window=found.window.id,
        through=max(found.window.end_seq, session.last_seq),
        epoch=found.epoch,
        hash=content_hash(digest),
        trivial_because=because,
        page=None if because is not None else _page(session, digest),
        handoff=None if because is not None else _handoff(session, digest, found.open_ends),
        ends_before=found.open_ends,
    )


def _page(session: SessionRow, digest: Digest) -> NewPage:
    title = title_of(session, digest)
    slug = f"{_day(session)}-{slug_of(title)[:60].strip('-')}-{session.stream}"
    return NewPage(
        project=session.project, kind="session", slug=slug,
        text=PageText(title=title, body=to_page(digest)), author="digest", stream=session.stream,
        source=f"session:{session.agent}/{session.native}",
    )  # fmt: skip


def title_of(session: SessionRow, digest: Digest) -> str:
    """Its own title, else what was asked first."""
    title = " ".join((session.title or digest.goal or f"{session.agent} session").split())
    return title if len(title) <= TITLE_CHARS else title[: TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"


def _day(session: SessionRow) -> str:
    return datetime.fromtimestamp((session.started_at or 0) / 1e6, UTC).strftime("%Y-%m-%d")


def _handoff(session: SessionRow, digest: Digest, before: tuple[OpenEnd, ...]) -> NewHandoff:
    handoff = to_handoff(digest, merge_open_ends(before, digest))
    return NewHandoff(
        project=session.project, stream=session.stream, worktree=session.worktree, branch=session.branch,
        title=title_of(session, digest), body=handoff.text, open_ends=handoff.open_ends,
        left_at=session.last_event_at or 0,
    )  # fmt: skip


KIND = JobKind(
    name="digest_session",
    policy=JobPolicy(attempts_max=5, timeout_s=120, estimate_s=0.1),
    read_args=lambda a: DigestSession(**a),
    run=run,
)
