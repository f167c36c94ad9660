"""What came of approved proposals: counted from what reviews observed, before the approval and since."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from everkept.config import Settings
from everkept.domain.ids import row_id
from everkept.domain.review.outcome import Counted, Ratio, in_words, ratio_of, verdict_of
from everkept.domain.review.values import EVIDENCE_MAX, Draft, Quote
from everkept.store.connection import Connection
from everkept.store.pages import page_by_id
from everkept.store.proposals import ProposalRow, get_proposal, list_proposals, stage_drafts

REVIEWER = "outcome"
"""Who proposes that a page goes because it did not help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRow:
    proposal: ProposalRow
    before: Counted
    since: Counted
    shown_in: int
    """Sessions since that were shown the page."""
    ratio: Ratio | None

    @property
    def words(self) -> str:
        return in_words(self.before, self.since, self.ratio)


# A session is before or since by its end, whole: one that was at work when the rule came could not follow it all along.
_SESSIONS = text("""
select count(case when ended < :at then 1 end), count(case when ended >= :at then 1 end) from (
  select max(coalesce(g.ended_at, g.finished_at)) as ended from reviews r
  join generations g on g.project_id = r.project_id and g.seq = r.generation
  where r.project_id = :project and r.completed_at is not null group by r.stream_id) q""")
_OBSERVED = text("""
select sum(case when ended < :at then times else 0 end), count(case when ended < :at then 1 end),
  sum(case when ended >= :at then times else 0 end), count(case when ended >= :at then 1 end) from (
  select o.times, max(coalesce(g.ended_at, g.finished_at)) as ended from (
    select stream_id, count(*) as times from observations
    where project_id = :project and signature = :signature group by stream_id) o
  join reviews r on r.stream_id = o.stream_id and r.project_id = :project and r.completed_at is not null
  join generations g on g.project_id = r.project_id and g.seq = r.generation group by o.stream_id, o.times) q""")
_SHOWN = text("""
select count(*) from (select distinct o.agent, o.native_id from offers o
  where o.project_id = :project and o.shown_at >= :at
    and exists (select 1 from words(o.items) i where i.value = :page or i.value like :page || '@%')) q""")


def outcome_of(conn: Connection, row: ProposalRow) -> OutcomeRow:
    """Of an approved proposal."""
    assert row.decided_at is not None
    given = {"project": row.project, "at": row.decided_at, "signature": row.signature}
    sessions = [int(n or 0) for n in conn.first(_SESSIONS, given) or (0, 0)]
    times = [int(n or 0) for n in conn.first(_OBSERVED, given) or (0, 0, 0, 0)]
    before = Counted(times=times[0], with_it=times[1], sessions=sessions[0])
    since = Counted(times=times[2], with_it=times[3], sessions=sessions[1])
    page = "" if row.page is None else row_id("pag", row.page)
    return OutcomeRow(
        proposal=row, before=before, since=since, shown_in=int(conn.scalar(_SHOWN, {**given, "page": page})),
        ratio=ratio_of(before, since),
    )  # fmt: skip


def outcomes_of(conn: Connection, project: int, limit: int) -> list[OutcomeRow]:
    """Of what was approved and still stands, the newest first. What retires a page answers nothing of its own."""
    approved = list_proposals(conn, project, state="approved", limit=limit)
    return [outcome_of(conn, row) for row in approved if row.action != "retire"]


_STATES = text("select state, count(*) from proposals where project_id = :project group by state")


def count_by_state(conn: Connection, project: int) -> dict[str, int]:
    return dict(conn.rows(_STATES, {"project": project}))


# ---- what does not help is proposed to go

_NEXT = text("""
select p.id, p.project_id from proposals p join projects o on o.id = p.project_id and o.erased_at is null
where p.state = 'approved' and p.action = 'create' and p.id > :after order by p.id limit :limit""")
_SINCE = text("""
select stream_id, seq, quote from observations where project_id = :project and signature = :signature and at >= :at
order by at desc limit :limit""")


def propose_retirements(conn: Connection, settings: Settings, after: int, limit: int) -> tuple[int, int]:
    """One chunk: pages that were shown and surely did not help are proposed to go; (how many, where to go on).

    Only pages that a proposal made: what one added to a page of others is taken back by hand, if at all.
    """
    proposed = 0
    rows = conn.rows(_NEXT, {"after": after, "limit": limit})
    for proposal, project in rows:
        proposed += _propose_retirement(conn, project, proposal, settings)
    return proposed, rows[-1][0] if len(rows) == limit else 0


def _propose_retirement(conn: Connection, project: int, proposal: int, settings: Settings) -> int:
    row = get_proposal(conn, project, proposal)
    page = None if row.page is None else page_by_id(conn, project, row.page)
    if page is None or page.deleted_at is not None:
        return 0
    outcome = outcome_of(conn, row)
    if not outcome.shown_in or verdict_of(outcome.since, outcome.ratio) not in ("does_not_help", "worse"):
        return 0
    quotes = conn.rows(_SINCE, {
        "project": project, "signature": row.signature, "at": row.decided_at, "limit": EVIDENCE_MAX})  # fmt: skip
    draft = Draft(
        action="retire", kind=row.kind, slug=page.slug, title=page.title, body="", base=page.version,
        why=outcome.words, confidence=1.0, signature=row.signature,
        evidence=tuple(Quote(stream=r[0], seq=r[1], text=r[2]) for r in quotes),
    )  # fmt: skip
    staged, _ = stage_drafts(
        conn, project=project, review=None, stream=None, drafts=[draft], reviewer=REVIEWER, settings=settings
    )
    return staged
