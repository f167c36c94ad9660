"""The talk of a session: the prompts a person typed, and between them the agent's last words of each turn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from everkept.domain.digest.clip import clean, one_line, prose
from everkept.domain.digest.values import PROMPT_CHARS_MAX, SAID_CHARS_MAX, Prompt, Said, SessionEvent
from everkept.domain.digest.words import INTERRUPTED
from everkept.domain.session import AgentEvent

SENTENCES_READ_CHARS_MAX: Final = 8_000
"""A longer prompt is pasted text beyond this; nothing is concluded from it."""
_SENTENCE_CHARS_MAX: Final = 600
"""A longer one is no sentence."""


@dataclass(slots=True)
class Turn:
    """From one genuine prompt to the next; turn 0 is what came before the first."""

    number: int
    prompt: SessionEvent | None = None
    said: SessionEvent | None = None
    last: SessionEvent | None = None
    """Its last event in which something was done or said."""
    ended: bool = False
    stopped_by: SessionEvent | None = None
    """What says that it was broken off."""
    calls: int = 0
    before: Turn | None = field(default=None, repr=False)


def is_prompt(event: AgentEvent) -> bool:
    return event.kind == "prompt" and event.genuine and event.evidence and bool(event.text.strip())


def turns_of(events: Sequence[SessionEvent]) -> list[Turn]:
    """The turns of the session itself; events of sub-agents are not given."""
    turns = [Turn(0)]
    for entry in events:
        event = entry.event
        if is_prompt(event):
            turns.append(Turn(len(turns), prompt=entry, last=entry, before=turns[-1]))
        else:
            _take(turns[-1], entry)
    return turns


def _take(turn: Turn, entry: SessionEvent) -> None:
    event = entry.event
    if event.kind == "said" and event.evidence and event.text.strip():
        turn.said = turn.last = entry
        turn.ended, turn.stopped_by = False, None
    elif event.kind == "tool" and event.tool is not None:
        turn.last = entry
        turn.calls += 1
        turn.ended = False
        turn.stopped_by = entry if event.tool.outcome in ("interrupted", "denied") else None
    elif event.kind == "turn_end":
        if _hands_over_last_words(event) and not (turn.said and _same_words(turn.said.event, event)):
            turn.said = turn.last = entry
            turn.stopped_by = None
        turn.ended = True
    if event.kind in ("turn_end", "notification", "other", "prompt") and _tells_interruption(event):
        turn.stopped_by, turn.ended = entry, False


def _hands_over_last_words(event: AgentEvent) -> bool:
    """A hook at the end of a turn may tell what no transcript does."""
    told = event.source == "hook" and event.evidence and bool(event.text.strip())
    return told and event.detail not in ("failed", "error", "interrupted") and not _tells_interruption(event)


def _same_words(one: AgentEvent, other: AgentEvent) -> bool:
    return one.text.split() == other.text.split()


def _tells_interruption(event: AgentEvent) -> bool:
    if event.kind == "turn_end":
        return event.detail == "error" or bool(INTERRUPTED.search(f"{event.detail} {event.text[:60]}"))
    told = f"{event.detail} {event.text[:60]}"
    return "[Request interrupted" in told or "turn_aborted" in told or "<turn_aborted>" in told


def prompts_of(turns: Sequence[Turn]) -> tuple[Prompt, ...]:
    return tuple(
        Prompt(
            seq=turn.prompt.seq,
            text=one_line(turn.prompt.event.text, PROMPT_CHARS_MAX),
            chars=len(turn.prompt.event.text.strip()),
        )
        for turn in turns
        if turn.prompt is not None
    )


def said_of(turns: Sequence[Turn]) -> tuple[Said, ...]:
    return tuple(
        Said(
            seq=turn.said.seq,
            turn=turn.number,
            text=prose(turn.said.event.text, SAID_CHARS_MAX),
            chars=len(turn.said.event.text.strip()),
        )
        for turn in turns
        if turn.said is not None
    )


_ENDS = re.compile(r"[.!?…][\"'”’)]*\s+|[。！？](?![」』”])|\n+")
"""From the mark that belongs to the sentence to where the next one begins."""
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_LIST_MARK = re.compile(r"^(?:[-*+•]|\d{1,2}[.)]|#{1,6}|>)\s+")
_LIST_MARKS: Final = frozenset("-*+•#>0123456789")


def sentences(text: str) -> list[str]:
    """Sentences and lines of prose, as written; code blocks, quoted and indented lines are left out."""
    plain = clean(text[:SENTENCES_READ_CHARS_MAX])
    if "```" in plain or "~~~" in plain:
        plain = _FENCED.sub("\n", plain)
    plain = "\n".join(line for line in plain.split("\n") if not line.startswith((">", "    ", "\t")))
    found = (_LIST_MARK.sub("", part) if part[:1] in _LIST_MARKS else part for part in _parts(plain))
    return [part for part in found if 0 < len(part) <= _SENTENCE_CHARS_MAX]


def _parts(plain: str) -> Iterator[str]:
    start = 0
    for end in _ENDS.finditer(plain):
        yield plain[start : end.start() + 1].strip()
        start = end.end()
    yield plain[start:].strip()
