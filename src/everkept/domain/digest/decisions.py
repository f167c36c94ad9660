"""What the user decided, in the user's words. Structure first: what was asked, planned or refused; then the words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from everkept.domain.digest.clip import clean, one_line
from everkept.domain.digest.turns import Turn, sentences
from everkept.domain.digest.values import QUOTE_CHARS_MAX, Decision, SessionEvent
from everkept.domain.digest.words import asks, decides, goes_on, is_question
from everkept.domain.session import ToolCall

_ANSWER_CHARS_MAX: Final = 240
"""A longer prompt after a question is a task of its own; only its deciding sentences are taken."""
_ABOUT_CHARS_MAX: Final = 160
_USER_SAID = re.compile(
    r"(?:the user said|user feedback|user's feedback|reason given)[^:\n]{0,40}:\s*(.+)", re.IGNORECASE | re.DOTALL
)
_ANSWERED = re.compile(r'"([^"\n]{1,400})"\s*=\s*"([^"\n]{1,600})"')
_NO_WORDS = re.compile(
    r"doesn't want to (?:proceed|take this action)|tool use was rejected|interrupted by user", re.IGNORECASE
)


def decisions_of(turns: Sequence[Turn], events: Sequence[SessionEvent]) -> tuple[Decision, ...]:
    """Each wording once, in the order of `events`, which are those of the session and its sub-agents."""
    found: dict[int, list[Decision]] = {}
    for turn in turns:
        if turn.prompt is not None:
            found[id(turn.prompt)] = list(_from_prompt(turn, turn.prompt))
    decisions: dict[str, Decision] = {}
    for entry in events:
        if entry.event.tool is None and entry.event.kind not in _DECIDING:
            continue
        for decision in found.get(id(entry)) or _from_event(entry):
            decisions.setdefault(decision.quote.casefold(), decision)
    return tuple(decisions.values())


_DECIDING: Final = frozenset({"prompt", "plan"})


def _from_prompt(turn: Turn, prompt: SessionEvent) -> Iterator[Decision]:
    """A brief answer to a question or to a call that was stopped is one whole; else the sentences that decide."""
    whole = clean(prompt.event.text).strip()
    brief = len(whole) <= _ANSWER_CHARS_MAX and not is_question(whole)
    if brief and not goes_on(whole) and (stopped := _stopped_before(turn)):
        yield Decision(seq=prompt.seq, kind="refusal", quote=one_line(whole, QUOTE_CHARS_MAX), about=stopped)
    elif brief and (asked := _asked_before(turn)):
        yield Decision(seq=prompt.seq, kind="answer", quote=one_line(whole, QUOTE_CHARS_MAX), about=asked)
    else:
        for sentence in sentences(prompt.event.text):
            if decides(sentence):
                yield Decision(seq=prompt.seq, kind="statement", quote=one_line(sentence, QUOTE_CHARS_MAX))


def _stopped_before(turn: Turn) -> str:
    """The call at which the user stopped the turn before, if that is how it ended."""
    before = turn.before
    if before is None or before.last is None or before.stopped_by is None:
        return ""
    call = before.last.event.tool
    if call is None or call.outcome not in ("denied", "interrupted"):
        return ""
    return f"{call.outcome}: {one_line(title_of(call), _ABOUT_CHARS_MAX)}"


def _asked_before(turn: Turn) -> str:
    before = turn.before
    if before is None or before.said is None or before.last is not before.said:
        return ""
    return asked_in(before.said.event.text)


def asked_in(message: str) -> str:
    """The question with which a message ends, on one line; empty where it ends with none."""
    last = sentences(message[-2000:])[-3:]
    return one_line(" ".join(sentence for sentence in last if asks(sentence)), _ABOUT_CHARS_MAX)


def _from_event(entry: SessionEvent) -> Iterator[Decision]:
    event = entry.event
    call = event.tool
    if event.kind == "plan" and event.detail in ("approved", "rejected") and event.text.strip():
        yield Decision(
            seq=entry.seq, kind="plan", quote=one_line(event.text, QUOTE_CHARS_MAX), about=f"plan {event.detail}"
        )
    elif call is None or not call.ended or not event.evidence:
        return
    elif call.outcome in ("denied", "interrupted"):
        yield from _refused(entry.seq, call)
    elif call.family == "question" and call.outcome != "failed":
        yield from _answered(entry.seq, call)
    elif call.family == "plan" and call.outcome == "ok" and _is_approval(call):
        yield Decision(seq=entry.seq, kind="plan", quote=_plan_of(call), about="plan approved")


def _refused(seq: int, call: ToolCall) -> Iterator[Decision]:
    """What the user said when refusing; a refusal without words is listed among the stopped calls only."""
    said = _USER_SAID.search(call.output)
    words = said[1] if said else ""
    if words and not _NO_WORDS.search(words[:200]):
        yield Decision(
            seq=seq, kind="refusal", quote=one_line(words, QUOTE_CHARS_MAX), about=f"{call.outcome}: {title_of(call)}"
        )


def _answered(seq: int, call: ToolCall) -> Iterator[Decision]:
    """What was chosen: pairs as agents write them (`"question"="answer"`, or a line `question: answer`), else all."""
    pairs = _ANSWERED.findall(call.output) or list(_answered_lines(call))
    if not pairs and call.output.strip():
        pairs = [(_field(call.input, "question") or call.input, call.output)]
    for question, answer in pairs:
        yield Decision(
            seq=seq, kind="answer", quote=one_line(answer, QUOTE_CHARS_MAX), about=one_line(question, _ABOUT_CHARS_MAX)
        )


def _answered_lines(call: ToolCall) -> Iterator[tuple[str, str]]:
    for line in call.output.split("\n")[:20]:
        question, mark, answer = line.partition("?: ")
        if mark and answer.strip() and question in call.input:
            yield f"{question}?", answer


def _field(text: str, name: str) -> str:
    """The first string of this name in JSON, without reading it all."""
    found = re.search(rf'"{name}"\s*:\s*"((?:[^"\\]|\\.){{1,800}})"', text)
    return one_line(_unescaped(found[1]), _ABOUT_CHARS_MAX) if found else ""


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")


def _is_approval(call: ToolCall) -> bool:
    """The user let a plan pass: it was shown for that, unlike a todo list."""
    return "plan" in call.name.casefold() and "exit" in call.name.casefold()


def _plan_of(call: ToolCall) -> str:
    plan = _field(call.input, "plan") or call.input
    return one_line(plan, QUOTE_CHARS_MAX)


def title_of(call: ToolCall) -> str:
    """A call in a few words: its command, or its name and the files."""
    if call.command:
        return one_line(call.command, 120)
    name = "a call of a tool without a name" if call.name == "unknown" else call.name
    return one_line(" ".join([name, *call.paths[:3]]), 120)
