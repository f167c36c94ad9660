"""What a session leaves open, and what of an earlier one a later session does not settle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from everkept.domain.digest.clip import one_line
from everkept.domain.digest.decisions import asked_in, title_of
from everkept.domain.digest.turns import Turn
from everkept.domain.digest.values import Digest, FailedCommand, OpenEnd, SessionEvent
from everkept.domain.text import content_words

_TEXT_CHARS_MAX: Final = 200
ENDS_MAX: Final = 12
CARRIED_MAX: Final = 5
"""An end that stayed open through more sessions than this is no longer handed on."""
_SHARED: Final = 0.6
"""Of the words of an end: what a later session must have said or done for it to count as taken up."""


def end_key(text: str) -> str:
    """Equal for texts with the same words."""
    return " ".join(content_words(text)[:40])


def open_ends_of(
    turns: Sequence[Turn], plans: Sequence[SessionEvent], failed: Sequence[FailedCommand]
) -> tuple[OpenEnd, ...]:
    """`plans`: the last list of items, and the last goal where the agent keeps one apart."""
    unfinished = (end for plan in plans for end in _unfinished(plan))
    return (*_stopped(turns[-1]), *_question(turns[-1]), *unfinished, *_unmended(failed))


def finished_items(plans: Sequence[SessionEvent]) -> list[str]:
    """Keys of the items that were called done or given up at last."""
    items: dict[str, str] = {}
    for item, state in (one for plan in plans for one in plan.event.items):
        items.pop(item, None)  # two wordings with one key: the last one told counts
        items[item] = state
    states = {end_key(item): state for item, state in items.items()}
    return [key for key, state in states.items() if state in _SETTLED]


_SETTLED: Final = ("completed", "cancelled")


def _stopped(turn: Turn) -> Iterator[OpenEnd]:
    """The last turn was broken off, or nothing came of its prompt."""
    last = turn.last
    if last is None or (turn.stopped_by is None and (turn.ended or last.event.kind == "said")):
        return
    prompt = "" if turn.prompt is None else one_line(turn.prompt.event.text, 120)
    if turn.stopped_by is not None:
        call = turn.stopped_by.event.tool
        at = f" at {title_of(call)}" if call is not None else ""
        told = one_line(turn.stopped_by.event.text, 120)
        how = f"ended in an error: {told}" if turn.stopped_by.event.detail == "error" else f"was interrupted{at}"
        yield _stop(turn.stopped_by.seq, f"The last turn {how}", prompt)
    elif last.event.kind == "prompt":
        yield OpenEnd(
            kind="unanswered", text=f"Nothing came of the last prompt: “{prompt}”", key=end_key(prompt), seq=last.seq
        )
    elif last.event.tool is not None:
        yield _stop(last.seq, f"The session stops in the middle of a turn, after {title_of(last.event.tool)}", prompt)


def _stop(seq: int, text: str, prompt: str) -> OpenEnd:
    about = f" (working on: “{prompt}”)" if prompt else ""
    return OpenEnd(kind="interrupted", text=one_line(text + about, 300), key=end_key(prompt or text), seq=seq)


def _question(turn: Turn) -> Iterator[OpenEnd]:
    if turn.said is not None and turn.last is turn.said and (asked := asked_in(turn.said.event.text)):
        yield OpenEnd(kind="question", text=f"The agent asked: “{asked}”", key=end_key(asked), seq=turn.said.seq)


def _unfinished(plan: SessionEvent) -> Iterator[OpenEnd]:
    for item, state in plan.event.items:
        if state not in _SETTLED and item.strip():
            mark = "in progress: " if state == "in_progress" else ""
            yield OpenEnd(kind="plan", text=mark + one_line(item, _TEXT_CHARS_MAX), key=end_key(item), seq=plan.seq)


def _unmended(failed: Sequence[FailedCommand]) -> Iterator[OpenEnd]:
    """Each failing command once, with its last error; one that only looks leaves nothing open."""
    last = {command.key: command for command in failed if command.fix is None and not command.looks}
    for command in last.values():
        error = f": {command.error}" if command.error else ""
        text = one_line(f"{command.command} failed{error}", 300)
        yield OpenEnd(kind="failed", text=text, key=command.key, seq=command.seq)


def merge_open_ends(previous: Sequence[OpenEnd], digest: Digest) -> tuple[OpenEnd, ...]:
    """The ends of an earlier handoff that this session did not settle, at most 12; its own are not repeated.

    A plan item is settled when it is done, a failed command when it comes out well. A question, an interrupted turn
    and an unanswered prompt are settled when the user comes back to them or answers briefly.
    """
    own = {end.key for end in digest.open_ends}
    done = set(digest.done)
    spoken = _words_of(digest)
    kept: dict[str, OpenEnd] = {}
    for end in previous:
        settled = end.key in own or end.key in done or end.carried >= CARRIED_MAX or _taken_up(end, digest, spoken)
        if not settled and end.key not in kept:
            kept[end.key] = replace(end, carried=end.carried + 1)
    return tuple(list(kept.values())[:ENDS_MAX])


def _words_of(digest: Digest) -> frozenset[str]:
    told = [digest.goal, *(prompt.text for prompt in digest.prompts), *(said.text for said in digest.said)]
    return frozenset(word for text in told for word in content_words(text))


def _taken_up(end: OpenEnd, digest: Digest, spoken: frozenset[str]) -> bool:
    if not digest.prompts or end.kind == "failed":
        return False
    if end.kind == "question" and digest.prompts[0].chars <= 40:
        return True
    words = set(end.key.split())
    if len(words) < 2 or end.kind == "plan":
        return False
    return len(words & spoken) >= _SHARED * len(words)
