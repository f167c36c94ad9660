"""Deciding on proposals: each decision is one commit of page, state and change, and taken twice it is taken once."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import text

from everkept.domain.ids import row_id
from everkept.domain.pages import PageText
from everkept.domain.review.patch import patched, reversed_patch
from everkept.errors import Conflict
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.pages import NewPage, PageRow, delete_page, find_page, page_by_id, page_version, write_page
from everkept.store.proposal_checks import too_long
from everkept.store.proposals import REASON_CHARS_MAX, ProposalRow, get_proposal, list_proposals

AUTHOR = "review"
"""Of the versions that approvals and rollbacks make; their reason names the proposal and who decided."""
AUTOMATIC = "auto"
"""Who decides where the project's settings say `auto`."""
SIBLINGS_MAX = 200

_DECIDE = text("""
update proposals set state = :state, state_reason = :reason, decided_by = :by, decided_at = :now,
  page_id = coalesce(:page, page_id), version = coalesce(:version, version), previous = coalesce(:previous, previous)
where id = :id and state in ('staged', 'conflict')""")
_MISFIT = text("update proposals set state = 'conflict', state_reason = :reason where id = :id and state = 'staged'")
_ROLLED_BACK = text("""
update proposals set state = 'rolled_back', state_reason = :reason, decided_by = :by, decided_at = :now,
  undone_by = :version where id = :id and state = 'approved'""")
_REBASE = text("update proposals set base = :base where id = :id and state = 'staged'")
_EXPIRE = text("""
update proposals set state = 'expired', state_reason = 'nobody decided in time', decided_at = :now
where id in (select id from proposals where state = 'staged' and expires_at <= :now order by expires_at limit :limit)
""")


# ---- approving


def approve_proposal(conn: Connection, project: int, proposal: int, *, by: str, rebase: bool = False) -> ProposalRow:
    """The proposal as it stands afterwards: approved, with its page written in the same commit; or in conflict, with
    the reason, where the page moved on, is pinned or gone.

    `rebase` says that somebody looked at the page as it is now. Approved twice it is approved once.
    Raises Conflict where it was decided otherwise, NotFound.
    """
    row = get_proposal(conn, project, proposal)
    if row.state == "approved":
        return row
    _require_open(row)
    page = find_page(conn, project, row.slug, deleted=True)
    try:
        body = body_after(row, page, rebase=rebase)
    except Conflict as misfit:
        conn.run(_MISFIT, {"id": row.id, "reason": misfit.message})
        return get_proposal(conn, project, proposal)
    retires = row.action == "retire"
    written = delete_page(conn, project, row.slug) if retires else _write(conn, row, page, body, by)
    _carry_siblings(conn, row, written)
    conn.run(_DECIDE, {
        "id": row.id, "state": "approved", "reason": None, "by": by, "now": conn.now(), "page": written.id,
        "version": None if retires else written.version,
        "previous": None if page is None else page.version,
    })  # fmt: skip
    _tell(conn, row, "approved", {"page": row_id("pag", written.id), "version": written.version})
    return get_proposal(conn, project, proposal)


def body_after(row: ProposalRow, page: PageRow | None, *, rebase: bool) -> str:
    """The text that an approval would write over `page`. Raises Conflict, with words for a person."""
    if row.action == "create":
        if page is not None:
            gone = "a person deleted it" if page.deleted_at is not None else "it was made meanwhile"
            raise Conflict(f"there was no page {row.slug!r} when this was proposed; {gone}", slug=row.slug)
        return row.body
    if page is None or page.deleted_at is not None:
        raise Conflict(f"the page {row.slug!r} was deleted since", slug=row.slug)
    if page.pinned_at is not None:
        raise Conflict(f"the page {row.slug!r} is pinned: no proposal changes it", slug=row.slug)
    if page.version != row.base and not rebase:
        raise Conflict(
            f"the page {row.slug!r} moved on: it is at version {page.version}, and this was proposed on {row.base}",
            slug=row.slug, version=page.version,
        )  # fmt: skip
    body = patched(page.body, replace(row.draft, title=page.title))
    if long := too_long(body):
        raise Conflict(long, slug=row.slug)
    return body


def _write(conn: Connection, row: ProposalRow, page: PageRow | None, body: str, by: str) -> PageRow:
    written = write_page(conn, NewPage(
        project=row.project, kind=row.kind if page is None else page.kind, slug=row.slug,
        text=PageText(title=row.title if page is None else page.title, body=body), author=AUTHOR,
        reason=_reason(row, f"approved by {by}: {row.why}"), base=None if page is None else page.version,
        stream=row.stream if page is None else None,
    ))  # fmt: skip
    assert written is not None, "only what writes by itself is kept from a page"
    return written


def _reason(row: ProposalRow, what: str) -> str:
    return f"{row_id('prp', row.id)} {what}"[:REASON_CHARS_MAX]


