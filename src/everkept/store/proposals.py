"""Proposals: improvements of pages that await a decision. Staging is here, deciding in `decisions`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from sqlalchemy import text

from everkept.config import Settings
from everkept.domain.ids import row_id
from everkept.domain.jobs import Schedule
from everkept.domain.pages import BODY_CHARS_MAX as PAGE_CHARS_MAX
from everkept.domain.pages import TITLE_CHARS_MAX, slug_of
from everkept.domain.review.patch import patched
from everkept.domain.review.values import (
    BODY_CHARS_MAX,
    EVIDENCE_MAX,
    QUOTE_CHARS_MAX,
    TARGET_KINDS,
    Action,
    ApprovalMode,
    Draft,
    ProposalState,
    Quote,
    Refusal,
    TargetKind,
)
from everkept.errors import Conflict, NotFound
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.effective import effective_of_project
from everkept.store.jobs import ensure_lane, schedule
from everkept.store.pages import PageRow, find_page, was_deleted

APPLY: Final = "apply_proposal"
"""The job that approves one where its project and kind say `auto`."""
REASON_CHARS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRow:
    id: int
    project: int
    review: int | None
    stream: int | None
    action: Action
    kind: TargetKind
    slug: str
    title: str
    section: str
    section_hash: str
    base: int | None
    body: str
    why: str
    confidence: float
    signature: str
    reviewer: str
    state: ProposalState
    state_reason: str | None
    decided_by: str | None
    created_at: int
    expires_at: int
    decided_at: int | None
    page: int | None
    version: int | None
    previous: int | None
    undone_by: int | None

    @property
    def draft(self) -> Draft:
        """What was proposed, without its evidence."""
        return Draft(
            action=self.action, kind=self.kind, slug=self.slug, title=self.title, body=self.body, section=self.section,
            section_hash=self.section_hash, base=self.base, why=self.why, confidence=self.confidence,
            signature=self.signature, evidence=(),
        )  # fmt: skip

    @property
    def awaits(self) -> bool:
        """Whether somebody is to decide."""
        return self.state in ("staged", "conflict")


_COLUMNS = """
select p.id, p.project_id, p.review_id, p.stream_id, p.action, p.kind, p.slug, p.title, p.section, p.section_hash,
  p.base, p.body, p.why, p.confidence, p.signature, p.reviewer, p.state, p.state_reason, p.decided_by, p.created_at,
  p.expires_at, p.decided_at, p.page_id, p.version, p.previous, p.undone_by
from proposals p where p.project_id = :project and not exists (
  select 1 from erasures x where x.done_at is null and x.project_id = p.project_id and (x.kind in ('project', 'subject')
    or x.stream_id = p.stream_id
    or exists (select 1 from proposal_quotes q where q.proposal_id = p.id and q.stream_id = x.stream_id)))
"""
_BY_ID = text(_COLUMNS + "and p.id = :id")
_CHOSEN = """and p.id < :before
  and (:state is null or p.state = :state or (:state = 'open' and p.state in ('staged', 'conflict')))
  and (:kind is null or p.kind = :kind) and (:slug is null or p.slug = :slug) order by p.id desc limit :limit"""
_LIST = text(_COLUMNS + _CHOSEN)
_QUOTES = text("""
select stream_id, seq, quote from proposal_quotes where proposal_id = :id order by stream_id desc, seq""")
_NEWEST = 2**63 - 1


def proposal_row(r: tuple[Any, ...]) -> ProposalRow:
    return ProposalRow(
        id=r[0], project=r[1], review=r[2], stream=r[3], action=r[4], kind=r[5], slug=r[6], title=r[7], section=r[8],
        section_hash=r[9], base=r[10], body=r[11], why=r[12], confidence=r[13], signature=r[14], reviewer=r[15],
        state=r[16], state_reason=r[17], decided_by=r[18], created_at=r[19], expires_at=r[20], decided_at=r[21],
        page=r[22], version=r[23], previous=r[24], undone_by=r[25],
    )  # fmt: skip


def get_proposal(conn: Connection, project: int, proposal: int) -> ProposalRow:
    """Raises NotFound."""
    row = conn.first(_BY_ID, {"project": project, "id": proposal})
    if row is None:
        name = row_id("prp", proposal)
        raise NotFound(f"there is no proposal {name} in this project", id=name)
    return proposal_row(row)


def list_proposals(
    conn: Connection, project: int, *, state: str | None = None, kind: str | None = None, slug: str | None = None,
    before: int | None = None, limit: int = 50,
) -> list[ProposalRow]:  # fmt: skip
    """Newest first; `open` are those that await a decision."""
    return [proposal_row(r) for r in conn.rows(_LIST, {
        "project": project, "state": state, "kind": kind, "slug": slug,
        "before": _NEWEST if before is None else before, "limit": limit})]  # fmt: skip


def evidence_of(conn: Connection, proposal: int) -> tuple[Quote, ...]:
    """Of the newest sessions first."""
    return tuple(Quote(stream=r[0], seq=r[1], text=r[2]) for r in conn.rows(_QUOTES, {"id": proposal}))


# ---- staging


_ADD = text("""
insert into proposals(project_id, review_id, stream_id, action, kind, slug, title, section, section_hash, base, body,
  why, confidence, signature, fingerprint, reviewer, state, created_at, expires_at)
