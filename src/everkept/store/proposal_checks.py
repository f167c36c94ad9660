"""What keeps a draft from being staged: the first thing that is wrong with it, in words for a person."""

from __future__ import annotations

import json
from typing import Final, cast

from sqlalchemy import text

from everkept.config import Settings
from everkept.domain.ids import row_id
from everkept.domain.pages import TITLE_CHARS_MAX, slug_of
from everkept.domain.review.patch import patched
from everkept.domain.review.values import (
    BODY_CHARS_MAX,
    EVIDENCE_MAX,
    PAGE_CHARS_MAX,
    QUOTE_CHARS_MAX,
    TARGET_KINDS,
    ApprovalMode,
    Draft,
    Quote,
)
from everkept.errors import Conflict
from everkept.store.connection import Connection
from everkept.store.pages import PageRow, was_deleted

CHECKOUT: Final = "checkout"
"""The reviewer that looked where the files are: what it saw there bears it out, with or without words of a session."""

_BEFORE = text("""
select p.id, p.state from proposals p where p.project_id = :project
  and (p.fingerprint = :fingerprint or (p.state in ('rejected', 'rolled_back') and p.kind = :kind
    and p.action = 'create' and :action = 'create' and p.signature in (select value from words(:signatures))))
  and (p.action = 'retire') = (:action = 'retire') and (p.state in ('rejected', 'rolled_back')
    or (p.state = 'approved' and exists (select 1 from pages g where g.id = p.page_id)))
order by p.id desc limit 1""")
_THERE = text("""
select e.seq from events e join streams s on s.id = e.stream_id
where e.stream_id = :stream and e.seq = :seq and s.project_id = :project and e.erased_at is null""")


def mode_of(settings: Settings, kind: str) -> ApprovalMode:
    return cast(ApprovalMode, settings.get(f"proposals.{kind}"))


def reason_against(
    conn: Connection, project: int, draft: Draft, page: PageRow | None, reviewer: str, own: Settings
) -> str | None:
    """The first thing that is wrong with it: by itself, with its page, with what was decided before; None: nothing."""
    return (
        _malformed(draft)
        or (f"proposals for {draft.kind} pages are off in this project" if mode_of(own, draft.kind) == "off" else None)
        or _off_target(conn, project, draft, page)
        or _decided_before(conn, project, draft)
        or _without_evidence(conn, project, draft, seen_outside=reviewer == CHECKOUT)
    )


def _malformed(draft: Draft) -> str | None:
    if draft.kind not in TARGET_KINDS:
        return f"{draft.kind} is not a kind of page that is proposed"
    if not draft.slug or draft.slug != slug_of(draft.slug):
        return "its page has no name"
    if not draft.title.strip() or len(draft.title) > TITLE_CHARS_MAX:
        return f"a title has 1 to {TITLE_CHARS_MAX} characters, and this one {len(draft.title):,}"
    if draft.action != "retire" and not draft.body.strip():
        return "it says nothing"
    if len(draft.body) > BODY_CHARS_MAX:
        return f"it is too large: {len(draft.body):,} characters, where {BODY_CHARS_MAX:,} are allowed"
    if draft.action in ("add_section", "replace_section") and (not draft.section.strip() or "\n" in draft.section):
        return "it names no section"
    if not 0 <= draft.confidence <= 1:
        return f"its confidence is {draft.confidence}, not between 0 and 1"
    return None


def _off_target(conn: Connection, project: int, draft: Draft, page: PageRow | None) -> str | None:
    if draft.action == "create":
        if page is None:
            return "a person deleted this page" if was_deleted(conn, project, draft.slug) else None
        return "there is a page of this name" if page.deleted_at is None else "a person deleted this page"
    if page is None or page.deleted_at is not None:
        return "there is no such page"
    if page.kind not in TARGET_KINDS:
        return f"it is a {page.kind} page, which no proposal changes"
    if page.pinned_at is not None:
        return "the page is pinned"
    if draft.base is None:
        return "the reviewer had not seen the page"
    try:
        whole = patched(page.body, draft)
    except Conflict as misfit:
        return misfit.message
    return too_long(whole)


def too_long(body: str) -> str | None:
    """Why no proposal changes a page to this text, or takes a page with it away; None where one may."""
    if len(body) <= PAGE_CHARS_MAX:
        return None
    return f"the page has {len(body):,} characters with it; proposals change pages of at most {PAGE_CHARS_MAX:,}"


def _decided_before(conn: Connection, project: int, draft: Draft) -> str | None:
    """What a new page would be called is wording: one that answers the same was decided by its signature."""
    row = conn.first(_BEFORE, {
        "project": project, "fingerprint": draft.fingerprint, "action": draft.action, "kind": draft.kind,
        "signatures": json.dumps([draft.signature, *draft.alike]),
    })  # fmt: skip
    if row is None:
        return None
    name = row_id("prp", row[0])
    return {
        "approved": f"{name} proposed the same and was approved",
        "rejected": f"the same was rejected before ({name})",
        "rolled_back": f"the same was rolled back before ({name})",
    }[row[1]]


def _without_evidence(conn: Connection, project: int, draft: Draft, *, seen_outside: bool) -> str | None:
    if not draft.evidence and not seen_outside:
        return "nothing bears it out"
    if len(draft.evidence) > EVIDENCE_MAX or any(len(quote.text) > QUOTE_CHARS_MAX for quote in draft.evidence):
        return f"its evidence is longer than {EVIDENCE_MAX} quotes of {QUOTE_CHARS_MAX} characters"
    if not all(is_there(conn, project, quote) for quote in draft.evidence):
        return "what it rests on is not there any more"
    return None


def is_there(conn: Connection, project: int, quote: Quote) -> bool:
    """Whether the event that it quotes is in the project, and was not erased."""
    return conn.first(_THERE, {"stream": quote.stream, "seq": quote.seq, "project": project}) is not None
