"""How results, facts and their origins are drawn for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from everkept.api import views as v
from everkept.doors.cli import screen
from everkept.doors.cli.folding import Folded, fold
from everkept.doors.cli.wording import clean, clip, day, lines, minute

QUOTE_CHARS = 300
EVENT_CHARS = 400
"""Of each of several events that something rests on; --json has all of it, and `why` of its id."""
SIGNALS_SHOWN = 6


def result_list(results: Iterable[v.RecallResult], query: str | None = None) -> RenderableType:
    """One block a result: score, kind and text; below it what was quoted, by whom and when, and the id for `why`.

    Of a long text a few lines around what answers the `query`; all of it where none is given.
    """
    drawn = Table.grid(padding=(0, 1))
    drawn.add_column(justify="right", style="dim", no_wrap=True)
    drawn.add_column(style="cyan", no_wrap=True)
    drawn.add_column(overflow="fold")
    for result in results:
        drawn.add_row(f"{result.score:.2f}", result.kind, _result_body(result, query))
    return drawn


def _result_body(result: v.RecallResult, query: str | None) -> Text:
    whole = lines(result.text).strip()
    shown = Folded(text=whole, left_out="") if query is None else fold(whole, query)
    body = Text(shown.text)
    if shown.left_out:
        body.append(f"\n… {shown.left_out}; everkept why {result.id}", style="dim")
    if result.unsettled:
        body.append("  (contradicted, not judged yet)", style="yellow")
    if result.quote and result.quote != result.text:
        body.append(f"\n“{clip(result.quote, QUOTE_CHARS)}”", style="italic")
    body.append(f"\n{_origin(result)}", style="dim")
    if result.signals:
        body.append(f"\n{_signals(result.signals)}", style="dim")
    return body


def _origin(result: v.RecallResult) -> str:
    speaker = result.speaker if result.kind in ("turn", "page") else None
    when = minute(result.occurred_at) if result.occurred_at else None
    said_in = f"thread {result.thread}" if result.thread else None
    return clean(" · ".join(part for part in (speaker, when, said_in, result.page, result.id) if part))


def _signals(signals: dict[str, float]) -> str:
    strongest = sorted(signals.items(), key=lambda item: -abs(item[1]))[:SIGNALS_SHOWN]
    return "  ".join(f"{name} {value:+.2f}" for name, value in strongest)


def held_back_list(items: Iterable[v.HeldBack]) -> RenderableType:
    drawn = screen.table("Held back", "Why", "Id")
    for item in items:
        drawn.add_row(clip(item.text, QUOTE_CHARS), item.reason.replace("_", " "), item.id)
    return Padding(drawn, (1, 0, 0, 0))


def fact_table(facts: Iterable[v.Fact]) -> Table:
    """Statement and quote, since and until when it holds, and the id that `why` takes."""
    drawn = screen.table("Fact", "Since", "Until", "Id")
    for name in (1, 2, 3):
        drawn.columns[name].no_wrap = True
    for fact in facts:
        drawn.add_row(_fact_body(fact), day(fact.valid_from), _until(fact), _fact_ids(fact))
    return drawn


def _fact_body(fact: v.Fact) -> Text:
    body = Text(clean(fact.text), style="" if fact.live else "dim")
    if fact.pinned:
        body.append("  pinned", style="cyan")
    if fact.unsettled:
        body.append("  contradicted, not judged yet", style="yellow")
    if fact.quote:
        body.append(f"\n“{clip(fact.quote, QUOTE_CHARS)}”", style="italic dim")
    if fact.retired_at:
        successor = f", replaced by {fact.superseded_by}" if fact.superseded_by else ""
        body.append(f"\nretired {day(fact.retired_at)}: {clean(fact.retired_because or '')}{successor}", style="dim")
    return body


def _until(fact: v.Fact) -> str:
    return day(fact.valid_until, "now" if fact.live else "–")


def _fact_ids(fact: v.Fact) -> Text:
    source = "by hand" if fact.source == "hand" else next(iter(fact.event_ids), fact.episode_id or "")
    return Text(fact.id).append(f"\n{source}", style="dim")


def why_page(answer: v.Why) -> Iterator[RenderableType]:
    yield Text(f"{answer.id}", style="bold").append(f"  {answer.kind}", style="cyan")
    yield Padding(Text(clean(answer.text)), (0, 0, 1, 2))
    if answer.events:
        yield Text("Rests on", style="bold")
        yield Padding(message_list(answer.events, EVENT_CHARS if len(answer.events) > 1 else None), (0, 0, 1, 2))
    if answer.steps:
        yield Text("How it came about", style="bold")
        yield Padding(Group(*(_step(step) for step in answer.steps)), (0, 0, 0, 2))


def message_list(messages: Iterable[v.Message], chars_max: int | None = None) -> Table:
    drawn = Table.grid(padding=(0, 2))
    for style in ("dim", "cyan"):
        drawn.add_column(style=style, no_wrap=True)
    drawn.add_column(overflow="fold")
    for message in messages:
        said = None if message.content is None else clean(message.content)
        content = Text("(erased)", style="dim") if said is None else Text(clip(said, chars_max or len(said) + 1))
        content.append(f"  {message.event_id}", style="dim")
        drawn.add_row(minute(message.occurred_at), clean(message.name or message.role), content)
    return drawn


def _step(step: dict[str, Any]) -> Text:
    """One step as `name: value` pairs; nested values as they are, on one line."""
    told = {name.replace("_", " "): clip(str(value), 120) for name, value in step.items() if value is not None}
    head = told.pop("step", "")
    return Text(f"{head}: " if head else "", style="bold").append(
        Text(" · ".join(f"{name} {value}" for name, value in told.items()), style="not bold")
    )