values(:project, :review, :stream, :action, :kind, :slug, :title, :section, :section_hash, :base, :body, :why,
  :confidence, :signature, :fingerprint, :reviewer, 'staged', :now, :expires) returning id""")
_ADD_QUOTE = text("""
insert into proposal_quotes(proposal_id, stream_id, seq, quote) values(:proposal, :stream, :seq, :quote)""")
_SUPERSEDE = text("""
update proposals set state = 'superseded', state_reason = :reason, decided_at = :now
where project_id = :project and slug = :slug and id <> :id and state in ('staged', 'conflict')
  and (fingerprint = :fingerprint or (action = :action and action <> 'append' and section = :section))""")
_BEFORE = text("""
select p.id, p.state from proposals p where p.project_id = :project and p.fingerprint = :fingerprint
  and (p.action = 'retire') = (:action = 'retire') and (p.state in ('staged', 'rejected', 'rolled_back')
    or (p.state = 'approved' and exists (select 1 from pages g where g.id = p.page_id)))
order by p.id desc limit 1""")
_THERE = text("""
select e.seq from events e join streams s on s.id = e.stream_id
where e.stream_id = :stream and e.seq = :seq and s.project_id = :project and e.erased_at is null""")


def stage_drafts(
    conn: Connection, *, project: int, review: int | None, stream: int | None, drafts: Sequence[Draft], reviewer: str,
    settings: Settings,
) -> tuple[int, tuple[Refusal, ...]]:  # fmt: skip
    """(how many were staged, why the others were not). Each stands by itself: a bad one takes no sibling with it (I07).

    In the caller's commit, together with a job for each that needs nobody's approval. `settings` are the process's own;
    the project's are applied here.
    """
    own = effective_of_project(conn, settings, project)
    staged: list[int] = []
    refused: list[Refusal] = []
    for draft in drafts:
        page = find_page(conn, project, draft.slug, deleted=True)
        if page is not None:
            draft = replace(draft, title=page.title)
        reason = _why_not(conn, project, draft, page, own)
        if reason is not None:
            refused.append(Refusal(what=f"{draft.action} {draft.slug[:TITLE_CHARS_MAX]}", reason=reason))
            continue
        id_ = _stage(conn, project, review, stream, draft, reviewer, own)
        staged.append(id_)
        if mode_of(own, draft.kind) == "auto":
            schedule(conn, [_approval(conn, project, id_)])
    record_changes(conn, project, [
        NewChange(kind="proposal.staged", ref=row_id("prp", id_), stream=stream) for id_ in staged
    ])  # fmt: skip
    return len(staged), tuple(refused)


def mode_of(settings: Settings, kind: str) -> ApprovalMode:
    return cast(ApprovalMode, settings.get(f"proposals.{kind}"))


def _stage(
    conn: Connection, project: int, review: int | None, stream: int | None, draft: Draft, reviewer: str, own: Settings
) -> int:
    now = conn.now()
    given = {
        "project": project, "review": review, "stream": stream, "action": draft.action, "kind": draft.kind,
        "slug": draft.slug, "title": draft.title, "section": draft.section, "section_hash": draft.section_hash,
        "base": draft.base, "body": draft.body, "why": draft.why[:REASON_CHARS_MAX], "confidence": draft.confidence,
        "signature": draft.signature, "fingerprint": draft.fingerprint, "reviewer": reviewer, "now": now,
        "expires": now + int(own.proposals.expire_s * 1e6),
    }  # fmt: skip
    id_ = int(conn.scalar(_ADD, given))
    quotes = {(quote.stream, quote.seq): quote.text for quote in draft.evidence}
    conn.many(_ADD_QUOTE, [
        {"proposal": id_, "stream": place, "seq": seq, "quote": words} for (place, seq), words in quotes.items()
    ])  # fmt: skip
    conn.run(_SUPERSEDE, {**given, "id": id_, "reason": f"{row_id('prp', id_)} took its place"})
    return id_


def _approval(conn: Connection, project: int, proposal: int) -> Schedule:
    """One job a proposal, so that what becomes of one holds up no other."""
    return Schedule(
        kind=APPLY, key=str(proposal), project=project, lane=ensure_lane(conn, project, 0), due_at_us=conn.now(),
        args=json.dumps({"project": project, "proposal": proposal}),
    )  # fmt: skip


# ---- what is not staged, and why


def _why_not(conn: Connection, project: int, draft: Draft, page: PageRow | None, own: Settings) -> str | None:
    """The first thing that is wrong with it: by itself, with its page, with what was decided before."""
    return (
        _malformed(draft)
        or (f"proposals for {draft.kind} pages are off in this project" if mode_of(own, draft.kind) == "off" else None)
        or _off_target(conn, project, draft, page)
        or _decided_before(conn, project, draft)
        or _without_evidence(conn, project, draft)
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
    return f"the page would be longer than {PAGE_CHARS_MAX:,} characters" if len(whole) > PAGE_CHARS_MAX else None


def _decided_before(conn: Connection, project: int, draft: Draft) -> str | None:
    row = conn.first(_BEFORE, {"project": project, "fingerprint": draft.fingerprint, "action": draft.action})
    if row is None:
        return None
    name = row_id("prp", row[0])
    return {
        "staged": f"{name} proposes the same and awaits a decision",
        "approved": f"{name} proposed the same and was approved",
        "rejected": f"the same was rejected before ({name})",
        "rolled_back": f"the same was rolled back before ({name})",
    }[row[1]]


def _without_evidence(conn: Connection, project: int, draft: Draft) -> str | None:
    if not draft.evidence:
        return "nothing bears it out"
    if len(draft.evidence) > EVIDENCE_MAX or any(len(quote.text) > QUOTE_CHARS_MAX for quote in draft.evidence):
        return f"its evidence is longer than {EVIDENCE_MAX} quotes of {QUOTE_CHARS_MAX} characters"
    for quote in draft.evidence:
        if conn.first(_THERE, {"stream": quote.stream, "seq": quote.seq, "project": project}) is None:
            return "what it rests on is not there any more"
    return None
