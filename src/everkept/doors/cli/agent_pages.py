"""How sessions, pages, handoffs and timelines are drawn for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from everkept.api import views as v
from everkept.domain.digest.clip import clean as without_codes
from everkept.doors.cli import screen
from everkept.doors.cli.wording import clean, clip, count, minute

EVENT_CHARS = 600
EVENT_LINES = 8
STATE_STYLE = {"open": "cyan", "digested": "green", "acknowledged": "green", "expired": "dim", "replaced": "dim"}


def session_list(sessions: Iterable[v.Session]) -> Table:
    """One block a session: id, last event, what it was about; below it where, how it stands and why."""
    drawn = _blocks()
    for one in sessions:
        branch = f"branch {one.branch}" if one.branch else None
        details = (one.agent, count(one.events, "event"), branch, one.trivial_because)
        title = one.title or one.page or one.native_id
        drawn.add_row(one.id, minute(one.last_event_at), _block(title, one.state, details))
    return drawn


def _blocks() -> Table:
    """Two narrow columns that are not broken, and one with the words."""
    drawn = Table.grid(padding=(0, 2))
    for style in ("", "dim"):
        drawn.add_column(style=style, no_wrap=True)
    drawn.add_column(overflow="fold")
    return drawn


def _block(title: str, state: str, details: Iterable[str | None]) -> Text:
    body = Text(clip(title, 120))
    body.append(f"\n{state}", style=STATE_STYLE.get(state, "dim"))
    body.append("".join(f" · {clean(detail)}" for detail in details if detail), style="dim")
    return body


def session_head(one: v.Session) -> Padding:
    drawn = Table.grid(padding=(0, 2))
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column(overflow="fold")
    rows = {
        "session": f"{one.id}  {one.agent} {one.native_id}", "title": one.title, "state": one.state,
        "because": one.trivial_because, "started": minute(one.started_at), "last event": minute(one.last_event_at),
        "worktree": one.worktree, "branch": one.branch, "model": one.model, "sub-agent of": one.parent,
        "events": f"{one.events:,}",
    }  # fmt: skip
    for name, value in rows.items():
        if value:
            drawn.add_row(name, clean(value))
    return Padding(drawn, (0, 0, 1, 0))


def event_list(events: Iterable[v.Message]) -> Table:
    """One block an event: when, who, and its words as far as a screen bears them."""
    drawn = Table.grid(padding=(0, 2))
    for style in ("dim", "cyan"):
        drawn.add_column(style=style, no_wrap=True)
    drawn.add_column(overflow="fold")
    for event in events:
        kind = event.metadata.get("extra", {}).get("not_typed") or event.metadata.get("kind", event.role)
        body = Text("(erased)", style="dim") if event.content is None else Text(_shortened(event.content))
        body.append(f"  {event.event_id}", style="dim")
        drawn.add_row(minute(event.occurred_at), clean(event.name or str(kind)), body)
    return drawn


def _shortened(content: str) -> str:
    shown = without_codes(content).splitlines()
    text = "\n".join(shown[:EVENT_LINES])
    cut = text[:EVENT_CHARS].rstrip()
    left = len(content) - len(cut)
    return cut if len(shown) <= EVENT_LINES and len(text) <= EVENT_CHARS else f"{cut}\n… {left:,} more characters"


def page_list(pages: Iterable[v.KnowledgePage]) -> Group:
    """One block a page, its name on a line of its own: whole, to be copied."""
    return Group(*(part for page in pages for part in _page(page)))


def _page(page: v.KnowledgePage) -> Iterator[RenderableType]:
    yield Text(clean(page.slug), style="bold", no_wrap=True, overflow="ignore")
    body = Text(clip(page.title, 200))
    origin = f"{page.kind} · version {page.version} by {page.author} · {minute(page.updated_at)}"
    body.append(f"\n{clean(origin)}", style="dim")
    if page.superseded:
        body.append("\nanother page took its place", style="yellow")
    yield Padding(body, (0, 0, 1, 4))


def version_table(versions: Iterable[v.PageVersion]) -> Table:
    drawn = screen.table("Version", "Written on", "When", "By", "Size", "Why", right=("Version", "Written on", "Size"))
    for one in versions:
        drawn.add_row(
            str(one.version), str(one.base or "–"), minute(one.created_at), clip(one.author, 20),
            count(len(one.body), "character"), clip(one.reason or "–", 200),
        )  # fmt: skip
    return drawn


def handoff_list(handoffs: Iterable[v.Handoff]) -> Table:
    """One block a handoff: id, when it was left, what it was about; below it who left it and where."""
    drawn = _blocks()
    for one in handoffs:
        who = f"taken up by {one.acknowledged_by}" if one.acknowledged_by else None
        ends = count(len(one.open_ends), "open end") if one.open_ends else None
        branch = f"branch {one.branch}" if one.branch else None
        details = (who, ends, one.agent, branch, one.worktree)
        drawn.add_row(one.id, minute(one.left_at), _block(one.title, one.state, details))
    return drawn


def timeline_list(items: Iterable[v.TimelineItem]) -> Table:
    drawn = _blocks()
    for item in items:
        drawn.add_row(item.kind, minute(item.at), _block(item.title, item.id, [item.detail]))
    return drawn
