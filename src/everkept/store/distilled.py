"""Knowledge distilled from sessions: what a session's pages are made of, and the commit that writes them.

A page rests on the session that it was distilled from, and on no other: its stream is what an erase goes by (G10). So a
session updates only pages of its own; what it has to add to another's, or to one made by hand, stands in a new page.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import text

from everkept.config import Settings
from everkept.domain.digest.values import SessionEvent
from everkept.errors import SubjectMoved
from everkept.store.connection import Connection
from everkept.store.digests import NEWEST_MAX, events_of_session
from everkept.store.effective import effective
from everkept.store.hidden import SHOWN_PAGE
from everkept.store.journal import subject_epoch
from everkept.store.pages import NewPage, PageRow, find_page, write_page
from everkept.store.projects import all_secrets
from everkept.store.sessions import SessionRow, find_session
from everkept.store.streams import get_stream
from everkept.store.windows import LAST_WINDOW, find_window, rests

AUTHOR: Final = "distiller"
READ_MAX: Final = 500
HEAD_CHARS: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A page that somebody keeps true, in short."""

    id: int
    slug: str
    kind: str
    title: str
    head: str
    distilled: bool
    """Its newest version was distilled: no hand has kept it since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilInput:
    session: SessionRow
    hash: str
    """Of the digest: what the question is addressed by."""
    window: int
    """Its last."""
    subject: int
    epoch: int
    events: Sequence[SessionEvent]
    """Of the session alone: what a sub-agent said is erased with the sub-agent's stream."""
    own: Sequence[PageRow]
    """Pages that were distilled from it before."""
    others: Sequence[Neighbour]
    """The newest first, at most `READ_MAX`."""
    settings: Settings


_NEWER = text("""
select count(*) from (
  select 1 from sessions where project_id = :project and stream_id > :stream and parent is null and genuine > 0
  limit :limit)""")


_OWN = text("""
select slug from pages where project_id = :project and stream_id = :stream and kind not in ('session', 'slot')
  and deleted_at is null and version > 0 order by id""")
_OTHERS = text(f"""
select g.id, g.slug, g.kind, g.title, substr(v.body, 1, :chars), v.author
from pages g join page_versions v on v.page_id = g.id and v.version = g.version
  join subjects u on u.id = g.subject_id and u.erased_at is null
where g.project_id = :project and g.kind not in ('session', 'slot') and g.deleted_at is null
  and g.superseded_by is null and coalesce(g.stream_id, 0) <> :stream
  and {SHOWN_PAGE}
order by g.updated_at desc, g.id desc limit :limit""")


def is_outdated(conn: Connection, project: int, stream_id: int) -> bool:
    """Many sessions of the project came after it: an import of years is not paid for whole."""
    newer = conn.scalar(_NEWER, {"project": project, "stream": stream_id, "limit": NEWEST_MAX})
    return int(newer or 0) == NEWEST_MAX


def distil_input(conn: Connection, project: int, stream_id: int, base: Settings) -> DistilInput | None:
    """None where there is nothing to distil: the session was erased, is trivial, a sub-agent's, or waits for its digest
    to be made again, or memory was switched off.
    """
    session = find_session(conn, project, stream_id)
    if session is None or session.parent is not None or session.trivial_because is not None or not session.digest_hash:
        return None
    stream = get_stream(conn, stream_id)
    settings = effective(base, stream.project_settings, stream.settings)
    found = conn.scalar(LAST_WINDOW, {"stream": stream_id})
    window = None if found is None else find_window(conn, found)
    if window is None or rests(conn, window) or not settings.memory.enabled:
        return None
    own = [find_page(conn, project, r[0]) for r in conn.rows(_OWN, {"project": project, "stream": stream_id})]
    given = {"project": project, "stream": stream_id, "chars": HEAD_CHARS, "limit": READ_MAX}
    others = [
        Neighbour(id=r[0], slug=r[1], kind=r[2], title=r[3], head=r[4], distilled=r[5] == AUTHOR)
        for r in conn.rows(_OTHERS, given)
    ]
    return DistilInput(
        session=session, hash=session.digest_hash, window=window.id, subject=stream.subject,
        epoch=subject_epoch(conn, stream.subject), events=events_of_session(conn, session),
        own=[page for page in own if page is not None], others=others, settings=settings,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDistilled:
    """What is to be committed. A page with a `base` is an update of one that was there."""

    project: int
    subject: int
    epoch: int
    stream: int
    window: int
    pages: Sequence[NewPage]
    rejected: str
    """What was not taken, each with its place in the reply and the reason, as JSON; empty where all was."""


# A session has no facts: that time moves with what was rejected, which is thereby younger than an erase before it.
_REJECTED = text("""
update slices set rejected = nullif(:rejected, ''), facts_at = :now
where window_id = :window and slice = 0 and coalesce(rejected, '') <> :rejected""")


def write_distilled(conn: Connection, new: NewDistilled) -> None:
    """Write the pages, and keep what was not taken with the reasons.

    Raises SubjectMoved where something was erased or a page changed since the job read it: nothing is written, and the
    job runs again on its kept reply.
    """
    if subject_epoch(conn, new.subject) != new.epoch:
        raise SubjectMoved("something was erased while the session was distilled; the job runs again on what remains")
    for page in new.pages:
        if page.base is not None:
            _require_base(conn, page)
        write_page(conn, page if page.base is not None else _named(conn, page))
    conn.run(_REJECTED, {"window": new.window, "rejected": new.rejected, "now": conn.now()})


def _require_base(conn: Connection, page: NewPage) -> None:
    there = find_page(conn, page.project, page.slug, deleted=True)
    if there is None or (there.deleted_at is None and there.version != page.base):
        raise SubjectMoved(f"the page {page.slug!r} changed while its session was distilled; the job runs again")


def _named(conn: Connection, page: NewPage) -> NewPage:
    """Under a slug of its own, with the source by which it is known again, also after a person deleted it (E03)."""
    there = find_page(conn, page.project, page.slug, deleted=True)
    taken = there is not None and there.deleted_at is None and (there.stream != page.stream or there.kind == "session")
    slug = f"{page.slug}-{page.stream}" if taken else page.slug
    return replace(page, slug=slug, source=_source(conn, page))


_KNOWN = text("select 1 from pages where project_id = :project and source = :source")


def _source(conn: Connection, page: NewPage) -> str:
    """Keyed, so that it says nothing of a page whose words were erased; as it is known already, else by today's key."""
    hashes = [
        hashlib.blake2b(page.slug.encode(), key=secret[:64], digest_size=12).hexdigest()
        for secret in all_secrets(conn, page.project)
    ]
    sources = [f"distilled:{page.stream}:{name}" for name in hashes]
    known = (s for s in sources if conn.first(_KNOWN, {"project": page.project, "source": s}) is not None)
    return next(known, sources[0])


def rejected_json(items: Sequence[tuple[str, str]]) -> str:
    return json.dumps([{"item": item, "reason": reason} for item, reason in items]) if items else ""
