"""Where a person put the agent right.

Structure first: words after a call that was refused or a turn that was broken off, words in a refusal, a prompt said
again, a file that is edited again after a prompt. Then the words: a standing wish ("never", "from now on", "instead
of"), a protest ("I told you"). Questions, tasks and pasted logs are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from everkept.domain.command_line import steps_of
from everkept.domain.digest import Digest, SessionEvent
from everkept.domain.digest.decisions import title_of
from everkept.domain.digest.turns import Turn, is_prompt, sentences, turns_of
from everkept.domain.digest.words import decides, goes_on, is_question
from everkept.domain.review.quotes import quote_of
from everkept.domain.review.signatures import step_shape
from everkept.domain.review.values import Observation
from everkept.domain.review.wish import Wish, wish_of
from everkept.domain.review.wish_words import FOR_NOW, PROTESTS
from everkept.domain.session import ToolCall
from everkept.domain.text import content_words, fold

BRIEF_CHARS_MAX: Final = 240
"""A longer prompt after an interruption is a task of its own."""
_SENTENCES_READ: Final = 12
"""Of a prompt: a longer one describes a task."""
_SAME_PROMPT: Final = 0.75
_LOG_LINES_MAX: Final = 3
_LOG_LINE: Final = re.compile(
    r"^\s*(?:\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|\[?(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b|"
    r"(?:npm|yarn|pnpm) (?:ERR|WARN|error)|at [\w.$<>]+ ?\(|File \"|Traceback \(|\w+(?:\.\w+)*(?:Error|Exception)\b|"
    r"[+\-@]{2,}|\$ |> |E {2,}|FAIL(?:ED)?\b|PASS(?:ED)?\b|==+|--+|\S+:\d+:\d+|\{|\}|<\w)",
)
"""A line that a program wrote."""
_RULES_DENY: Final = re.compile(
    r"guardian|permission_denied|toolDenialKind (?!user)|Permission to use .* has been denied"
    r"|\b(?:hook|policy|sandbox)\b",
    re.IGNORECASE,
)
DENIED: Final = "denied: "
"""How the shape of a refusal without words begins; the command follows."""


def corrections_in(stream: int, events: Sequence[SessionEvent], digest: Digest) -> Iterator[Observation]:
    """`events`: those of the session itself; `digest`: made of them. In the order of the session."""
    turns = turns_of(events)
    edited = _edited(events)
    worded: set[int] = set()
    for turn in turns:
        for found in _in_prompt(stream, turn, edited):
            if found.detail and turn.before is not None and turn.before.last is not None:
                worded.add(turn.before.last.seq)
            yield found
    by_seq = {entry.seq: entry for entry in events}
    for decision in digest.decisions:
        entry = by_seq[decision.seq]
        if decision.kind == "refusal" and entry.event.tool is not None:
            worded.add(entry.seq)
            yield from _observed(stream, entry, _wishes(decision.quote), decision.about)
    yield from (found for entry in events if entry.seq not in worded for found in _refused(stream, entry))


def _in_prompt(stream: int, turn: Turn, edited: Mapping[int, frozenset[str]]) -> Iterator[Observation]:
    before, prompt = turn.before, turn.prompt
    if before is None or prompt is None:
        return
    stopped = _stopped(before)
    again = bool(edited.get(before.number, frozenset()) & edited.get(turn.number, frozenset()))
    said = _wishes(prompt.event.text)
    told = [
        (sentence, wish)
        for sentence, wish in said
        if decides(sentence)
        or PROTESTS.search(fold(sentence))
        or (wish.unwanted and (stopped or again or _says_again(before, prompt)))
    ]
    if not told and stopped and len(prompt.event.text.strip()) <= BRIEF_CHARS_MAX:
        told = [one for one in said[:1] if one[1].terms & wish_of(stopped).terms]  # it is about what was stopped
    yield from _observed(stream, prompt, _widest(told), stopped)


def _widest(wishes: Sequence[tuple[str, Wish]]) -> list[tuple[str, Wish]]:
    """Without those that another one of the same prompt holds: "Never npm. We use pnpm, not npm!" is one wish."""
    return [one for one in wishes if not any(one[1].terms < other[1].terms for other in wishes)]


def _stopped(turn: Turn) -> str:
    """What the person refused or broke off, if that is how the turn ended."""
    if turn.stopped_by is None or turn.last is None:
        return ""
    call = turn.last.event.tool
    return f"stopped: {title_of(call)}" if call is not None else "stopped"


def _says_again(before: Turn, prompt: SessionEvent) -> bool:
    """The prompt of the turn before in nearly the same words."""
    if before.prompt is None or goes_on(prompt.event.text):
        return False
    one, other = (set(content_words(entry.event.text[:2_000])) for entry in (before.prompt, prompt))
    return len(one & other) >= max(3, _SAME_PROMPT * len(one | other))


def _wishes(text: str) -> list[tuple[str, Wish]]:
    """(sentence, what it wants) of those that a person said and that say enough."""
    said = [line for line in text.split("\n") if not _LOG_LINE.match(line)]
    if len(text.strip().split("\n")) - len(said) > _LOG_LINES_MAX:
        said = said[:1]  # what follows the first line of a pasted log is not told from it
    found = ((sentence, wish_of(sentence)) for sentence in sentences("\n".join(said))[:_SENTENCES_READ])
    return [
        (sentence, wish)
        for sentence, wish in found
        if wish.tells and not is_question(sentence) and not FOR_NOW.search(fold(sentence))
    ]


def _observed(
    stream: int, entry: SessionEvent, wishes: Iterable[tuple[str, Wish]], about: str
) -> Iterator[Observation]:
    for sentence, wish in wishes:
        if quote := quote_of(stream, entry, [sentence]):
            yield Observation(
                kind="correction", shape=wish.shape, quote=quote, at_us=entry.event.occurred_at_us, detail=about
            )


def _refused(stream: int, entry: SessionEvent) -> Iterator[Observation]:
    """A command that was refused without a word: that it was refused is what the person said."""
    call = entry.event.tool
    if call is None or call.outcome != "denied" or not call.command or _denied_by_rule(call):
        return
    shape = next((found for step in steps_of(call.command) if (found := step_shape(step))), "")
    quote = quote_of(stream, entry, [call.command])
    if shape and quote:
        yield Observation(
            kind="correction", shape=f"{DENIED}{shape}", quote=quote, at_us=entry.event.occurred_at_us, detail=shape
        )


def _denied_by_rule(call: ToolCall) -> bool:
    """A setting, a hook or a guard of the agent refused it, and no person."""
    return bool(_RULES_DENY.search(f"{call.decided_by}\n{call.output[:300]}"))


def _edited(events: Sequence[SessionEvent]) -> dict[int, frozenset[str]]:
    """Files that calls changed, by the number of their turn."""
    found: dict[int, set[str]] = {}
    turn = 0
    for event in (entry.event for entry in events):
        turn += is_prompt(event)
        call = event.tool
        if call is not None and call.outcome not in ("failed", "denied", "interrupted"):
            changed = [path for path, _ in call.changes] or (call.paths if call.family == "edit" else ())
            found.setdefault(turn, set()).update(changed)
    return {number: frozenset(paths) for number, paths in found.items()}
