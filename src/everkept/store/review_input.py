"""What a reviewer sees: the session, how often others showed the same, the pages there are, and what was rejected."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import text

from everkept.config import Settings
from everkept.domain.digest.values import SessionEvent
from everkept.domain.review.values import EVIDENCE_MAX, KnownPage, Observation, Quote, Seen
from everkept.store.connection import Connection
from everkept.store.digests import events_of_session
from everkept.store.effective import effective
from everkept.store.hidden import SHOWN_PAGE
from everkept.store.journal import subject_epoch
from everkept.store.reviews import ReviewRow
from everkept.store.sessions import SessionRow, find_session
from everkept.store.streams import get_stream

CORRECTIONS_MAX: Final = 300
"""The most recent signatures of other sessions that one is compared with."""
PAGES_MAX: Final = 500
"""The newest, as a reviewer compares each with each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewInput:
    """All that a review is made of. `skip`: why it is not made, where it is not."""

    review: ReviewRow
    session: SessionRow
    subject: int
    epoch: int
    events: Sequence[SessionEvent]
    """Of the session alone: what a sub-agent said is erased with the sub-agent's stream."""
    pages: tuple[KnownPage, ...]
    rejected: frozenset[str]
    """Fingerprints of proposals that somebody turned down or took back."""
    settings: Settings
    skip: str | None
    resting: bool
    """A part of it is being erased: it is reviewed when that is done."""
    read_at: int


_REVIEW = text("""
select r.id, r.stream_id, r.asked_by, r.created_at from reviews r
join generations g on g.project_id = r.project_id and g.stream_id = r.stream_id and g.seq = r.generation
where r.project_id = :project and r.generation = :seq and r.completed_at is null and g.state = 'reviewing'""")
_RESTING = text("""
select 1 from erasures where project_id = :project and done_at is null and stream_id = :stream limit 1""")
_PAGES = text(f"""
select g.id, g.kind, g.slug, g.title, g.version, v.body, g.pinned_at is not null, v.author, g.updated_at
from pages g join page_versions v on v.page_id = g.id and v.version = g.version
  join subjects u on u.id = g.subject_id and u.erased_at is null
where g.project_id = :project and g.kind not in ('session', 'slot') and g.deleted_at is null
  and g.superseded_by is null and {SHOWN_PAGE}
order by g.updated_at desc, g.id desc limit :limit""")
_REJECTED = text("""
select distinct fingerprint from proposals where project_id = :project and state in ('rejected', 'rolled_back')""")


def review_input(conn: Connection, project: int, seq: int, base: Settings) -> ReviewInput | None:
    """None where the review is not open any more, or its session was erased."""
    row = conn.first(_REVIEW, {"project": project, "seq": seq})
    if row is None:
        return None
    id_, stream_id, asked_by, created_at = row
    session = find_session(conn, project, stream_id)
    if session is None:
        return None
    stream = get_stream(conn, stream_id)
    settings = effective(base, stream.project_settings, stream.settings)
    skip = _why_not(session, settings)
    review = ReviewRow(
        id=id_, project=project, stream=stream_id, generation=seq, asked_by=asked_by, created_at=created_at,
        completed_at=None,
    )  # fmt: skip
    return ReviewInput(
        review=review, session=session, subject=stream.subject, epoch=subject_epoch(conn, stream.subject),
        events=() if skip else events_of_session(conn, session), pages=() if skip else known_pages(conn, project),
        rejected=frozenset(r[0] for r in conn.rows(_REJECTED, {"project": project})), settings=settings, skip=skip,
        resting=conn.first(_RESTING, {"project": project, "stream": stream_id}) is not None,
        read_at=conn.now(),
    )  # fmt: skip


def _why_not(session: SessionRow, settings: Settings) -> str | None:
    if not settings.memory.enabled:
        return "memory.enabled is false"
    return session.trivial_because


def known_pages(conn: Connection, project: int) -> tuple[KnownPage, ...]:
    """The pages that somebody keeps true, the newest first."""
    return tuple(
        KnownPage(id=r[0], kind=r[1], slug=r[2], title=r[3], version=r[4], body=r[5], pinned=bool(r[6]), author=r[7],
                  updated_at_us=r[8])
        for r in conn.rows(_PAGES, {"project": project, "limit": PAGES_MAX})
    )  # fmt: skip


# ---- counted across sessions

# What is being erased is not counted any more, before it is destroyed.
_OF_OTHERS = """
from observations o join streams s on s.id = o.stream_id and s.erased_at is null
  join subjects u on u.id = s.subject_id and u.erased_at is null
where o.project_id = :project and o.signature in (select value from words(:signatures)) and o.stream_id <> :stream
  and not exists (select 1 from erasures x where x.done_at is null and x.stream_id = o.stream_id)"""
_CORRECTIONS = text("""
select distinct signature from (
  select signature from observations where project_id = :project and kind = 'correction' order by at desc limit :limit)
""")
_COUNTS = text(f"select o.signature, count(distinct o.stream_id), count(*) {_OF_OTHERS} group by 1")
_NEWEST = text(f"""
select kind, shape, stream_id, seq, quote, detail, at from (
  select *, row_number() over (partition by signature order by at desc, stream_id desc) as place from (
    select o.signature, o.kind, o.shape, o.stream_id, o.seq, o.quote, o.detail, o.at,
      row_number() over (partition by o.signature, o.stream_id order by o.at desc, o.seq desc) as nth {_OF_OTHERS})
  where nth = 1)
where place <= :most order by signature, place""")


def seen_with(conn: Connection, project: int, stream: int, own: Sequence[Observation]) -> dict[str, Seen]:
    """How often each signature was observed, in this session as it is now and in all others of the project.

    Of this session's signatures, and of corrections, which come again in other words.
    """
    recent = {r[0] for r in conn.rows(_CORRECTIONS, {"project": project, "limit": CORRECTIONS_MAX})}
    signatures = sorted(recent | {o.signature for o in own})
    given = {"project": project, "stream": stream, "signatures": json.dumps(signatures), "most": EVIDENCE_MAX}
    counts = {r[0]: (r[1], r[2]) for r in conn.rows(_COUNTS, given)}
    found: dict[str, list[Observation]] = {s: [] for s in signatures}
    for observation in (*reversed(own), *map(_observation, conn.rows(_NEWEST, given))):
        found[observation.signature].append(observation)
    return {s: _seen(shown, stream, *counts.get(s, (0, 0))) for s, shown in found.items() if shown}


def _observation(r: tuple[Any, ...]) -> Observation:
    return Observation(kind=r[0], shape=r[1], quote=Quote(stream=r[2], seq=r[3], text=r[4]), detail=r[5], at_us=r[6])


def _seen(shown: Sequence[Observation], stream: int, sessions: int, times: int) -> Seen:
    """`shown`: those of the session itself, newest first, then the newest of each other one; the counts are of those
    others."""
    here = [o for o in shown if o.quote.stream == stream]
    newest = shown[0]
    each = [*here[:1], *(o for o in shown if o.quote.stream != stream)]
    return Seen(
        kind=newest.kind, signature=newest.signature, shape=newest.shape, sessions=sessions + bool(here),
        times=times + len(here), quotes=tuple(o.quote for o in each[:EVIDENCE_MAX]),
        detail=next((o.detail for o in shown if o.detail), ""),
    )  # fmt: skip
