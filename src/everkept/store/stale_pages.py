"""What checkouts do not have any more of what pages name: the first look is kept, and a later one proposes (G14)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import text

from everkept.config import Settings
from everkept.domain.review.stale import APART_US
from everkept.domain.review.values import Draft, Refusal
from everkept.store.connection import Connection
from everkept.store.project_names import shown
from everkept.store.proposal_checks import CHECKOUT, is_there
from everkept.store.proposals import stage_drafts

PAGES_PER_CHUNK: Final = 100
STALE_PER_CHUNK: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLook:
    """One page as a checkout was looked at for what it names."""

    page: int
    version: int
    gone: tuple[int, ...]
    """Places of what was gone among the names in this version, ascending."""
    draft: Draft | None
    """What follows if the same is found again, a day later."""


_PAGE = text("""
select stream_id from pages where id = :page and project_id = :project and version = :version and deleted_at is null""")
_BEFORE = text("select gone, first_at from page_looks where page_id = :page and version = :version")
_FIRST = text("""
insert into page_looks(page_id, version, gone, first_at) values(:page, :version, :gone, :now)
on conflict(page_id) do update set version = excluded.version, gone = excluded.gone, first_at = excluded.first_at""")
_FOUND = text("delete from page_looks where page_id = :page")


def note_looks(
    conn: Connection, project: int, looks: Sequence[PageLook], settings: Settings
) -> tuple[int, int, tuple[Refusal, ...]]:
    """One chunk: (pages to be looked for once more, proposals staged, why others were not).

    Less than a day later, or where other things are gone by now, nothing is proposed. A page that was changed since it
    was looked for, or is in another project, is passed by. `settings` are the process's own.
    """
    waiting = staged = 0
    refused: list[Refusal] = []
    for look in looks:
        page = conn.first(_PAGE, {"page": look.page, "project": project, "version": look.version})
        if page is None:
            continue
        if not _is_second(conn, look):
            waiting += bool(look.gone)
        elif look.draft is not None:
            more, others = _propose(conn, project, page[0], look.draft, settings)
            staged, refused = staged + more, [*refused, *others]
    return waiting, staged, tuple(refused)


def _is_second(conn: Connection, look: PageLook) -> bool:
    """Whether the same was gone a day ago, or longer; else this look is the first one, if anything is gone."""
    given = {"page": look.page, "version": look.version, "gone": json.dumps(look.gone), "now": conn.now()}
    if not look.gone:
        conn.run(_FOUND, given)
        return False
    before = conn.first(_BEFORE, given)
    # One that was later than now was so before the clock was set back: it counts from now on.
    if before is None or before[0] != given["gone"] or before[1] > conn.now():
        conn.run(_FIRST, given)
        return False
    return bool(conn.now() - before[1] >= APART_US)


def _propose(
    conn: Connection, project: int, stream: int | None, draft: Draft, settings: Settings
) -> tuple[int, tuple[Refusal, ...]]:
    """`stream`: the session that the page came from; what was said of the page goes with it."""
    there = tuple(quote for quote in draft.evidence if is_there(conn, project, quote))
    return stage_drafts(
        conn, project=project, review=None, stream=stream, drafts=[replace(draft, evidence=there)], reviewer=CHECKOUT,
        settings=settings,
    )  # fmt: skip


_WORKTREES = text(f"""
select {shown("p")}, x.worktree from sessions x join projects p on p.id = x.project_id and p.erased_at is null
where x.worktree is not null and x.last_event_at >= :since group by p.id, x.worktree
order by max(x.last_event_at) desc limit :limit""")


def recent_worktrees(conn: Connection, since_us: int, limit: int) -> list[tuple[str, str]]:
    """(project, folder) in which agents were at work since then, the last ones first."""
    return [(r[0], r[1]) for r in conn.rows(_WORKTREES, {"since": since_us, "limit": limit})]