def _carry_siblings(conn: Connection, row: ProposalRow, written: PageRow) -> None:
    """Proposals that were written on the same version are not in conflict with what this approval itself changed."""
    if row.base is None or row.action == "retire":
        return
    for sibling in list_proposals(conn, row.project, state="staged", slug=row.slug, limit=SIBLINGS_MAX):
        if sibling.id != row.id and sibling.base == row.base and _fits(sibling, written):
            conn.run(_REBASE, {"id": sibling.id, "base": written.version})


def _fits(row: ProposalRow, page: PageRow) -> bool:
    try:
        body_after(row, page, rebase=True)
    except Conflict:
        return False
    return True


# ---- rejecting, expiring


def reject_proposal(conn: Connection, project: int, proposal: int, *, by: str, reason: str | None) -> ProposalRow:
    """The same is not proposed again, however it is worded. Raises Conflict where it was decided otherwise."""
    row = get_proposal(conn, project, proposal)
    if row.state == "rejected":
        return row
    _require_open(row)
    conn.run(_DECIDE, {
        "id": row.id, "state": "rejected", "reason": reason, "by": by, "now": conn.now(), "page": None,
        "version": None, "previous": None,
    })  # fmt: skip
    _tell(conn, row, "rejected", {})
    return get_proposal(conn, project, proposal)


def expire_proposals(conn: Connection, _after: int, limit: int) -> tuple[int, int]:
    """(how many, 1 where there may be more). One that a person has to look at again does not expire."""
    gone = conn.run(_EXPIRE, {"now": conn.now(), "limit": limit})
    return gone, int(gone == limit)


# ---- rolling back


def roll_back_proposal(conn: Connection, project: int, proposal: int, *, by: str, reason: str | None) -> ProposalRow:
    """Undo what its approval did, as a new version of the page; later versions stay, but for its own words.

    Rolled back twice it is rolled back once. Raises Conflict where the page does not allow it any more, or where it
    was not approved; nothing is changed then.
    """
    row = get_proposal(conn, project, proposal)
    if row.state == "rolled_back":
        return row
    if row.state != "approved":
        raise Conflict(f"{row_id('prp', row.id)} is {row.state}, not approved: there is nothing to roll back")
    assert row.page is not None
    page = page_by_id(conn, project, row.page)
    if page is not None and page.pinned_at is not None:
        raise Conflict(f"the page {page.slug!r} is pinned; unpin it first", slug=page.slug)
    version = _undo(conn, row, page, by)
    conn.run(_ROLLED_BACK, {"id": row.id, "reason": reason, "by": by, "now": conn.now(), "version": version})
    _tell(conn, row, "rolled_back", {"page": row_id("pag", row.page), "version": version})
    return get_proposal(conn, project, proposal)


def _undo(conn: Connection, row: ProposalRow, page: PageRow | None, by: str) -> int | None:
    """The version that this made; None where the page is gone with it."""
    if page is None or (page.deleted_at is not None and row.action != "retire"):
        if row.action == "create":
            return None  # a person was faster
        raise Conflict(f"the page {row.slug!r} was deleted since; there is nothing to roll back", slug=row.slug)
    if row.previous is None:
        if page.version != row.version:
            raise Conflict(
                f"the page {page.slug!r} was made by this proposal and written to since (version {page.version});"
                " delete it by hand if it is to go", slug=page.slug, version=page.version,
            )  # fmt: skip
        delete_page(conn, row.project, page.slug)
        return None
    before = page_version(conn, page.id, row.previous)
    if row.action == "retire":
        if page.deleted_at is None:
            raise Conflict(f"somebody has brought the page {page.slug!r} back already", slug=page.slug)
        kept = PageText(title=before.title, body=before.body)
    elif page.version == row.version:
        kept = PageText(title=before.title, body=before.body)
    else:
        assert row.version is not None
        after = page_version(conn, page.id, row.version)
        kept = PageText(title=page.title, body=reversed_patch(before.body, after.body, page.body))
    written = write_page(conn, NewPage(
        project=row.project, kind=page.kind, slug=page.slug, text=kept, author=AUTHOR,
        reason=_reason(row, f"rolled back by {by}"), base=page.version,
    ))  # fmt: skip
    assert written is not None
    return written.version


# ---- what all have in common


def _require_open(row: ProposalRow) -> None:
    if not row.awaits:
        by = f" by {row.decided_by}" if row.decided_by else ""
        raise Conflict(
            f"{row_id('prp', row.id)} is {row.state}{by} already; nothing was changed",
            id=row_id("prp", row.id), state=row.state,
        )  # fmt: skip


def _tell(conn: Connection, row: ProposalRow, what: str, data: dict[str, object]) -> None:
    record_changes(conn, row.project, [
        NewChange(kind=f"proposal.{what}", ref=row_id("prp", row.id), stream=row.stream, data=data)
    ])  # fmt: skip
