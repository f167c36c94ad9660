"""Proposals: what awaits a decision, deciding it, undoing it, and what came of it."""

from __future__ import annotations

from collections.abc import Callable

from everkept.api import review_views as r
from everkept.api import views as v
from everkept.api.agents import page_view
from everkept.api.base import Cases
from everkept.api.present import bounded, cursor_of, moment, read_cursor, when
from everkept.capture.redaction import cleaned
from everkept.domain.ids import event_id, parse_row_id, row_id
from everkept.domain.review.difference import difference
from everkept.domain.review.outcome import verdict_of
from everkept.domain.review.values import PROPOSAL_STATES, TARGET_KINDS, Quote
from everkept.errors import Conflict, InvalidInput
from everkept.store.connection import Connection
from everkept.store.decisions import approve_proposal, body_after, reject_proposal, roll_back_proposal
from everkept.store.outcomes import OutcomeRow, count_by_state, outcomes_of
from everkept.store.pages import PageRow, find_page, page_by_id, page_version, pin_page
from everkept.store.proposals import ProposalRow, evidence_of, get_proposal, list_proposals

WAITING = ("staged", "conflict")
REASON_CHARS_MAX = 1_000
OUTCOMES_MAX = 100


class Proposals(Cases):
    """Improvements of pages that reviews propose."""

    async def list_proposals(
        self, *, state: str | None = "open", kind: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> v.Page[r.Proposal]:
        """Newest first, without their bodies; `open` are those that await a decision, None are all."""
        bounded(limit, "limit", 1, 1000)
        _known(state, "state", ("open", *PROPOSAL_STATES))
        _known(kind, "kind", TARGET_KINDS)

        def read(conn: Connection) -> list[ProposalRow]:
            return list_proposals(
                conn, self._project_id, state=state, kind=kind, before=read_cursor(cursor), limit=limit + 1
            )

        rows = await self._store.read(read)
        following = cursor_of(rows[limit - 1].id) if len(rows) > limit else None
        return v.Page(items=[proposal_view(row) for row in rows[:limit]], next_cursor=following)

    async def get_proposal(self, proposal_id: str) -> r.Proposal:
        """With its evidence, and what it changes or has changed. Raises NotFound."""
        number = parse_row_id("prp", proposal_id)

        def read(conn: Connection) -> r.Proposal:
            return _whole(conn, get_proposal(conn, self._project_id, number))

        return await self._store.read(read)

    async def approve_proposal(self, proposal_id: str, *, by: str = "hand", rebase: bool = False) -> r.Proposal:
        """Write its page and note who decided, in one commit; approved twice, it is approved once.

        `rebase`: somebody has looked at the page as it is now. Raises Conflict where the page does not allow it: the
        proposal then waits in the state `conflict`, with the reason.
        """

        def decide(conn: Connection, number: int) -> ProposalRow:
            return approve_proposal(conn, self._project_id, number, by=by, rebase=rebase)

        decided = await self._decide(proposal_id, by, decide)
        if decided.state == "conflict":
            raise Conflict(f"{decided.id} was not approved: {decided.reason}", id=decided.id, state=decided.state)
        return decided

    async def reject_proposal(self, proposal_id: str, *, by: str = "hand", reason: str | None = None) -> r.Proposal:
        """It is not proposed again, however it is worded. Raises Conflict where it was decided otherwise."""
        why = _reason(reason)

        def decide(conn: Connection, number: int) -> ProposalRow:
            return reject_proposal(conn, self._project_id, number, by=by, reason=why)

        return await self._decide(proposal_id, by, decide)

    async def roll_back_proposal(self, proposal_id: str, *, by: str = "hand", reason: str | None = None) -> r.Proposal:
        """Undo what its approval did as a new version of the page; later changes stay. Raises Conflict."""
        why = _reason(reason)

        def decide(conn: Connection, number: int) -> ProposalRow:
            return roll_back_proposal(conn, self._project_id, number, by=by, reason=why)

        return await self._decide(proposal_id, by, decide)

    async def _decide(self, proposal_id: str, by: str, decide: Callable[[Connection, int], ProposalRow]) -> r.Proposal:
        if not by.strip() or len(by) > 255:
            raise InvalidInput("by has 1 to 255 characters", field="by", limit=255)
        number = parse_row_id("prp", proposal_id)

        await self._write(decide, number)
        return await self.get_proposal(proposal_id)  # what differs is found out beside the writer, not in its lock

    async def pin_page(self, slug: str, *, pinned: bool = True) -> v.KnowledgePage:
        """Keep a page from proposals, or let them at it again."""

        def write(conn: Connection) -> PageRow:
            return pin_page(conn, self._project_id, slug, pinned=pinned)

        return page_view(await self._write(write), body=False)

    async def proposal_report(self, *, limit: int = OUTCOMES_MAX) -> r.ProposalReport:
        """Of each approved proposal whether it helped, the newest first, and how the others stand."""
        bounded(limit, "limit", 1, 1000)

        def read(conn: Connection) -> r.ProposalReport:
            counts = count_by_state(conn, self._project_id)
            return r.ProposalReport(
                outcomes=[_outcome_view(o) for o in outcomes_of(conn, self._project_id, limit)],
                open=sum(counts.get(state, 0) for state in WAITING),
                decided={state: n for state, n in counts.items() if state not in WAITING},
            )

        return await self._store.read(read)


def _known(value: str | None, field: str, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise InvalidInput(f"{field} is one of {', '.join(known)}", field=field, known=list(known))


def _reason(reason: str | None) -> str | None:
    if reason is not None and len(reason) > REASON_CHARS_MAX:
        raise InvalidInput(
            f"reason has {len(reason):,} characters; {REASON_CHARS_MAX:,} are allowed", field="reason",
            limit=REASON_CHARS_MAX,
        )  # fmt: skip
    return None if reason is None or not reason.strip() else cleaned(reason)


# ---- views


def proposal_view(row: ProposalRow) -> r.Proposal:
    return r.Proposal(
        id=row_id("prp", row.id), action=row.action, kind=row.kind, slug=row.slug, title=row.title,
        section=row.section or None, body=None, why=row.why, confidence=row.confidence, sessions=row.sessions,
        reviewer=row.reviewer,
        state=row.state, reason=row.state_reason, session_id=None if row.stream is None else row_id("ses", row.stream),
        base=row.base, decided_by=row.decided_by, decided_at=when(row.decided_at), created_at=moment(row.created_at),
        expires_at=moment(row.expires_at), version=row.version, undone_by=row.undone_by,
    )  # fmt: skip


def _whole(conn: Connection, row: ProposalRow) -> r.Proposal:
    shown, obstacle = _changed(conn, row)
    return proposal_view(row).model_copy(update={
        "body": row.body, "evidence": [_evidence(q) for q in evidence_of(conn, row.id)], "difference": shown,
        "obstacle": obstacle,
    })  # fmt: skip


def _evidence(quote: Quote) -> r.Evidence:
    return r.Evidence(
        session_id=row_id("ses", quote.stream), event_id=event_id(quote.stream, quote.seq), quote=quote.text
    )


def _changed(conn: Connection, row: ProposalRow) -> tuple[str, str | None]:
    """(the difference that an approval would make, or has made; why it cannot be approved as things stand)."""
    if not row.awaits:
        return _made(conn, row), None
    page = find_page(conn, row.project, row.slug, deleted=True)
    try:
        body_after(row, page, rebase=False)
        obstacle = None
    except Conflict as conflict:
        obstacle = conflict.message
    try:
        after = "" if row.action == "retire" else body_after(row, page, rebase=True)
    except Conflict:
        return "", obstacle
    before = "" if page is None else page.body
    names = ("/dev/null" if page is None else f"{row.slug} (version {page.version})", f"{row.slug} (proposed)")
    return difference(before, after, before_name=names[0], after_name=names[1]), obstacle


def _made(conn: Connection, row: ProposalRow) -> str:
    """Empty where it was never approved, or its page is gone."""
    page = None if row.page is None else page_by_id(conn, row.project, row.page)
    if page is None:
        return ""
    before = "" if row.previous is None else page_version(conn, page.id, row.previous).body
    after = "" if row.version is None else page_version(conn, page.id, row.version).body
    names = ("/dev/null" if row.previous is None else f"{row.slug} (version {row.previous})",
             "/dev/null" if row.version is None else f"{row.slug} (version {row.version})")  # fmt: skip
    return difference(before, after, before_name=names[0], after_name=names[1])


def _outcome_view(o: OutcomeRow) -> r.Outcome:
    row = o.proposal
    assert row.decided_at is not None
    return r.Outcome(
        proposal_id=row_id("prp", row.id), slug=row.slug, title=row.title, approved_at=moment(row.decided_at),
        times_before=o.before.times, with_it_before=o.before.with_it, sessions_before=o.before.sessions,
        times_since=o.since.times, with_it_since=o.since.with_it, sessions_since=o.since.sessions, shown_in=o.shown_in,
        ratio=None if o.ratio is None else o.ratio.best, ratio_low=None if o.ratio is None else o.ratio.low,
        ratio_high=None if o.ratio is None else o.ratio.high, verdict=verdict_of(o.since, o.ratio), words=o.words,
    )  # fmt: skip
