"""How reviews, proposals, differences and outcomes are drawn for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from everkept.api import review_views as r
from everkept.doors.cli.wording import clean, clip, count, lines, minute

ACTIONS = {
    "create": "new page", "append": "adds to the end of", "add_section": "adds a section to",
    "replace_section": "replaces a section of", "retire": "takes away",
}  # fmt: skip
STATE_STYLE = {"staged": "cyan", "conflict": "yellow", "approved": "green", "rejected": "red", "rolled_back": "red"}
REVIEW_STYLE = {"waiting": "cyan", "reviewing": "cyan", "reviewed": "green", "dead": "red"}
VERDICT_STYLE = {"helps": "green", "does_not_help": "yellow", "worse": "red", "too_early": "dim"}


def proposal_list(proposals: Iterable[r.Proposal]) -> Group:
    """One block a proposal: id and what it does; below it why, and how it stands."""
    return Group(*(part for one in proposals for part in _proposal(one)))


def _proposal(one: r.Proposal) -> Iterator[RenderableType]:
    head = Text(one.id, style="bold")
    head.append(f"  {ACTIONS[one.action]} {clean(one.slug)}", style="default not bold")
    yield head
    body = Text(clip(one.why, 300))
    body.append(f"\n{state_words(one.state)}", style=STATE_STYLE.get(one.state, "dim"))
    reason = f": {one.reason}" if one.reason else ""
    seen = f" · {one.sessions} sessions" if one.sessions > 1 else ""
    sure = f"confidence {one.confidence:.0%}"
    told = f"{reason} · {one.kind} · by {one.reviewer}{seen} · {sure} · {minute(one.created_at)}"
    body.append(clean(told) if reason else f" {clean(told)}", style="dim")
    yield Padding(body, (0, 0, 1, 4))


def state_words(state: str) -> str:
    return {"staged": "awaits a decision", "rolled_back": "rolled back"}.get(state, state)


def proposal_head(one: r.Proposal) -> Padding:
    by = f" by {one.decided_by} at {minute(one.decided_at)}" if one.decided_at and one.decided_by else ""
    rows = {
        "proposal": f"{one.id}  {ACTIONS[one.action]} {one.slug}", "title": one.title, "kind": one.kind,
        "section": one.section, "why": one.why, "state": f"{state_words(one.state)}{by}", "because": one.reason,
        "obstacle": one.obstacle if one.obstacle != one.reason else None,
        "written on": None if one.base is None else f"version {one.base}",
        "made": None if one.version is None else f"version {one.version}",
        "undone by": None if one.undone_by is None else f"version {one.undone_by}",
        "reviewer": f"{one.reviewer}, confidence {one.confidence:.0%}", "session": one.session_id,
        "proposed": f"{minute(one.created_at)}, expires {minute(one.expires_at)}",
    }  # fmt: skip
    drawn = Table.grid(padding=(0, 2))
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column(overflow="fold")
    for name, value in rows.items():
        if value:
            drawn.add_row(name, Text(clean(value), style=STATE_STYLE.get(one.state, "") if name == "state" else ""))
    return Padding(drawn, (0, 0, 1, 0))


def evidence_list(evidence: Iterable[r.Evidence]) -> Table:
    drawn = Table.grid(padding=(0, 2))
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column(overflow="fold")
    for one in evidence:
        drawn.add_row(one.event_id, Text(f"“{clean(one.quote)}”"))
    return drawn


def drawn_difference(difference: str) -> Group:
    """No line is broken: what is piped on is a diff still."""
    return Group(*difference_lines(difference))


def difference_lines(difference: str) -> list[Text]:
    """Added lines are green and removed ones red; without colours the signs at their beginning say the same."""
    shown = lines(difference).split("\n")[:-1]
    return [Text(line, style=_style_of(line), no_wrap=True, overflow="ignore") for line in shown]


def _style_of(line: str) -> str:
    if line.startswith(("--- ", "+++ ")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}.get(line[:1], "")


def outcome_list(outcomes: Iterable[r.Outcome]) -> Group:
    return Group(*(part for one in outcomes for part in _outcome(one)))


def _outcome(one: r.Outcome) -> Iterator[RenderableType]:
    head = Text(one.proposal_id, style="bold")
    head.append(f"  {clean(one.slug)}", style="default not bold")
    yield head
    body = Text(clean(one.words), style=VERDICT_STYLE[one.verdict])
    times = f"{count(one.times_before, 'time')} before, {count(one.times_since, 'time')} since"
    told = f"\n{times} · shown in {count(one.shown_in, 'session')} · approved {minute(one.approved_at)}"
    body.append(told, style="dim")
    yield Padding(body, (0, 0, 1, 4))


def review_list(reviews: Iterable[r.Review]) -> Table:
    """One block a session: when it had finished, how its review stands; below it what was not proposed, and why."""
    drawn = Table.grid(padding=(0, 2))
    for style in ("", "dim"):
        drawn.add_column(style=style, no_wrap=True)
    drawn.add_column(overflow="fold")
    for one in reviews:
        made = f", {count(one.staged, 'proposal')}" if one.staged else ""
        body = Text(f"{one.state}{made}", style=REVIEW_STYLE.get(one.state, "dim"))
        reasons = [*filter(None, (one.reason or one.note,)), *(f"not {x.what}: {x.reason}" for x in one.refused)]
        body.append("".join(f"\n{clip(reason, 300)}" for reason in reasons), style="dim")
        drawn.add_row(one.session_id, minute(one.finished_at), body)
    return drawn
