"""How conversations and episodes are drawn for people."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from everkept.api import views as v
from everkept.doors.cli import screen
from everkept.doors.cli.wording import ago, clean, clip, count, minute

STAGE_STYLE = {"completed": "green", "failed": "yellow", "dead": "red", "skipped": "dim"}


def thread_table(threads: Iterable[v.Thread]) -> Table:
    numbers = ("Messages", "In episodes")
    drawn = screen.table("Thread", "Subject", *numbers, "Last", "Next episode", right=numbers)
    for thread in threads:
        due = ago(thread.window_due_at) if thread.window_due_at else "–"
        drawn.add_row(
            clean(thread.id), clean(thread.subject), f"{thread.messages:,}", f"{thread.captured:,}",
            minute(thread.last_message_at), due,
        )  # fmt: skip
    return drawn


def episode_list(episodes: Iterable[v.Episode], *, learnings: int | None = None) -> RenderableType:
    """One block an episode: where it is, its summary, at most `learnings` of what was learned, unfinished stages."""
    return Group(*(Padding(_episode(episode, learnings), (0, 0, 1, 0)) for episode in episodes))


def _episode(episode: v.Episode, learnings: int | None) -> Text:
    length = count(episode.end_seq - episode.start_seq + 1, "message")
    body = Text(clean(episode.thread), style="bold")
    body.append(f"  {episode.start_seq}–{episode.end_seq} · {length} · {episode.id}", style="dim not bold")
    if episode.summary:
        body.append(f"\n{clip(episode.summary, 1000)}", style="not bold")
    # Without a model the learnings are sentences of the summary; saying them twice teaches nobody.
    fresh = [learning for learning in episode.learnings if learning not in (episode.summary or "")]
    for learning in fresh[:learnings]:
        body.append(f"\n  – {clip(learning, 300)}", style="not bold")
    for name, stage in episode.stages.items():
        if stage.state != "completed":
            body.append(f"\n{_stage(name, stage)}", style=STAGE_STYLE.get(stage.state, "cyan") + " not bold")
    return body


def _stage(name: str, stage: v.Stage) -> str:
    cause = stage.error or stage.reason
    again = f", next try {ago(stage.next_try_at)}" if stage.next_try_at else ""
    return clip(f"{name} {stage.state}" + (f": {cause}" if cause else ""), 200) + again
