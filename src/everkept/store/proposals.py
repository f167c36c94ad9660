"""Proposals: improvements of pages that await a decision. Staging is here, deciding in `decisions`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from sqlalchemy import text

from everkept.config import Settings
from everkept.domain.ids import row_id
from everkept.domain.jobs import Schedule
from everkept.domain.pages import TITLE_CHARS_MAX
from everkept.domain.review.values import (
    EVIDENCE_MAX,
    Action,
    Draft,
    ProposalState,
    Quote,
    Refusal,
    TargetKind,
)
from everkept.errors import NotFound
from everkept.store.changes import NewChange, record_changes
from everkept.store.connection import Connection
from everkept.store.effective import effective_of_project
from everkept.store.hidden import SHOWN_PROPOSAL
from everkept.store.jobs import schedule
from everkept.store.lanes import ensure_lane
from everkept.store.pages import find_page
from everkept.store.proposal_checks import mode_of, reason_against

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
    sessions: int
    """Of which there are words that bear it out."""

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


_COLUMNS = f"""
select p.id, p.project_id, p.review_id, p.stream_id, p.action, p.kind, p.slug, p.title, p.section, p.section_hash,
  p.base, p.body, p.why, p.confidence, p.signature, p.reviewer, p.state, p.state_reason, p.decided_by, p.created_at,
  p.expires_at, p.decided_at, p.page_id, p.version, p.previous, p.undone_by,
  (select count(distinct q.stream_id) from proposal_quotes q where q.proposal_id = p.id)
from proposals p where p.project_id = :project and {SHOWN_PROPOSAL}
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
        page=r[22], version=r[23], previous=r[24], undone_by=r[25], sessions=r[26],
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
        reason = reason_against(conn, project, draft, page, reviewer, own)
        if reason is not None:
            refused.append(_refusal(draft, reason))
            continue
        waiting = _waiting(conn, project, review, draft)
        if waiting is not None:
            told = _grow(conn, waiting.id, draft, reviewer, own)
            if waiting.review is None or waiting.review != review or waiting.id in staged:
                refused.append(_refusal(draft, told))
            continue  # else an earlier run of this review has staged it
        id_ = _stage(conn, project, review, stream, draft, reviewer, own)
        staged.append(id_)
        if mode_of(own, draft.kind) == "auto":
            schedule(conn, [_approval(conn, project, id_)])
    record_changes(conn, project, [
        NewChange(kind="proposal.staged", ref=row_id("prp", id_), stream=stream) for id_ in staged
    ])  # fmt: skip
    return len(staged), tuple(refused)


def _refusal(draft: Draft, reason: str) -> Refusal:
    return Refusal(what=f"{draft.action} {draft.slug[:TITLE_CHARS_MAX]}", reason=reason)


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
    _keep_quotes(conn, id_, draft.evidence)
    conn.run(_SUPERSEDE, {**given, "id": id_, "reason": f"{row_id('prp', id_)} took its place"})
    return id_


def _approval(conn: Connection, project: int, proposal: int) -> Schedule:
    """One job a proposal, so that what becomes of one holds up no other."""
    return Schedule(
        kind=APPLY, key=str(proposal), project=project, lane=ensure_lane(conn, project, 0), due_at_us=conn.now(),
        args=json.dumps({"project": project, "proposal": proposal}),
    )  # fmt: skip


# ---- what awaits a decision already, and is seen again

_WAITING = text("""
select p.id, p.review_id from proposals p where p.project_id = :project and p.state = 'staged' and p.kind = :kind
  and (p.action = 'retire') = (:action = 'retire') and p.signature in (select value from words(:signatures))
  and ((p.slug = :slug and p.section = :section)
    or (p.action = 'create' and :action = 'create' and p.review_id <> :review))
order by p.id limit 1""")
_GROW = text("""
update proposals set confidence = case when confidence < :confidence then :confidence else confidence end,
  why = case when reviewer = :reviewer then :why else why end, expires_at = :expires where id = :id""")


class _Waiting(NamedTuple):
    id: int
    review: int | None


def _waiting(conn: Connection, project: int, review: int | None, draft: Draft) -> _Waiting | None:
    """The proposal that answers the same: about the same part of a page, or a new page that an earlier review would
    call otherwise, for what a page would be called is wording."""
    found = conn.first(_WAITING, {
        "project": project, "review": review, "kind": draft.kind, "action": draft.action, "slug": draft.slug,
        "section": draft.section, "signatures": json.dumps([draft.signature, *draft.alike]),
    })  # fmt: skip
    return None if found is None else _Waiting(*found)


def _grow(conn: Connection, proposal: int, draft: Draft, reviewer: str, own: Settings) -> str:
    """More bears it out, and it waits anew; its words stay as somebody may have read them. What became of the draft."""
    known = {(quote.stream, quote.seq) for quote in evidence_of(conn, proposal)}
    new = [quote for quote in draft.evidence if (quote.stream, quote.seq) not in known][: EVIDENCE_MAX - len(known)]
    _keep_quotes(conn, proposal, new)
    conn.run(_GROW, {
        "id": proposal, "confidence": draft.confidence, "reviewer": reviewer, "why": draft.why[:REASON_CHARS_MAX],
        "expires": conn.now() + int(own.proposals.expire_s * 1e6),
    })  # fmt: skip
    more = f", now with {len(new)} more quote{'' if len(new) == 1 else 's'}" if new else ""
    return f"{row_id('prp', proposal)} proposes the same and awaits a decision{more}"


def _keep_quotes(conn: Connection, proposal: int, evidence: Sequence[Quote]) -> None:
    quotes = {(quote.stream, quote.seq): quote.text for quote in evidence}
    conn.many(_ADD_QUOTE, [
        {"proposal": proposal, "stream": place, "seq": seq, "quote": words} for (place, seq), words in quotes.items()
    ])  # fmt: skip


# ---- its page is erased

_ABOUT = """
from proposals p where p.project_id = :project and p.slug = (select g.slug from pages g where g.id = :page)"""
_DROP_QUOTES_ABOUT = text(f"""
delete from proposal_quotes where proposal_id in (select p.id {_ABOUT} and p.state <> 'rejected')""")
_DROP_ABOUT = text(f"delete from proposals where id in (select p.id {_ABOUT} and p.state <> 'rejected')")
_SILENCE_ABOUT = text(f"""
update proposals set slug = '', title = '', section = '', body = '', why = '', state_reason = null
where id in (select p.id {_ABOUT})""")


def forget_proposals_about(conn: Connection, project: int, page: int) -> None:
    """They are called as the page is, and quote it. Of one that was rejected the fingerprint stays, and not a word."""
    for statement in (_DROP_QUOTES_ABOUT, _DROP_ABOUT, _SILENCE_ABOUT):
        conn.run(statement, {"project": project, "page": page})
