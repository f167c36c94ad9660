"""Scenarios of proposals: staged beside ones that are refused, decided, applied by themselves, undone and expired."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from everkept.domain.erase import StreamTarget
from everkept.domain.pages import PageText
from everkept.domain.review.values import Action, Draft, Quote
from everkept.prove.scenario import Scenario
from everkept.prove.scenarios_agents import AGENT, UNDISTILLED, asked_and_digested, do, erase_target
from everkept.prove.stage import Stage
from everkept.store.decisions import approve_proposal, reject_proposal, roll_back_proposal
from everkept.store.pages import NewPage, page_by_id, pin_page, write_page
from everkept.store.projects import update_project
from everkept.store.proposals import get_proposal, stage_drafts
from everkept.store.stale_pages import PageLook, note_looks

DAY_S: Final = 86_400.0


def _draft(s: Stage, slug: str, signature: str, action: Action = "create", base: int | None = None) -> Draft:
    stream = int(s.value("select min(stream_id) from sessions"))
    return Draft(
        action=action, kind="rule", slug=slug, title=slug.title(), body=f"Words of {signature}.", base=base,
        why="corrected in two sessions", confidence=0.8, signature=signature,
        evidence=(Quote(stream=stream, seq=1, text="Fix the failing login test"),),
    )  # fmt: skip


def _stage(s: Stage, *drafts: Draft, adds: int) -> None:
    sql = "select count(*) from proposals"
    project = s.project_id()

    def stage(conn: Any) -> int:
        return stage_drafts(conn, project=project, review=None, stream=drafts[0].evidence[0].stream, drafts=drafts,
                            reviewer="rules", settings=s.settings)[0]  # fmt: skip

    do(s, "stage", lambda: s.write(stage), sql=sql, after=s.value(sql) + adds)


def _decide(s: Stage, what: str, proposal: int, work: Callable[..., object], after: str, **more: Any) -> None:
    project = s.project_id()
    do(s, what, lambda: s.write(lambda conn: work(conn, project, proposal, by=AGENT, **more)),
        sql=f"select state from proposals where id = {proposal}", after=after)  # fmt: skip


def _approve(s: Stage, proposal: int, after: str = "approved", **more: Any) -> None:
    _decide(s, "approve", proposal, approve_proposal, after, **more)


def _roll_back(s: Stage, proposal: int) -> None:
    _decide(s, "roll back", proposal, roll_back_proposal, "rolled_back", reason="by hand")


def _pin(s: Stage, slug: str, *, pinned: bool) -> None:
    project = s.project_id()
    sql = f"select pinned_at is not null from pages where slug = '{slug}'"
    do(s, "pin", lambda: s.write(lambda conn: pin_page(conn, project, slug, pinned=pinned)), sql=sql,
        after=int(pinned))  # fmt: skip


def _staged(s: Stage) -> None:
    asked_and_digested(s)
    _stage(s, _draft(s, "one", "a"), _draft(s, "two", "b"), adds=2)


def _decided(s: Stage) -> None:
    """Approved, carried along, superseded, in conflict and looked at, rejected, undone."""
    _stage(s, _draft(s, "two", "c"), _draft(s, "No Slug", "d"), _draft(s, "one", "a"), adds=1)
    _approve(s, 1)
    _stage(s, _draft(s, "one", "e", "append", 1), _draft(s, "one", "f", "append", 1), adds=2)
    _approve(s, 4)
    _pin(s, "one", pinned=True)
    _approve(s, 5, "conflict")
    _pin(s, "one", pinned=False)
    _approve(s, 5, rebase=True)
    _decide(s, "reject", 3, reject_proposal, "rejected", reason="we do not")
    _roll_back(s, 4)
    _stage(s, _draft(s, "one", "g", "retire", 4), adds=1)
    _approve(s, 6)
    assert s.read(page_by_id, s.project_id(), s.read(get_proposal, s.project_id(), 6).page or 0) is not None
    _roll_back(s, 6)


def _automatic(s: Stage) -> None:
    s.write(update_project, "default", None, {"proposals.rule": "auto"})
    asked_and_digested(s)


def _applied(s: Stage) -> None:
    _stage(s, _draft(s, "one", "a"), _draft(s, "two", "b"), adds=2)
    s.drain()


def _approved(s: Stage) -> None:
    """A page that an approval made, and words that one added to a page of somebody else."""
    asked_and_digested(s)
    _write_two(s, "Ours.")
    _stage(s, _draft(s, "one", "a"), _draft(s, "two", "b", "append", 1), adds=2)
    for proposal in (1, 2):
        _approve(s, proposal)


def _erased(s: Stage) -> None:
    erase_target(s, StreamTarget(stream=int(s.value("select min(stream_id) from sessions"))))


def _expired(s: Stage) -> None:
    """Nobody decides for a month."""
    s.clock.advance(31 * DAY_S)
    s.maintain()


def _write_two(s: Stage, body: str) -> None:
    words = PageText(title="Two", body=body)
    s.write(write_page, NewPage(project=s.project_id(), kind="rule", slug="two", text=words, author="hand"))


def _look(s: Stage, *gone: int, after: int) -> None:
    """`after`: pages that are to be looked for once more, and ten for each proposal."""
    project = s.project_id()
    page, version = (int(s.value(f"select {column} from pages where slug = 'two'")) for column in ("id", "version"))
    look = PageLook(
        page=page, version=version, gone=gone, draft=replace(_draft(s, "two", "z", "retire", version), evidence=())
    )
    sql = "select (select count(*) from page_looks) + 10 * (select count(*) from proposals)"
    do(s, "look", lambda: s.write(note_looks, project, [look], s.settings), sql=sql, after=after)


def _named(s: Stage) -> None:
    """A page that names a file."""
    asked_and_digested(s)
    _write_two(s, "Run `two.sh`.")


def _looked_at(s: Stage) -> None:
    """The file is gone, is there again, and is gone for two days."""
    _look(s, 0, after=1)
    _look(s, after=0)
    _look(s, 0, after=1)
    s.clock.advance(2 * DAY_S)
    _look(s, 0, after=11)


PROPOSAL_SCENARIOS: Final = (
    Scenario(name="proposals-decided", prepare=_staged, act=_decided, prepared_by=UNDISTILLED),
    Scenario(name="proposals-applied", prepare=_automatic, act=_applied, prepared_by=UNDISTILLED),
    Scenario(name="erase-approved", prepare=_approved, act=_erased, prepared_by=UNDISTILLED),
    Scenario(name="checkout-looked-at", prepare=_named, act=_looked_at, prepared_by=UNDISTILLED),
    Scenario(name="proposals-expire", prepare=_staged, act=_expired, prepared_by=UNDISTILLED),
)
