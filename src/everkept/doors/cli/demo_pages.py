"""What the demo prints: what went in, what came of it, what can be asked, and how to use one's own chat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from everkept.api import views as v
from everkept.doors.cli.history_pages import episode_list
from everkept.doors.cli.memory_pages import fact_table
from everkept.doors.cli.status_page import status_page
from everkept.doors.cli.wording import clean, clip, count, day, span

if TYPE_CHECKING:
    from everkept.doors.cli.demo import Played, Shown

FACTS_SHOWN = 20
ENDED_SHOWN = 4
EPISODES_SHOWN = 4
LEARNINGS_SHOWN = 3
RESULT_CHARS = 220


def opening_page(home: Path, *, kept: bool) -> Iterator[RenderableType]:
    place = f"{'memory' if kept else 'throw-away memory'} in {home}"
    yield Text("Everkept demo", style="bold").append(f"  {place}", "dim not bold")
    yield Text(
        "Eight weeks of chat between Marta and her assistant go in; facts, episodes and answers come out. "
        "Marta and everybody she mentions are invented."
    )


def played_page(played: Played) -> Iterator[RenderableType]:
    yield _heading("What went in")
    yield _account(played)
    yield _heading("Facts: what was said for certain, with the words it rests on")
    yield from _facts(played.facts)
    yield _heading("Episodes: stretches of conversation, with what was learned")
    yield episode_list(played.episodes[:EPISODES_SHOWN], learnings=LEARNINGS_SHOWN)
    yield _rest(len(played.episodes) - EPISODES_SHOWN, "episode")
    yield _heading("Recall: ask in your own words")
    yield Text(
        "» marks what answers the question; each line below says when it was said and where it is.\n", style="dim"
    )
    for shown in played.recalls:
        yield Padding(_recall(shown, played.intake.event_ids), (0, 0, 1, 0))
    yield _heading("Status: what `everkept status` shows")
    yield status_page(played.status)


def closing_page(played: Played, *, kept_in: Path | None) -> Iterator[RenderableType]:
    yield _heading("Your turn")
    yield Text("The same with your own chat (JSONL, one message a line):\n")
    for command in (
        "everkept import my-chat.jsonl --subject me --wait", "everkept facts --subject me",
        'everkept recall "Where do I live now?" --subject me',
    ):  # fmt: skip
        yield Text(f"  {command}", style="cyan")
    yield Text(f"\n{_about_model(played.status.model)}")
    if kept_in is not None:
        yield Text(f"\nThis memory stays in {kept_in}: set EVERKEPT_HOME={kept_in} to look around in it.")
    missing = played.messages - played.remembered
    if missing:
        yield Text(f"\n{count(missing, 'message')} not remembered: the status above says why.", style="bold red")
    else:
        yield Text(f"\nAll {played.messages:,} messages are remembered.", style="bold green")


def _heading(text: str) -> RenderableType:
    return Padding(Rule(Text(text, style="bold"), align="left", style="dim"), (1, 0, 1, 0))


def _account(played: Played) -> Table:
    report = played.intake.report
    drawn = Table.grid(padding=(0, 2))
    drawn.add_column(style="dim")
    drawn.add_column()
    again = f", {report.replayed:,} accepted before" if report.replayed else ""
    drawn.add_row("accepted", f"{count(report.stored, 'message')} in {count(report.threads, 'thread')}{again}")
    drawn.add_row("remembered", f"{played.remembered:,} of {played.messages:,}, after {span(played.work_s)} of work")
    kept = f"{count(len(played.episodes), 'episode')}, {count(len(played.facts), 'fact')}"
    drawn.add_row("came out", kept)
    drawn.add_row("worked by", _who_worked(played.status.model))
    return drawn


def _who_worked(model: str) -> str:
    if model.startswith("none"):
        return "No model key: deterministic extraction, which takes only what it can quote."
    return f"The model {model} read the conversation."


def _about_model(model: str) -> str:
    if model.startswith("none"):
        return (
            "That stays on this machine: no model was asked here. With EVERKEPT_MODEL=openai:… (or anthropic:…, "
            "google:…, ollama:…) and its key, a model reads the conversation and finds more."
        )
    return f"Here the model {model} read the conversation; with EVERKEPT_MODEL=none nothing leaves this machine."


def _facts(facts: list[v.Fact]) -> Iterator[RenderableType]:
    """Some facts that have ended (history is kept) among those that hold, in the order of being said."""
    told = sorted((fact for fact in facts if fact.duplicate_of is None), key=lambda fact: fact.said_at)
    ended = [fact for fact in told if fact.superseded_by is not None][:ENDED_SHOWN]
    holding = [fact for fact in told if fact.live][: FACTS_SHOWN - len(ended)]
    chosen = sorted([*ended, *holding], key=lambda fact: fact.said_at)
    if chosen:
        yield fact_table(chosen)
        yield _rest(len(told) - len(chosen), "fact")
    else:
        yield Text("none", style="dim")


def _rest(number: int, word: str) -> Text:
    return Text(f"and {count(number, 'more ' + word)}" if number > 0 else "", style="dim")


def _recall(shown: Shown, event_ids: dict[int, str]) -> RenderableType:
    evidence = {event_ids[line] for line in shown.question.evidence if line in event_ids}
    title = Text("? ", style="bold cyan").append(shown.question.text, "bold default")
    why = Padding(Text(shown.question.why, style="dim"), (0, 0, 0, 2))
    if shown.then is None:
        return Group(title, why, _answer(shown.now, evidence))
    beside = Table.grid(padding=(0, 2), expand=True)
    beside.add_column(ratio=1)
    beside.add_column(ratio=1)
    beside.add_row(
        Text(f"  asked about {day(shown.question.as_of)}", style="cyan"), Text("  asked about today", style="cyan")
    )
    beside.add_row(_answer(shown.then, evidence), _answer(shown.now, evidence))
    return Group(title, why, beside)


def _answer(answer: v.RecallAnswer, evidence: set[str]) -> RenderableType:
    """The hits, those that rest on the evidence marked, each with when it was said, in which thread, and its id."""
    if not answer.results:
        return Text("  nothing found", style="dim")
    drawn = Table.grid(padding=(0, 1))
    drawn.add_column(width=2, justify="right", style="green", no_wrap=True)
    drawn.add_column(overflow="fold")
    for result in answer.results:
        marked = bool(evidence.intersection([result.id, *result.event_ids]))
        drawn.add_row("»" if marked else "·", _hit(result))
    return drawn


def _hit(result: v.RecallResult) -> Text:
    speaker = f"{clean(result.speaker)}: " if result.kind == "turn" and result.speaker else ""
    body = Text(speaker, style="cyan").append(clip(result.text, RESULT_CHARS), "default")
    kind = "" if result.kind == "turn" else result.kind
    where = [kind, day(result.occurred_at, ""), result.thread or "", result.id]
    return body.append(f"\n{clean(' · '.join(part for part in where if part))}", "dim")
