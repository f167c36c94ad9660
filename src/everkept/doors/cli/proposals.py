"""`proposals`: improvements of pages that reviews propose; deciding on them, undoing them, and whether they helped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from everkept.doors.cli import backend, screen
from everkept.doors.cli.options import OF_FOLDER, Cursor, Limit, OfFolder, Switch, command_group
from everkept.doors.cli.wording import count, lines, more

if TYPE_CHECKING:
    from everkept.api import review_views as r

proposals = command_group("proposals")
ProposalId = Annotated[str, Parameter(help="The id of the proposal (prp_…).")]
State = Literal["open", "staged", "conflict", "approved", "rejected", "superseded", "expired", "rolled_back", "all"]
Kind = Literal["rule", "procedure", "skill", "gotcha"]
By = Annotated[str, Parameter(help="Who decides.")]
Reason = Annotated[str | None, Parameter(help="Why; it is kept with the proposal.")]


@proposals.default
@proposals.command(name="list")
async def list_proposals(
    *,
    state: Annotated[State, Parameter(help="Only those in this state; `open` await a decision.")] = "open",
    kind: Annotated[Kind | None, Parameter(help="Only for pages of this kind.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    common: OfFolder = OF_FOLDER,
) -> None:
    """List what awaits a decision, newest first; show, approve, reject or roll back one."""
    async with backend.memory_here(common.project) as here:
        page = await here.memory.list_proposals(
            state=None if state == "all" else state, kind=kind, limit=limit, cursor=cursor
        )
    if common.json:
        screen.emit(page)
        return
    if not page.items:
        screen.say("nothing awaits a decision" if state == "open" else "no proposals")
        return
    from everkept.doors.cli.proposal_pages import proposal_list

    screen.show(proposal_list(page.items))
    screen.say(count(len(page.items), "proposal") + more(page.next_cursor))
    if state == "open":
        screen.say("everkept proposals show ID; then approve ID, or reject ID --reason WHY")


@proposals.command(name="show")
async def show_proposal(proposal: ProposalId, /, *, common: OfFolder = OF_FOLDER) -> None:
    """Show a proposal: what it changes, why, and the words of sessions that bear it out."""
    async with backend.memory_here(common.project) as here:
        found = await here.memory.get_proposal(proposal)
    if common.json:
        screen.emit(found)
        return
    from everkept.doors.cli.proposal_pages import drawn_difference, evidence_list, proposal_head

    screen.show(proposal_head(found))
    if found.evidence:
        screen.show(evidence_list(found.evidence), "")
    if found.difference:
        screen.show(drawn_difference(found.difference))
    elif found.body:
        print(lines(found.body).rstrip("\n"))


@proposals.command(name="diff")
async def show_difference(proposal: ProposalId, /, *, common: OfFolder = OF_FOLDER) -> None:
    """Print what a proposal changes, or has changed, as a unified diff."""
    async with backend.memory_here(common.project) as here:
        found = await here.memory.get_proposal(proposal)
    if common.json:
        screen.emit({"id": found.id, "difference": found.difference, "obstacle": found.obstacle})
        return
    if found.obstacle:
        screen.warn(found.obstacle)
    if found.difference:
        from everkept.doors.cli.proposal_pages import drawn_difference

        screen.show(drawn_difference(found.difference))
    else:
        screen.say(f"{found.id} changes nothing that could be shown: it is {found.state}")


@proposals.command(name="approve")
async def approve_proposal(
    proposal: ProposalId,
    /,
    *,
    rebase: Annotated[
        bool, Switch, Parameter(help="You looked at the page as it is now: put the proposal on top of that.")
    ] = False,
    by: By = "hand",
    common: OfFolder = OF_FOLDER,
) -> None:
    """Write the page of a proposal. Where the page moved on, look at `diff` and say --rebase."""
    async with backend.memory_here(common.project) as here:
        before = await here.memory.get_proposal(proposal)
        found = await here.memory.approve_proposal(proposal, by=by, rebase=rebase)
    _tell(found, before, as_json=common.json)


@proposals.command(name="reject")
async def reject_proposal(
    proposal: ProposalId, /, *, reason: Reason = None, by: By = "hand", common: OfFolder = OF_FOLDER
) -> None:
    """Turn a proposal down: the same is not proposed again, however it is worded."""
    async with backend.memory_here(common.project) as here:
        before = await here.memory.get_proposal(proposal)
        found = await here.memory.reject_proposal(proposal, by=by, reason=reason)
    _tell(found, before, as_json=common.json)


@proposals.command(name="rollback")
async def roll_back_proposal(
    proposal: ProposalId, /, *, reason: Reason = None, by: By = "hand", common: OfFolder = OF_FOLDER
) -> None:
    """Undo an approved proposal as a new version of its page; what was written elsewhere since stays."""
    async with backend.memory_here(common.project) as here:
        before = await here.memory.get_proposal(proposal)
        found = await here.memory.roll_back_proposal(proposal, by=by, reason=reason)
    _tell(found, before, as_json=common.json)


def _tell(found: r.Proposal, before: r.Proposal, *, as_json: bool) -> None:
    """What it is now, and whether it was that already."""
    if as_json:
        screen.emit(found)
        return
    page = f"page {found.slug}" + (f", version {found.undone_by or found.version}" if found.version else "")
    if found.state == "approved" and found.action == "retire":
        page = f"page {found.slug} is taken away"
    elif found.state == "rolled_back" and found.undone_by is None:
        page = f"page {found.slug} is taken away again"
    state = found.state.replace("_", " ") + (" already" if before.state == found.state else "")
    print(f"{found.id}  {state}" + ("" if found.state == "rejected" else f": {page}"))


@proposals.command(name="report")
async def report(*, limit: Limit = 100, common: OfFolder = OF_FOLDER) -> None:
    """Tell of each approved proposal whether it helped, and how sure that is."""
    async with backend.memory_here(common.project) as here:
        found = await here.memory.proposal_report(limit=limit)
    if common.json:
        screen.emit(found)
        return
    if found.outcomes:
        from everkept.doors.cli.proposal_pages import outcome_list

        screen.show(outcome_list(found.outcomes))
    decided = [f"{n:,} {state.replace('_', ' ')}" for state, n in sorted(found.decided.items())]
    screen.say(", ".join([f"{found.open:,} open", *decided]))


for _name, _help in (
    ("publish", "Write approved rules and skills into AGENTS.md, CLAUDE.md and SKILL.md folders of this checkout."),
    ("unpublish", "Take what `publish` wrote out of the files of this checkout again."),
):
    proposals.command(f"everkept.doors.cli.rule_files:{_name}", _name, help=_help, help_epilogue="")
